"""Produce (key 0), v0-13.

Appends each partition's batch at once, in the order of the request, and answers when `acks` says so:

- acks=0: never, not even an error; where an append fails the connection is closed, since the client cannot be told.
- acks=1: after the append. acks=-1 (all): when every in-sync replica has it, at the latest after `timeout_ms`.
- any other: INVALID_REQUIRED_ACKS for each partition.

Order of the checks: acks; topic (UNKNOWN_TOPIC_OR_PARTITION, for an id that is nobody's UNKNOWN_TOPIC_ID), which is no
internal one (INVALID_TOPIC_EXCEPTION); that there is one batch of the current format (INVALID_RECORD); zstd below v7
(UNSUPPORTED_COMPRESSION_TYPE); a transactional id for a transactional batch (TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
leadership; min.insync.replicas for acks=all; whether the transaction of a transactional batch is known to its
coordinator (below); what `Log.append_as_leader` checks.
Missing records are an INVALID_RECORD. Records that need another form are converted first, then the coordinator is
asked; from then on nothing is awaited before the last partition is appended, and a connection's next request waits for
this one: its batches lie in the log in the order in which they were sent. In a request for several partitions of which
the first one needs no other codec, the others get theirs while they are appended.

Message sets of format 0 and 1 come with versions 0 to 2, and are stored as one RecordBatch v2. There a v2 is taken too,
since there are clients that send it, and there is no error for it on Kafka.

A transactional batch is appended when the coordinator has the partition in its transaction. From v12 on this request
itself adds it (KIP-890); before, it has to be there already: INVALID_TXN_STATE, from v11 on TRANSACTION_ABORTABLE. What
the coordinator cannot tell at the moment is NOT_ENOUGH_REPLICAS, which every client retries; CONCURRENT_TRANSACTIONS is
told from v12 on. Batches of several producers in one transactional request are an INVALID_PRODUCER_ID_MAPPING.

KIP-98 (idempotence, transactions), KIP-110 (zstd), KIP-467 (record errors), KIP-890 (v11, v12), KIP-516 (v13: topic
ids).
"""

import math
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import trio

from odradek.cluster.topics import INTERNAL_TOPICS
from odradek.conversion import raise_format, recompress
from odradek.group_commit import FlushWaiter
from odradek.handlers.registry import CloseConnection, answer_for, handles
from odradek.log.errors import RecordErrors
from odradek.log.log import AppendResult
from odradek.log.validation import read_batch
from odradek.partition import Partition
from odradek.transactions.joining import ClientProtocol, join_transaction
from odradek.transactions.state import ProducerIdentity
from odradek.waiting import Postponed, Waiter, answer_of
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    RecordError,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek_protocol.records.batch import TRANSACTIONAL, RecordBatch
from odradek_protocol.records.compression import Codec

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_BATCHES = 3
FIRST_WITH_ZSTD = 7
FIRST_WITH_ABORTABLE = 11
FIRST_THAT_ADDS_PARTITIONS = 12
FIRST_WITH_TOPIC_IDS = 13

ADMIN_CLIENT_ID = "__admin_client"
"""The client id by which Kafka's own tools ask to write to internal topics."""

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1
ALL_ACKS = (ACKS_ALL, ACKS_LEADER, ACKS_NONE)

WITHOUT_LOG_START = frozenset(
    {
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.CORRUPT_MESSAGE,
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.KAFKA_STORAGE_ERROR,
        Error.INVALID_TOPIC_EXCEPTION,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors of an append whose reply does not tell the log start offset."""

UNDECIDED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
"""What a coordinator says that cannot tell, for the moment, whether a partition is in a transaction."""

_Appended = tuple[Partition, AppendResult, PartitionProduceResponse]
"""What has to become safe before it is answered."""

_Refused = dict[int, tuple[Partition | None, Exception]]
"""By the id of a partition's data, why it is not appended: its records cannot have the form that they need, or the
transaction does not have the partition."""


@handles(ProduceRequest)
def produce(
    node: "Node",
    connection: "Connection",
    request: Request[ProduceRequest],
    refused: _Refused | None = None,
) -> ProduceResponse | Postponed | Coroutine[Any, Any, ProduceResponse | None] | None:
    """Answer a Produce; None for acks=0.

    `refused` is given when all records that can have the form that they need have it, and the coordinator of the
    transaction was asked. Raises CloseConnection when an append with acks=0 failed.
    """
    body = request.body
    acks = body.acks
    if refused is None and (request.version < FIRST_WITH_BATCHES or body.transactional_id is not None):
        return _produce_prepared(node, connection, request)
    appended: list[_Appended] = []
    topics: list[TopicProduceResponse] = []
    for topic in body.topic_data:
        replies: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            partition = None
            try:
                if refused and id(data) in refused:
                    partition, refusal = refused[id(data)]
                    raise refusal  # noqa: TRY301 - answered with the others
                partition, records, batch = _admit(node, request, topic, data, refused is not None)
                if refused is None and partition.config.compression_type != "producer" and not (topics or replies):
                    return _produce_prepared(node, connection, request)
                result = partition.append(records, batch)
            except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
                replies.append(_refusal(request, partition, data.index, error))
                continue
            reply = PartitionProduceResponse(
                index=data.index,
                error_code=0,
                base_offset=result.base_offset,
                log_append_time_ms=result.log_append_time_ms,
                log_start_offset=result.log_start_offset,
            )
            replies.append(reply)
            if partition.high_watermark <= result.last_offset and (
                acks == ACKS_ALL or not partition.is_flushed(result.last_offset)
            ):
                appended.append((partition, result, reply))
        topics.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies))
    if appended:
        settling = _Settling(appended, topics, request)
        return settling if acks != ACKS_NONE else _settle_unanswered(settling, topics, request)
    return _response(topics, request)


def _response(topics: list[TopicProduceResponse], request: Request[ProduceRequest]) -> ProduceResponse | None:
    if request.body.acks == ACKS_NONE:
        _close_if_refused(topics, request)
        return None
    return ProduceResponse(responses=topics)


async def _settle_unanswered(
    settling: "_Settling", topics: list[TopicProduceResponse], request: Request[ProduceRequest]
) -> None:
    await answer_of(settling)
    _close_if_refused(topics, request)


class _Settling(Postponed):
    """Appends that become as safe as the topics and the request ask; what goes wrong with one is put into its reply.

    A flush takes as long as the disk does. Replicas are waited for until `timeout_ms` after the request came.
    """

    __slots__ = ("_appended", "_commit_deadline", "_flushes", "_request", "_topics", "_waiter", "deadline")

    def __init__(
        self, appended: list[_Appended], topics: list[TopicProduceResponse], request: Request[ProduceRequest]
    ) -> None:
        self.deadline = math.inf
        self._commit_deadline = trio.current_time() + request.body.timeout_ms / 1000
        self._appended = appended
        self._topics = topics
        self._request = request
        self._flushes: list[tuple[Partition, FlushWaiter, PartitionProduceResponse]] = []
        self._waiter: Waiter

    def begin(self, woken: Callable[[], object]) -> None:
        self._waiter = Waiter(1, woken)
        for partition, result, reply in self._appended:
            if not partition.is_flushed(result.last_offset):
                self._flushes.append((partition, partition.enter_flush(result.last_offset, woken), reply))
        if self._request.body.acks != ACKS_ALL:
            self._appended = []
        for partition, _, _ in self._appended:
            partition.waiters.add(self._waiter)

    def look(self) -> ProduceResponse | None:
        if not all(flush.done for _, flush, _ in self._flushes):
            return None
        for _, flush, reply in self._flushes:
            if flush.error is not None:
                self._refuse(reply, flush.error)
        self.deadline = self._commit_deadline
        awaited = [one for one in self._appended if self._is_awaited(*one)]
        if awaited:
            return None
        self.end()
        return ProduceResponse(responses=self._topics)

    def _is_awaited(self, partition: Partition, result: AppendResult, reply: PartitionProduceResponse) -> bool:
        """Whether replicas are still to be waited for."""
        if reply.error_code or partition.high_watermark > result.last_offset:
            return False
        if trio.current_time() >= self.deadline:
            late = BrokerError(Error.REQUEST_TIMED_OUT, f"offset {result.last_offset} is not committed yet")
            self._refuse(reply, late)
            return False
        try:
            partition.check_leader()
        except BrokerError as error:
            self._refuse(reply, error)
            return False
        return True

    def _refuse(self, reply: PartitionProduceResponse, error: Exception) -> None:
        code, message = answer_for(error, self._request)
        reply.error_code, reply.error_message = code, message or None
        reply.base_offset = reply.log_append_time_ms = -1

    def end(self) -> None:
        for partition, flush, _ in self._flushes:
            partition.leave_flush(flush)
        for partition, _, _ in self._appended:
            partition.waiters.discard(self._waiter)


def _admit(
    node: "Node",
    request: Request[ProduceRequest],
    topic: TopicProduceData,
    data: PartitionProduceData,
    converted: bool = False,
) -> tuple[Partition, memoryview, RecordBatch]:
    """The partition of `data`, its records and their header, once all has passed that is checked before the log.

    `converted` says that the codec is the topic's, and not the client's.
    """
    acks = request.body.acks
    if acks not in ALL_ACKS:
        raise BrokerError(Error.INVALID_REQUIRED_ACKS)
    by_id = request.version >= FIRST_WITH_TOPIC_IDS
    if by_id:
        partition = node.partitions.get_by_id(topic.topic_id, data.index)
    else:
        partition = node.partitions.get(topic.name, data.index)
    if partition is None:
        nobodys = by_id and topic.topic_id not in node.view.topics_by_id
        raise BrokerError(Error.UNKNOWN_TOPIC_ID if nobodys else Error.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.topic in INTERNAL_TOPICS and request.client_id != ADMIN_CLIENT_ID:
        raise BrokerError(Error.INVALID_TOPIC_EXCEPTION, f"clients may not write to {partition.topic}")
    records = data.records
    if records is None:
        raise BrokerError(Error.INVALID_RECORD, f"partition {data.index} has no records")
    batch = read_batch(records)
    if request.version < FIRST_WITH_ZSTD and batch.codec == Codec.ZSTD and not converted:
        raise BrokerError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"Produce version {request.version} has no zstd")
    if batch.attributes & TRANSACTIONAL and request.body.transactional_id is None:
        raise BrokerError(
            Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch without a transactional id"
        )
    if acks == ACKS_ALL:
        partition.check_leader()
        partition.check_enough_replicas()
    return partition, records, batch


async def _produce_prepared(
    node: "Node", connection: "Connection", request: Request[ProduceRequest]
) -> ProduceResponse | None:
    """Answer a Produce whose records need another form than they have, or whose transaction needs their partitions.

    Nothing is awaited between what its coordinator says and the appends.
    """
    refused: _Refused = {}
    for topic in request.body.topic_data:
        for data in topic.partition_data:
            await _convert(node, request, topic, data, refused)
    if request.body.transactional_id is not None:
        await _join(node, request, request.body.transactional_id, refused)
    answer = produce(node, connection, request, refused)
    if isinstance(answer, Postponed):
        response: ProduceResponse = await answer_of(answer)
        return response
    return await answer if isinstance(answer, Coroutine) else answer


async def _convert(
    node: "Node",
    request: Request[ProduceRequest],
    topic: TopicProduceData,
    data: PartitionProduceData,
    refused: _Refused,
) -> None:
    """Let `data` have a batch for the message set of an old client, in the codec that the topic wants."""
    old = request.version < FIRST_WITH_BATCHES
    partition = node.partitions.get(topic.name, data.index) if old else None
    try:
        if partition is not None and data.records is not None and request.body.acks in ALL_ACKS:
            data.records = await raise_format(partition, data.records)
        partition, records, batch = _admit(node, request, topic, data, old)
        if partition.config.compression_type != "producer":
            data.records, _ = await recompress(partition, records, batch)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        refused[id(data)] = partition, error


async def _join(node: "Node", request: Request[ProduceRequest], transactional_id: str, refused: _Refused) -> None:
    """Have the coordinator know of the partitions with transactional batches, and note those that it refuses.

    What is wrong with a batch itself is found later.
    """
    asked: list[tuple[PartitionProduceData, Partition]] = []
    sequences: dict[Partition, int] = {}
    producers = set()
    for topic in request.body.topic_data:
        for data in topic.partition_data:
            try:
                partition, _, batch = _admit(node, request, topic, data, True)
                partition.check_leader()
            except BrokerError:
                continue
            if batch.is_transactional and batch.producer_id >= 0 and id(data) not in refused:
                asked.append((data, partition))
                sequences.setdefault(partition, batch.base_sequence)
                producers.add(ProducerIdentity(batch.producer_id, batch.producer_epoch))
    errors: Mapping[Partition, BrokerError] = {}
    if len(producers) > 1:
        several = BrokerError(
            Error.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
        errors = dict.fromkeys(sequences, several)
    elif producers:
        protocol = _protocol(request.version)
        found = await join_transaction(
            node.transactions, node.config, transactional_id, producers.pop(), sequences, protocol
        )
        errors = {partition: _retriable(error, protocol) for partition, error in found.items()}
    for data, partition in asked:
        if partition in errors:
            # Answered as of a partition that was not looked at.
            refused[id(data)] = None, errors[partition]


def _protocol(version: int) -> ClientProtocol:
    if version >= FIRST_THAT_ADDS_PARTITIONS:
        return ClientProtocol.WITH_IMPLICIT_ADDITION
    return ClientProtocol.WITH_ABORTABLE if version >= FIRST_WITH_ABORTABLE else ClientProtocol.WITHOUT_ABORTABLE


def _retriable(error: BrokerError, protocol: ClientProtocol) -> BrokerError:
    """What a producer is told of a coordinator that cannot answer now: a code that producers of all ages retry."""
    passes = error.error in UNDECIDED or (
        error.error is Error.CONCURRENT_TRANSACTIONS and protocol is not ClientProtocol.WITH_IMPLICIT_ADDITION
    )
    if passes:
        return BrokerError(
            Error.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.error.name}",
        )
    if error.error is Error.INVALID_TXN_STATE:
        return BrokerError(error.error, "Partition was not added to the transaction")
    return error


def _refusal(
    request: Request[ProduceRequest], partition: Partition | None, index: int, error: Exception
) -> PartitionProduceResponse:
    code, message = answer_for(error, request)
    known = partition is not None and code not in WITHOUT_LOG_START
    record_errors: list[RecordError] = []
    if isinstance(error, RecordErrors):
        record_errors = [
            RecordError(batch_index=position, batch_index_error_message=text) for position, text in error.record_errors
        ]
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_start_offset=partition.log_start_offset if partition is not None and known else -1,
        record_errors=record_errors,
        error_message=message or None,
    )


def _close_if_refused(topics: list[TopicProduceResponse], request: Request[ProduceRequest]) -> None:
    refused = [(topic.name, reply) for topic in topics for reply in topic.partition_responses if reply.error_code]
    if refused:
        raise CloseConnection(f"{request!r} with acks=0 was refused: {refused}")
