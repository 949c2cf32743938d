"""Commits of offsets by topic and column, and how they become records of __consumer_offsets.

A consumer commits all partitions that it reads at once, mostly without metadata. Such commits are one record again and
again but for the partition, the offset and the leader epoch, and are written as that (`encode_alike`):

    key      | version, group, topic | partition |
    value 3  | version | offset | leader epoch | metadata, commit timestamp |
    value 1  | version | offset | metadata, commit timestamp, expiry timestamp |    where an expiry time is told
"""

import struct
from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

from odradek.groups.offsets import CommittedOffset
from odradek.groups.records import offset_key, offset_value
from odradek_protocol.records.build import Difference, encode_alike, encode_keyed

__all__ = ["Commit", "NewOffsets", "encode_commits"]

Commit = tuple[str, dict[int, CommittedOffset]]
"""What is committed of a topic, by partition."""

FEW = 4
"""So many records are written one by one: writing them as one that differs would cost more."""

PARTITION_BYTES = 4
OFFSET_AT = 2
LEADER_EPOCH_AT = 10


_committed_offset = partial(tuple.__new__, CommittedOffset)
"""As `CommittedOffset._make`, without a call in Python for each."""


class NewOffsets(NamedTuple):
    """What is to be committed of a topic: in each column a value for each partition. A timestamp of -1 is now."""

    topic: str
    partitions: Sequence[int]
    offsets: Sequence[int]
    leader_epochs: Sequence[int]
    timestamps_ms: Sequence[int]
    metadata: Sequence[str]

    def committed(self, now_ms: int, expire_ms: int, record_offset: int) -> list[CommittedOffset]:
        """What is kept for each partition, where the record of the first will be at `record_offset`."""
        times = self.timestamps_ms
        if min(times) < 0:
            times = [now_ms if time < 0 else time for time in times]
        record_offsets = range(record_offset, record_offset + len(times))
        rows = zip(self.offsets, self.leader_epochs, self.metadata, times, repeat(expire_ms), record_offsets)
        return list(map(_committed_offset, rows))


def encode_commits(
    body: bytearray, first: int, group_id: str, new: NewOffsets, committed: Sequence[CommittedOffset]
) -> None:
    """Append the records of `committed`, which `new` has become, to the `first` records that `body` has already.

    Raises INVALID_REQUEST for text that they cannot hold.
    """
    topic, partitions, count = new.topic, new.partitions, len(committed)
    if count <= FEW or not _differ_by_place_only(new):
        records = [
            (offset_key(group_id, topic, partition), offset_value(each))
            for partition, each in zip(partitions, committed, strict=True)
        ]
        encode_keyed(body, first, records)
        return
    key, sample = offset_key(group_id, topic, partitions[0]), committed[0]
    differences = [
        Difference(in_value=False, position=len(key) - PARTITION_BYTES, column=struct.pack(f">{count}i", *partitions)),
        Difference(in_value=True, position=OFFSET_AT, column=struct.pack(f">{count}q", *new.offsets)),
    ]
    if sample.expire_timestamp_ms < 0:
        epochs = struct.pack(f">{count}i", *new.leader_epochs)
        differences.append(Difference(in_value=True, position=LEADER_EPOCH_AT, column=epochs))
    encode_alike(body, first, count, key, offset_value(sample), differences)


def _differ_by_place_only(new: NewOffsets) -> bool:
    """Whether all commits have the same metadata and the same time."""
    metadata, times = new.metadata, new.timestamps_ms
    return metadata.count(metadata[0]) == len(metadata) and times.count(times[0]) == len(times)
