"""Finding records by their timestamps, with at most one batch opened for each answer."""

from typing import NamedTuple

from odradek.log.segment import NO_TIMESTAMP, Segment
from odradek_protocol.records.batch import MAGIC, RecordBatch
from odradek_protocol.records.legacy import read_messages
from odradek_protocol.records.read import scan

__all__ = ["TimestampOffset", "find_largest", "find_timestamp"]


class TimestampOffset(NamedTuple):
    """A record, by its timestamp and offset, and the epoch of the leader that wrote it."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record at or behind `start_offset` whose timestamp is at least `timestamp`.

    Raises OSError; ProtocolError when the batch in question cannot be read.
    """
    position = segment.start_for(segment.base_offset + segment.indexes.times.offset_before(timestamp))
    for start, batch in segment.walk(position):
        if batch.max_timestamp < timestamp or batch.last_offset < start_offset:
            continue
        for offset, recorded in _timestamps(segment, start, batch):
            if recorded >= timestamp and offset >= start_offset:
                return TimestampOffset(recorded, offset, batch.partition_leader_epoch)
    return None


def find_largest(segment: Segment) -> TimestampOffset | None:
    """The first record of the batch that has the segment's largest timestamp, among those with its largest one.

    Raises OSError; ProtocolError when the batch cannot be read.
    """
    if segment.max_timestamp == NO_TIMESTAMP:
        return None
    found = segment.find(segment.max_timestamp_offset)
    if found is None:
        return None
    position, batch = found
    pairs = _timestamps(segment, position, batch)
    if not pairs:
        return None
    offset, timestamp = max(pairs, key=lambda pair: (pair[1], -pair[0]))
    return TimestampOffset(timestamp, offset, batch.partition_leader_epoch)


def _timestamps(segment: Segment, position: int, batch: RecordBatch) -> list[tuple[int, int]]:
    """Offset and timestamp of each record; of a whole batch that the broker stamped, only the first one, unread."""
    if batch.is_log_append_time and batch.magic == MAGIC and batch.record_count > batch.last_offset_delta:
        return [(batch.base_offset, batch.max_timestamp)]
    data = segment.read(position, batch.size)
    if batch.magic < MAGIC:
        return [(message.offset, message.timestamp_ms) for message in read_messages(data)]
    found = scan(data)
    if batch.is_log_append_time:
        return [(batch.base_offset + delta, batch.max_timestamp) for delta, _, _ in found]
    return [(batch.base_offset + delta, timestamp) for delta, timestamp, _ in found]
