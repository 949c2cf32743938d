"""ListOffsets (key 2), v0-11: the offsets of a time, or of a place in the log.

    timestamp  since   answer
    >= 0               the first record whose timestamp is at least this; none: offset and timestamp -1
    -1                 the end: high watermark, or last stable offset for isolation level 1
    -2                 the start of the log
    -3         v7      the record with the largest timestamp (KIP-734)
    -4         v8      the start of what is on local disks: that of the log (KIP-405)
    -5, -6     v9, v11 the last offset in, and the first one not in remote storage: there is none, offset -1 (KIP-1005,
                       KIP-1023)
    other              UNSUPPORTED_VERSION

Order of the checks, for each partition: named twice (INVALID_REQUEST), timestamp, topic and partition
(UNKNOWN_TOPIC_OR_PARTITION), leadership, leader epoch. Version 0 gives a list of offsets, newest first, at most as many
as asked: the starts of segments by the time their files were written, and the end.

A client asks -1 and -2 for every few hundred records it reads, so these are answered from memory. A look-up in files
reads sealed segments in a thread; what it needs of the active one was written lately, and is in the page cache.
"""

from collections import Counter
from collections.abc import Container, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from odradek.handlers.registry import answer_for, handles
from odradek.log.lookup import Lookup
from odradek.partition import Partition
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

FIRST_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version in which a special timestamp may be asked for."""

CONSUMER = -1
READ_COMMITTED = 1

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch."""

NOTHING: Found = (-1, -1, -1)


@handles(ListOffsetsRequest)
def list_offsets(
    node: "Node", connection: "Connection", request: Request[ListOffsetsRequest]
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    """Answer a ListOffsets."""
    body = request.body
    for topic in body.topics:
        for asked in topic.partitions:
            if _reads_files(asked):
                return _look_up(node, request)
    repeated = _repeated(body)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_reply(node, request, topic.name, asked, repeated) for asked in _once(topic.partitions)],
            )
            for topic in body.topics
        ]
    )


async def _look_up(node: "Node", request: Request[ListOffsetsRequest]) -> ListOffsetsResponse:
    """The answer where some of it stands in files."""
    repeated = _repeated(request.body)
    topics = []
    for topic in request.body.topics:
        replies = []
        for asked in _once(topic.partitions):
            lookup = None
            if _reads_files(asked):
                lookup = await _search(node, topic.name, asked, request.body)
            replies.append(_reply(node, request, topic.name, asked, repeated, lookup))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=replies))
    return ListOffsetsResponse(topics=topics)


async def _search(node: "Node", topic: str, asked: ListOffsetsPartition, body: ListOffsetsRequest) -> Lookup | None:
    """Look for the timestamp in sealed segments; let the other clients in before the rest, in any case."""
    partition = node.partitions.get(topic, asked.partition_index)
    lookup = None if partition is None else _lookup(partition, asked.timestamp, body)
    if lookup is not None and lookup.needs_files:
        await trio.to_thread.run_sync(lookup.run)
    else:
        await trio.lowlevel.checkpoint()
    return lookup


def _lookup(partition: Partition, timestamp: int, body: ListOffsetsRequest) -> Lookup:
    return Lookup(partition.log, None if timestamp == MAX_TIMESTAMP else timestamp, _end(partition, body))


def _reads_files(asked: ListOffsetsPartition) -> bool:
    return asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP


def _reply(
    node: "Node",
    request: Request[ListOffsetsRequest],
    topic: str,
    asked: ListOffsetsPartition,
    repeated: Container[tuple[str, int]],
    lookup: Lookup | None = None,
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    reply = ListOffsetsPartitionResponse(partition_index=index, error_code=0, old_style_offsets=())
    try:
        _check(asked, request.version, (topic, index) in repeated)
        partition = node.partitions.get(topic, index)
        if partition is None:
            raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)  # noqa: TRY301 - answered with the others
        partition.check_leader()
        partition.check_epoch(asked.current_leader_epoch)
        if request.version == 0:
            reply.old_style_offsets = _old_style(node, partition, asked, request.body.replica_id)
        else:
            reply.timestamp, reply.offset, reply.leader_epoch = _find(partition, asked.timestamp, request.body, lookup)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        reply.error_code, _ = answer_for(error, request)
    return reply


def _once(partitions: Sequence[ListOffsetsPartition]) -> Iterable[ListOffsetsPartition]:
    """Each partition once: one that is named again has one row in the reply."""
    return partitions if len(partitions) == 1 else {asked.partition_index: asked for asked in partitions}.values()


def _repeated(body: ListOffsetsRequest) -> frozenset[tuple[str, int]]:
    """The partitions that are named more than once."""
    if len(body.topics) == 1 and len(body.topics[0].partitions) == 1:
        return frozenset()
    named = Counter((topic.name, asked.partition_index) for topic in body.topics for asked in topic.partitions)
    return frozenset(partition for partition, times in named.items() if times > 1)


def _check(asked: ListOffsetsPartition, version: int, repeated: bool) -> None:
    if repeated:
        raise BrokerError(Error.INVALID_REQUEST, f"partition {asked.partition_index} is named twice")
    if asked.timestamp < 0 and version < FIRST_VERSION.get(asked.timestamp, version + 1):
        raise BrokerError(Error.UNSUPPORTED_VERSION, f"timestamp {asked.timestamp} in version {version}")


def _end(partition: Partition, body: ListOffsetsRequest) -> int:
    """Where the log ends for who asks."""
    if body.replica_id != CONSUMER:
        return partition.log.log_end_offset
    return partition.last_stable_offset if body.isolation_level == READ_COMMITTED else partition.high_watermark


def _find(partition: Partition, timestamp: int, body: ListOffsetsRequest, lookup: Lookup | None) -> Found:
    log = partition.log
    if timestamp == LATEST:
        return -1, _end(partition, body), partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return -1, start, log.epochs.epoch_of(start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    if lookup is None or lookup.log is not log:
        lookup = _lookup(partition, timestamp, body)
    found = lookup.result()
    return NOTHING if found is None else (found.timestamp, found.offset, found.leader_epoch)


def _old_style(node: "Node", partition: Partition, asked: ListOffsetsPartition, replica_id: int) -> list[int]:
    """Where segments start, and the end, by the time they were written; newest first. A consumer sees no offset above
    the high watermark.
    """
    log = partition.log
    places = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms()) for segment in log.segments]
    if log.active.size:
        places.append((log.log_end_offset, node.clock.now_ms()))
    if asked.timestamp == EARLIEST:
        places = places[:1]
    elif asked.timestamp != LATEST:
        places = [place for place in places if place[1] <= asked.timestamp]
    highest = partition.high_watermark if replica_id == CONSUMER else log.log_end_offset
    newest_first = sorted({min(offset, highest) for offset, _ in places}, reverse=True)
    return newest_first[: max(asked.max_num_offsets, 0)]
