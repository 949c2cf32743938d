"""Fetch (key 1), v0-18.

Reads whole batches, from the one that holds the wanted offset on, and waits up to `max_wait_ms` while fewer than
`min_bytes` are there, those counted that a limit cuts off, and no partition has an error. The first partition that has
records gets its first batch even when that is larger than every limit (KIP-74); the rest is cut at a batch's edge.
Consumers read below the high watermark, with isolation level 1 (read committed) below the last stable offset, with the
list of aborted transactions.

Order of the checks, for each partition: topic (UNKNOWN_TOPIC_ID for an id that is nobody's, INCONSISTENT_TOPIC_ID in a
session whose topic was made anew, else UNKNOWN_TOPIC_OR_PARTITION), leadership, leader epoch (FENCED_LEADER_EPOCH,
UNKNOWN_LEADER_EPOCH; a negative one is not compared), divergence of a last fetched epoch, offset (OFFSET_OUT_OF_RANGE
below the log start or above the log end). Errors of the session stand in the reply's head.

Consumers of versions 0 to 3 get message sets: the batches are converted, and what has no form there (control batches)
is passed over. All others get batches of the format that the log has. Below version 10 a topic whose `compression.type`
is zstd is answered UNSUPPORTED_COMPRESSION_TYPE, below version 4 one that forbids the conversion
(`message.downconversion.enable`) UNSUPPORTED_VERSION.

KIP-110 (v10: zstd), KIP-227 (v7: sessions), KIP-320 (v9, v12), KIP-392 (v11), KIP-516 (v13: topic ids). Replies never
have null records.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from odradek.conversion import FETCH_MAGIC, lower
from odradek.fetch_sessions import FetchSession, FetchTarget
from odradek.handlers.registry import answer_for, handles
from odradek.log.log import LogSlice
from odradek.partition import Partition
from odradek.waiting import Postponed, Waiter, wait_on
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.fetch import (
    NO_DIVERGENCE,
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_BATCHES = 4
FIRST_WITH_STORAGE_ERROR = 6
FIRST_WITH_ZSTD = 10
FIRST_WITH_TOPIC_IDS = 13
READ_COMMITTED = 1

WITH_ABORTED = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.UNSUPPORTED_COMPRESSION_TYPE})
"""Errors beside which Kafka gives an empty list of aborted transactions, and not none."""


class _Round:
    """One look at all partitions of a fetch: what came of it."""

    __slots__ = ("bytes_left", "failed", "found", "ready_bytes", "size_bytes", "targets")

    def __init__(self, targets: Sequence[FetchTarget], max_bytes: int) -> None:
        self.targets = targets
        self.bytes_left = max_bytes
        self.size_bytes = 0
        self.ready_bytes = 0
        """What counts for `min_bytes`: all that the limits allow where there is more, as if batches were cut in two."""
        self.failed = False
        self.found: list[PartitionData] = []
        """What is answered of each target, in their order."""

    def answers(self) -> Iterable[tuple[FetchTarget, PartitionData]]:
        """Each target and what is answered of it."""
        return zip(self.targets, self.found, strict=True)


@handles(FetchRequest)
def fetch(
    node: "Node", connection: "Connection", request: Request[FetchRequest]
) -> FetchResponse | Postponed | Coroutine[Any, Any, FetchResponse]:
    """Answer a Fetch."""
    body = request.body
    if request.version < FIRST_WITH_BATCHES:
        return _fetch_message_sets(node, request)
    uses_ids = request.version >= FIRST_WITH_TOPIC_IDS
    try:
        session, targets, incremental = node.fetch_sessions.resolve(body, uses_ids, node.clock.now_ms())
    except BrokerError as error:
        return FetchResponse(error_code=error.error, responses=())
    max_bytes = min(body.max_bytes, node.config.fetch_max_bytes)
    found = _look(node, request, targets, max_bytes)
    if found.ready_bytes < body.min_bytes and body.max_wait_ms > 0 and not found.failed and targets:
        return _LongPoll(node, request, session, found, incremental=incremental)
    if request.version < FIRST_WITH_ZSTD:
        _refuse_formats(node, found, request)
    return _response(session, found, incremental=incremental)


class _LongPoll(Postponed):
    """A fetch that waits until there are `min_bytes`, or something fails."""

    __slots__ = (
        "_incremental",
        "_missing",
        "_node",
        "_request",
        "_session",
        "_targets",
        "_waiter",
        "_watched",
        "deadline",
    )

    def __init__(
        self,
        node: "Node",
        request: Request[FetchRequest],
        session: FetchSession | None,
        found: _Round,
        *,
        incremental: bool,
    ) -> None:
        self.deadline = trio.current_time() + request.body.max_wait_ms / 1000
        self._node = node
        self._request = request
        self._session = session
        self._targets = found.targets
        self._incremental = incremental
        self._waiter: Waiter
        self._watched: Sequence[Partition] = ()
        self._missing = request.body.min_bytes - found.ready_bytes

    def begin(self, woken: Callable[[], object]) -> None:
        self._waiter = Waiter(self._missing, woken)
        self._watch()

    def _watch(self) -> None:
        """Be woken by what comes to the targets, none of which has failed."""
        self._watched = _partitions(self._node, self._request, self._targets)
        for partition in self._watched:
            partition.waiters.add(self._waiter)

    def look(self) -> FetchResponse | None:
        node, body = self._node, self._request.body
        self.end()
        if self._session is not None:
            self._targets = list(self._session.targets.values())
        found = _look(node, self._request, self._targets, min(body.max_bytes, node.config.fetch_max_bytes))
        missing = body.min_bytes - found.ready_bytes
        if missing <= 0 or found.failed or node.stopping or trio.current_time() >= self.deadline:
            if self._request.version < FIRST_WITH_ZSTD:
                _refuse_formats(node, found, self._request)
            return _response(self._session, found, incremental=self._incremental)
        self._waiter.needed = missing
        self._watch()
        return None

    def end(self) -> None:
        for partition in self._watched:
            partition.waiters.discard(self._waiter)


def _response(session: FetchSession | None, found: _Round, *, incremental: bool) -> FetchResponse:
    """What is told: in a session, of what it did not know yet."""
    if session is None:
        return FetchResponse(responses=_by_topic(found.answers()))
    told = []
    for target, data in found.answers():
        if data.records:
            session.move_to_end(target)
        if target.must_tell(data) or not incremental:
            told.append((target, data))
    return FetchResponse(session_id=session.id, responses=_by_topic(told))


async def _fetch_message_sets(node: "Node", request: Request[FetchRequest]) -> FetchResponse:
    """Answer a Fetch of a client that knows formats 0 and 1 only. There is no session in these versions."""
    body = request.body
    _, targets, _ = node.fetch_sessions.resolve(body, False, node.clock.now_ms())
    max_bytes = min(body.max_bytes, node.config.fetch_max_bytes)
    deadline = trio.current_time() + body.max_wait_ms / 1000
    while True:
        found = _look(node, request, targets, max_bytes)
        watched = () if found.failed else _partitions(node, request, targets)
        left = deadline - trio.current_time()
        last = found.failed or left <= 0 or node.stopping or not targets
        if last or found.ready_bytes >= body.min_bytes:
            _refuse_formats(node, found, request)
            await _convert(node, found, request, max_bytes)
            if last or found.failed or found.size_bytes or body.min_bytes <= 0:
                return _response(None, found, incremental=False)
        await wait_on(watched, max(body.min_bytes - found.ready_bytes, 1), left)


async def _convert(node: "Node", found: _Round, request: Request[FetchRequest], max_bytes: int) -> None:
    """Put message sets in the place of the batches in `found`, of at most `max_bytes` in all after the first."""
    magic = FETCH_MAGIC[request.version]
    found.size_bytes = 0
    for number, (target, data) in enumerate(found.answers()):
        if not isinstance(data.records, LogSlice):
            continue
        asked = target.asked
        left = min(asked.partition_max_bytes, max_bytes - found.size_bytes)
        try:
            partition = _find(node, target, by_id=False)
            data.records = await lower(partition, data.records, magic, asked.fetch_offset, left)
            found.size_bytes += len(data.records)
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            found.found[number] = _refusal(target, error, request)
            found.failed = True


def _refuse_formats(node: "Node", found: _Round, request: Request[FetchRequest]) -> None:
    """Let the partitions fail whose topics do not go with so old a client: those that compress by zstd, and those that
    are not to be converted.
    """
    for number, (target, data) in enumerate(found.answers()):
        partition = None if data.error_code else node.partitions.get(target.topic, target.asked.partition)
        if partition is None:
            continue
        error = None
        if partition.config.compression_type == "zstd":
            error = BrokerError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"{partition!r} is compressed by zstd")
        elif request.version < FIRST_WITH_BATCHES and not partition.config.message_downconversion_enable:
            error = BrokerError(Error.UNSUPPORTED_VERSION, f"{partition!r} is not converted for old clients")
        if error is not None:
            found.found[number] = _refusal(target, error, request)
            found.failed = True


def _by_topic(told: Iterable[tuple[FetchTarget, PartitionData]]) -> list[FetchableTopicResponse]:
    """The reply's topics; neighbouring partitions of one topic share an entry."""
    topics: list[FetchableTopicResponse] = []
    name: str | None = None
    topic_id = b""
    partitions: list[PartitionData] = []
    for target, data in told:
        if target.topic != name or target.topic_id != topic_id:
            name, topic_id = target.topic, target.topic_id
            partitions = []
            topics.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=partitions))
        partitions.append(data)
    return topics


def _look(node: "Node", request: Request[FetchRequest], targets: Sequence[FetchTarget], max_bytes: int) -> _Round:
    """Read every target once, within `max_bytes` in all."""
    look = _Round(targets, max_bytes)
    found = look.found
    committed = request.body.isolation_level == READ_COMMITTED
    by_id = request.version >= FIRST_WITH_TOPIC_IDS
    for target in targets:
        try:
            data = _read(_find(node, target, by_id), target.asked, look, committed)
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            data = _refusal(target, error, request)
            look.failed = True
        found.append(data)
    return look


def _partitions(node: "Node", request: Request[FetchRequest], targets: Sequence[FetchTarget]) -> list[Partition]:
    """The partitions of targets that did not fail."""
    by_id = request.version >= FIRST_WITH_TOPIC_IDS
    return [_find(node, target, by_id) for target in targets]


def _refusal(target: FetchTarget, error: Exception, request: Request[FetchRequest]) -> PartitionData:
    code, _ = answer_for(error, request)
    if code is Error.KAFKA_STORAGE_ERROR and request.version < FIRST_WITH_STORAGE_ERROR:
        code = Error.NOT_LEADER_OR_FOLLOWER
    return PartitionData(
        partition_index=target.asked.partition,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=() if code in WITH_ABORTED else None,
        records=b"",
    )


def _find(node: "Node", target: FetchTarget, by_id: bool) -> Partition:
    if by_id:
        partition = node.partitions.get_by_id(target.topic_id, target.asked.partition)
        if partition is not None:
            target.served_topic = partition.topic
    else:
        partition = node.partitions.get(target.topic, target.asked.partition)
    if partition is None:
        raise BrokerError(_why_unknown(node, target) if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION)
    return partition


def _why_unknown(node: "Node", target: FetchTarget) -> Error:
    """Why there is no partition of that topic id: a session that read one goes by the name that the topic had."""
    if target.topic_id not in node.view.topics_by_id:
        if not target.served_topic:
            return Error.UNKNOWN_TOPIC_ID
        if target.served_topic in node.view.topics:
            return Error.INCONSISTENT_TOPIC_ID
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def _read(partition: Partition, asked: FetchPartition, found: _Round, committed: bool) -> PartitionData:
    if not partition.is_leader:
        partition.check_leader()
    if asked.current_leader_epoch >= 0:
        partition.check_epoch(asked.current_leader_epoch)
    log = partition.log
    end_offset = high_watermark = partition.high_watermark
    stable_offset = log.last_stable_offset(high_watermark)
    if committed:
        end_offset = stable_offset
    offset = asked.fetch_offset
    diverging = NO_DIVERGENCE
    records = None
    if asked.last_fetched_epoch >= 0 and (diverging := _divergence(partition, asked)) is not NO_DIVERGENCE:
        found.failed = True
    elif (first := found.size_bytes == 0) or found.bytes_left > 0:
        limit = min(asked.partition_max_bytes, found.bytes_left)
        records = log.read(offset, limit, end_offset, first)
        if records is not None:
            size = records.size
            found.size_bytes += size
            found.bytes_left -= size
            found.ready_bytes += size if size > limit or records.next_offset >= end_offset else limit
        elif not first and offset < end_offset:
            found.ready_bytes += limit
    else:
        log.check_offset(offset)
    aborted = None
    if committed:
        aborted = [] if records is None else _aborted(partition, offset, records.next_offset)
    return PartitionData(
        partition_index=asked.partition,
        error_code=0,
        high_watermark=high_watermark,
        last_stable_offset=stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=aborted,
        records=b"" if records is None else records,
    )


def _divergence(partition: Partition, asked: FetchPartition) -> EpochEndOffset:
    """Where the fetcher's log left this one: the end of its last epoch here, if that is before what it asks for.

    Raises OFFSET_OUT_OF_RANGE when this log knows nothing of that epoch.
    """
    end = partition.log.end_offset_for_epoch(asked.last_fetched_epoch)
    if end is None:
        raise BrokerError(
            Error.OFFSET_OUT_OF_RANGE, f"the last fetched epoch {asked.last_fetched_epoch} of {partition!r} is unknown"
        )
    epoch, end_offset = end
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return NO_DIVERGENCE


def _aborted(partition: Partition, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in partition.log.aborted_transactions(start_offset, end_offset)
    ]
