"""The row of transactions: producers that write a record and commit, again and again, in the protocol of KIP-890."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import frames
from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.rows import Figures, RowAtOnce, cost_of, temporary_topic
from odradek_protocol.errors import Error
from odradek_protocol.messages.end_txn import EndTxnRequest
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest
from odradek_protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek_protocol.records.batch import TRANSACTIONAL
from odradek_protocol.records.build import NewRecord, build_batch

__all__ = ["Transactions"]

RETRY_S = 0.001
"""Between two askings while the markers of the last transaction are under way: shorter than any client waits."""

NOT_YET = frozenset(
    {
        Error.CONCURRENT_TRANSACTIONS,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
    }
)

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Transactions(RowAtOnce):
    """One producer, whose transactions write a record of `record_bytes` to each of `partitions` partitions."""

    transactions: int
    record_bytes: int = 1000
    partitions: int = 1

    def run(self, broker: Broker, share: float) -> Figures:
        count = max(int(self.transactions * share), 1)
        with temporary_topic(broker, self.partitions) as topic, Client(broker.port) as client:
            producer = _Producer(client, f"benchmark-{next(_numbers)}")
            values = frames.text(self.record_bytes)
            cpu_s, start_s = broker.cpu_s(), time.perf_counter()
            for _ in range(count):
                producer.commit(topic, range(self.partitions), values)
            seconds, cpu_s = time.perf_counter() - start_s, broker.cpu_s() - cpu_s
        return cost_of("transaction", count, seconds, cpu_s)


class _Producer:
    def __init__(self, client: Client, transactional_id: str) -> None:
        self._client = client
        self._transactional_id = transactional_id
        find = FindCoordinatorRequest(coordinator_keys=[transactional_id], key_type=1)
        while client.call(find, 4).coordinators[0].error_code in NOT_YET:
            time.sleep(RETRY_S)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        while (reply := client.call(request, 5)).error_code in NOT_YET:
            time.sleep(RETRY_S)
        self._producer_id, self._epoch = reply.producer_id, reply.producer_epoch

    def commit(self, topic: str, partitions: range, value: bytes) -> None:
        """One transaction."""
        batch = build_batch(
            [NewRecord(None, value, timestamp_ms=time.time_ns() // 1_000_000)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=0,
            attributes=TRANSACTIONAL,
        )
        data = [PartitionProduceData(index=index, records=memoryview(batch)) for index in partitions]
        produce = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        while (code := self._code_of(produce)) in NOT_YET:
            time.sleep(RETRY_S)
        _check("producing", code)
        end = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=True,
        )
        while (reply := self._client.call(end, 5)).error_code in NOT_YET:
            time.sleep(RETRY_S)
        _check("committing", reply.error_code)
        self._producer_id, self._epoch = reply.producer_id, reply.producer_epoch

    def _code_of(self, produce: ProduceRequest) -> int:
        """The first error among the partitions, which are refused together."""
        found = self._client.call(produce, 12).responses[0].partition_responses
        codes: Iterator[int] = (one.error_code for one in found if one.error_code)
        return next(codes, 0)


def _check(what: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{what}: {Error(code).name}")
