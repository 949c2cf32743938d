"""Commits of offsets by topic and column, and how they become records of __consumer_offsets.

A consumer commits all partitions that it reads at once, mostly without metadata. Such commits are one record again and
again but for the partition, the offset and the leader epoch, and are written as that (`encode_alike`). Of a single one
without metadata the record is kept, of one alone the batch, and the next commit is a copy with other numbers in it:

    key      | version, group, topic | partition |
    value 3  | version | offset | leader epoch | metadata, commit timestamp |
    value 1  | version | offset | metadata, commit timestamp, expiry timestamp |    where an expiry time is told
"""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from odradek.groups.offsets import CommittedOffset, Row
from odradek.groups.records import offset_key, offset_value
from odradek_protocol.records.batch import finish_copy
from odradek_protocol.records.build import (
    Difference,
    encode_alike,
    encode_keyed,
    encode_prepared,
    prepare_keyed,
    wrap_keyed,
)

__all__ = ["NOW", "NewOffsets", "encode_alone", "encode_commits"]

NOW = -1
"""The timestamp of a commit that tells none, as all do but those of version 1 of OffsetCommit."""

FEW = 4
"""So many records are written one by one: writing them as one that differs would cost more."""

PARTITION_BYTES = 4
OFFSET_AT = 2
LEADER_EPOCH_AT = 10

TIME_AT = 16
"""Behind the length of metadata that is empty."""

SAMPLE = CommittedOffset(0, 0, "", 0, -1, 0)

RECORDS_KEPT = 8192
"""Consumers commit the same partitions again and again; so many records take about 2 MB."""

_put_offset = struct.Struct(">qi").pack_into
_put_time = struct.Struct(">q").pack_into
"""Bound here, as every commit asks for them."""


class NewOffsets(NamedTuple):
    """What is to be committed of a topic: in each column a value for each partition. A negative timestamp is now."""

    topic: str
    partitions: Sequence[int]
    offsets: Sequence[int]
    leader_epochs: Sequence[int]
    timestamps_ms: Sequence[int]
    metadata: Sequence[str]

    def committed(self, now_ms: int, expire_ms: int, record_offset: int) -> list[Row]:
        """What is kept for each partition, where the record of the first will be at `record_offset`."""
        _, _, offsets, leader_epochs, timestamps_ms, metadata = self
        count = len(offsets)
        times: Iterable[int] = timestamps_ms
        if timestamps_ms.count(NOW) == count:
            times = repeat(now_ms)
        elif min(timestamps_ms) < 0:
            times = [now_ms if time < 0 else time for time in times]
        record_offsets = range(record_offset, record_offset + count)
        return list(zip(offsets, leader_epochs, metadata, times, repeat(expire_ms), record_offsets))

    def some(self, rows: Sequence[int]) -> "NewOffsets":
        """These rows of it."""
        topic, *columns = self
        return NewOffsets(topic, *([column[row] for row in rows] for column in columns))  # type: ignore[arg-type]


def encode_commits(body: bytearray, first: int, group_id: str, new: NewOffsets, committed: Sequence[Row]) -> None:
    """Append the records of `committed`, which `new` has become, to the `first` records that `body` has already.

    Raises INVALID_REQUEST for text that they cannot hold.
    """
    topic, partitions, count = new.topic, new.partitions, len(committed)
    if count <= FEW or not _differ_by_place_only(new):
        for offset_delta, (partition, row) in enumerate(zip(partitions, committed, strict=True), first):
            _encode_commit(body, offset_delta, group_id, topic, partition, row)
        return
    key, sample = offset_key(group_id, topic, partitions[0]), CommittedOffset._make(committed[0])
    differences = [
        Difference.of(partitions, "i", len(key) - PARTITION_BYTES, in_value=False),
        Difference.of(new.offsets, "q", OFFSET_AT, in_value=True),
    ]
    epochs = new.leader_epochs
    if sample.expire_timestamp_ms < 0 and epochs.count(epochs[0]) < count:
        differences.append(Difference.of(epochs, "i", LEADER_EPOCH_AT, in_value=True))
    encode_alike(body, first, count, key, offset_value(sample), differences)


def encode_alone(group_id: str, topic: str, partition: int, row: Row, now_ms: int) -> bytearray | None:
    """The batch of one commit; None where the commit is one of those that are not kept."""
    offset, leader_epoch, metadata, time_ms, expire_ms, _ = row
    if metadata or expire_ms >= 0:
        return None
    kept, value_at = _kept_batch(group_id, topic, partition)
    batch = bytearray(kept)
    _put_offset(batch, value_at + OFFSET_AT, offset, leader_epoch)
    _put_time(batch, value_at + TIME_AT, time_ms)
    finish_copy(batch, now_ms)
    return batch


@lru_cache(maxsize=RECORDS_KEPT)
def _kept_batch(group_id: str, topic: str, partition: int) -> tuple[bytes, int]:
    """The batch of one commit without metadata, and where the value begins in that."""
    value = offset_value(SAMPLE)
    body = bytearray()
    encode_keyed(body, 0, [(offset_key(group_id, topic, partition), value)])
    batch = wrap_keyed(body, 1, SAMPLE.commit_timestamp_ms)
    return bytes(batch), len(batch) - len(value) - 1


def _encode_commit(body: bytearray, offset_delta: int, group_id: str, topic: str, partition: int, row: Row) -> None:
    offset, leader_epoch, metadata, time_ms, expire_ms, _ = row
    if metadata or expire_ms >= 0:
        value = offset_value(CommittedOffset._make(row))
        encode_keyed(body, offset_delta, [(offset_key(group_id, topic, partition), value)])
        return
    prepared, value_at = _prepared(group_id, topic, partition)
    value_at += encode_prepared(body, offset_delta, prepared)
    _put_offset(body, value_at + OFFSET_AT, offset, leader_epoch)
    _put_time(body, value_at + TIME_AT, time_ms)


@lru_cache(maxsize=RECORDS_KEPT)
def _prepared(group_id: str, topic: str, partition: int) -> tuple[bytes, int]:
    """The record of a commit without metadata behind its offset delta, and where its value begins in that."""
    value = offset_value(SAMPLE)
    prepared = prepare_keyed(offset_key(group_id, topic, partition), value)
    return prepared, len(prepared) - len(value) - 1


def _differ_by_place_only(new: NewOffsets) -> bool:
    """Whether all commits have the same metadata and the same time."""
    metadata, times = new.metadata, new.timestamps_ms
    return metadata.count(metadata[0]) == len(metadata) and times.count(times[0]) == len(times)
