"""Commits of offsets by topic and column, and how they become records of __consumer_offsets.

A consumer commits all partitions that it reads at once, mostly without metadata. Such commits are one record again and
again but for the partition, the offset and the leader epoch, and are written as that (`encode_alike`):

    key      | version, group, topic | partition |
    value 3  | version | offset | leader epoch | metadata, commit timestamp |
    value 1  | version | offset | metadata, commit timestamp, expiry timestamp |    where an expiry time is told
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from odradek.groups.offsets import CommittedOffset, Row
from odradek.groups.records import offset_key, offset_value
from odradek_protocol.records.build import Difference, encode_alike, encode_keyed

__all__ = ["NOW", "NewOffsets", "encode_commits"]

NOW = -1
"""The timestamp of a commit that tells none, as all do but those of version 1 of OffsetCommit."""

FEW = 4
"""So many records are written one by one: writing them as one that differs would cost more."""

PARTITION_BYTES = 4
OFFSET_AT = 2
LEADER_EPOCH_AT = 10


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
        times: Iterable[int] = self.timestamps_ms
        if self.timestamps_ms.count(NOW) == len(self.timestamps_ms):
            times = repeat(now_ms)
        elif min(self.timestamps_ms) < 0:
            times = [now_ms if time < 0 else time for time in times]
        record_offsets = range(record_offset, record_offset + len(self.offsets))
        return list(zip(self.offsets, self.leader_epochs, self.metadata, times, repeat(expire_ms), record_offsets))


def encode_commits(body: bytearray, first: int, group_id: str, new: NewOffsets, committed: Sequence[Row]) -> None:
    """Append the records of `committed`, which `new` has become, to the `first` records that `body` has already.

    Raises INVALID_REQUEST for text that they cannot hold.
    """
    topic, partitions, count = new.topic, new.partitions, len(committed)
    if count <= FEW or not _differ_by_place_only(new):
        records = [
            (offset_key(group_id, topic, partition), offset_value(CommittedOffset._make(each)))
            for partition, each in zip(partitions, committed, strict=True)
        ]
        encode_keyed(body, first, records)
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


def _differ_by_place_only(new: NewOffsets) -> bool:
    """Whether all commits have the same metadata and the same time."""
    metadata, times = new.metadata, new.timestamps_ms
    return metadata.count(metadata[0]) == len(metadata) and times.count(times[0]) == len(times)
