"""A transactional producer for tests, one request at a time, in either protocol."""

from typing import Any

from odradek_protocol.errors import Error
from odradek_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek_protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek_protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek_protocol.records.batch import TRANSACTIONAL

from .batches import batch
from .wire import WireClient

__all__ = ["TransactionalProducer"]


class TransactionalProducer:
    """A producer that keeps its id, epoch and sequence numbers. `raises_epoch`: the protocol of KIP-890."""

    def __init__(self, client: WireClient, transactional_id: str, *, raises_epoch: bool = True) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.raises_epoch = raises_epoch
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def initialize(self, *, timeout_ms: int = 60_000, version: int = 5, resume: bool = False) -> int:
        """InitProducerId, again while the last transaction is ended; give the error code."""
        found = self.client.call(FindCoordinatorRequest(coordinator_keys=[self.transactional_id], key_type=1), 4)
        assert found.coordinators[0].error_code == 0, found
        code: int = Error.CONCURRENT_TRANSACTIONS
        while code in (Error.CONCURRENT_TRANSACTIONS, Error.COORDINATOR_LOAD_IN_PROGRESS):
            reply = self.ask_for_id(timeout_ms=timeout_ms, version=version, resume=resume)
            code = reply.error_code
        if code == 0:
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
            self._sequences.clear()
        return code

    def ask_for_id(self, *, timeout_ms: int = 60_000, version: int = 5, resume: bool = False) -> InitProducerIdResponse:
        """InitProducerId once."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if resume else -1,
            producer_epoch=self.epoch if resume else -1,
        )
        reply: InitProducerIdResponse = self.client.call(request, version)
        return reply

    def add(self, topic: str, *indexes: int, version: int = 3) -> int:
        """AddPartitionsToTxn; the error code of the first partition."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes or (0,)))],
        )
        reply = self.client.call(request, version)
        code: int = reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code

    def add_offsets(self, group_id: str, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        code: int = self.client.call(request, version).error_code
        return code

    def send(self, topic: str, *values: bytes, index: int = 0, version: int | None = None, add: bool = True) -> Any:
        """Produce one batch; give the partition's reply."""
        if add and not self.raises_epoch:
            assert self.add(topic, index) == 0
        sequence = self._sequences.get((topic, index), 0)
        records = batch(*values, producer=(self.producer_id, self.epoch, sequence), attributes=TRANSACTIONAL)
        reply = self.client.produce(
            topic,
            records,
            index=index,
            version=version if version is not None else (12 if self.raises_epoch else 11),
            acks=-1,
            transactional_id=self.transactional_id,
        )
        if reply.error_code == 0:
            self._sequences[topic, index] = sequence + len(values or (b"v",))
        return reply

    def commit_offset(
        self,
        group_id: str,
        topic: str,
        offset: int,
        *,
        index: int = 0,
        version: int | None = None,
        generation: int = -1,
        member_id: str = "",
    ) -> int:
        """TxnOffsetCommit of one partition; the error code."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata="m"
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        default = 5 if self.raises_epoch else 4
        reply = self.client.call(request, default if version is None else version)
        code: int = reply.topics[0].partitions[0].error_code
        return code

    def end(self, *, committed: bool = True, version: int | None = None, epoch: int | None = None) -> EndTxnResponse:
        """EndTxn; takes over the producer id and epoch that it answers."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=committed,
        )
        default = 5 if self.raises_epoch else 4
        reply: EndTxnResponse = self.client.call(request, default if version is None else version)
        if reply.error_code == 0 and self.raises_epoch and reply.producer_id >= 0:
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
            self._sequences.clear()
        return reply
