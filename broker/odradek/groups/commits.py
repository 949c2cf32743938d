"""Commits of offsets by topic and column, and how they become records of __consumer_offsets.

A consumer commits all partitions that it reads at once, and the same ones again and again. The records of such commits
differ in what a few columns tell only; what lies between those is kept (`_Kept`):

    key      | version, group, topic, partition |
    value 3  | version | offset | leader epoch | metadata | commit timestamp |

Where the metadata are not the same for all of them, or there is an expiry time (value 1), they are written one by one.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from odradek.groups.offsets import Commit, CommittedOffset
from odradek.groups.records import offset_key, offset_value
from odradek_protocol.records.batch import HEADER_SIZE, finish_copy
from odradek_protocol.records.build import encode_keyed, wrap_keyed

__all__ = ["NOW", "NewOffsets", "encode_alone", "encode_commits"]

NOW = -1
"""The timestamp of a commit that tells none, as all do but those of version 1 of OffsetCommit."""

COLUMNS: Final = "qi2xqx"
"""A value behind its version where the metadata is "", and the number of headers: there are none."""

METADATA_AT: Final = 14
TIMESTAMP_BYTES: Final = 8

ROWS_AT_ONCE = 1024
"""Records that are laid out together at most, so that no request can have more than these kept."""

BYTES_KEPT = 8 * 1024 * 1024
"""What layouts take at most; 100 partitions take some 26 kB, one alone 1 kB."""

BYTES_KEPT_WITH_METADATA = 1024 * 1024
"""Metadata may be another text in each commit: those are kept apart, so as to take no place from the others."""

ROW_BYTES = 160
"""What a record takes beside its bytes; a layout alone takes as much as four."""

ALL = slice(None)

_PARTITION = struct.Struct(">i")


class NewOffsets(NamedTuple):
    """What is to be committed of a topic: in each column a value for each partition. A negative timestamp is now."""

    topic: str
    partitions: Sequence[int]
    offsets: Sequence[int]
    leader_epochs: Sequence[int]
    timestamps_ms: Sequence[int]
    metadata: Sequence[str]

    def committed(self, now_ms: int, expire_ms: int, record_offset: int) -> Commit:
        """What is committed at `now_ms`, where the record of the first will be at `record_offset`."""
        topic, partitions, offsets, leader_epochs, times, metadata = self
        count = len(offsets)
        if times.count(NOW) == count:
            times = (now_ms,) * count
        elif min(times) < 0:
            times = [now_ms if time < 0 else time for time in times]
        return Commit(topic, partitions, offsets, leader_epochs, metadata, times, expire_ms, record_offset)

    def some(self, rows: Sequence[int]) -> "NewOffsets":
        """These rows of it."""
        topic, *columns = self
        return NewOffsets._make((topic, *([column[row] for row in rows] for column in columns)))


def encode_commits(body: bytearray, first: int, group_id: str, commit: Commit) -> None:
    """Append the records of a commit to the `first` records that `body` has already.

    Raises INVALID_REQUEST for text that they cannot hold.
    """
    count = len(commit.partitions)
    if _are_alike(commit):
        for start in range(0, count, ROWS_AT_ONCE):
            body += _written(group_id, commit, slice(start, start + ROWS_AT_ONCE), first + start, alone=False)
        return
    for offset_delta, (partition, row) in enumerate(commit.by_partition(), first):
        value = offset_value(CommittedOffset._make(row))
        encode_keyed(body, offset_delta, [(offset_key(group_id, commit.topic, partition), value)])


def encode_alone(group_id: str, commit: Commit, now_ms: int) -> bytearray | None:
    """The batch that has nothing but this commit; None where its records are not written all at once.

    Raises INVALID_REQUEST for text that it cannot hold.
    """
    if len(commit.partitions) > ROWS_AT_ONCE or not _are_alike(commit):
        return None
    batch = bytearray(_written(group_id, commit, ALL, 0, alone=True))
    finish_copy(batch, now_ms)
    return batch


def _are_alike(commit: Commit) -> bool:
    metadata = commit.metadata
    return commit.expire_timestamp_ms < 0 and metadata.count(metadata[0]) == len(metadata)


def _written(group_id: str, commit: Commit, rows: slice, first: int, *, alone: bool) -> bytes:
    """The records of these rows, of which the first is record `first`; where they are `alone`, behind a header."""
    topic, partitions, offsets, leader_epochs, metadata, timestamps_ms, _, _ = commit
    kept = _kept_with_metadata if metadata[0] else _kept
    layout, between, width = kept.find((group_id, topic, tuple(partitions[rows]), metadata[0], first, alone))
    values = between.copy()
    values[1::width] = offsets[rows]
    values[2::width] = leader_epochs[rows]
    values[width - 1 :: width] = timestamps_ms[rows]
    return layout.pack(*values)


class _Layout(NamedTuple):
    """Records, and all of their bytes but the columns, which are None in `between`; each record has `width` values."""

    layout: struct.Struct
    between: list[Any]
    width: int


_Commits = tuple[str, str, tuple[int, ...], str, int, bool]
"""Group, topic, partitions and metadata, how many records stand before, and whether they get a header."""


class _Kept:
    """Layouts of records, by what is committed.

    All are forgotten when there would be too many: to know which one was not used for long would cost every commit.
    """

    def __init__(self, max_bytes: int) -> None:
        self._found: dict[_Commits, _Layout] = {}
        self._bytes = 0
        self._max_bytes = max_bytes

    def find(self, commits: _Commits) -> _Layout:
        """The layout of such commits. Raises INVALID_REQUEST for text that they cannot hold."""
        found = self._found.get(commits)
        if found is None:
            found = _laid_out(*commits)
            size = found.layout.size + ROW_BYTES * (4 + len(commits[2]))
            if self._bytes + size > self._max_bytes:
                self._found.clear()
                self._bytes = 0
            if size <= self._max_bytes:
                self._found[commits] = found
                self._bytes += size
        return found


_kept = _Kept(BYTES_KEPT)
_kept_with_metadata = _Kept(BYTES_KEPT_WITH_METADATA)


def _laid_out(group_id: str, topic: str, partitions: Sequence[int], metadata: str, first: int, alone: bool) -> _Layout:
    columns, width = COLUMNS, 4
    value = offset_value(CommittedOffset(0, 0, metadata, 0, -1, 0))
    text = value[METADATA_AT:-TIMESTAMP_BYTES]
    if metadata:
        columns, width = f"qi{len(text)}sqx", 5
    behind = struct.calcsize(">" + columns)
    key = offset_key(group_id, topic, 0)[: -_PARTITION.size]
    records = bytearray()
    parts: list[bytes] = []
    for offset_delta, partition in enumerate(partitions, first):
        start = len(records)
        encode_keyed(records, offset_delta, [(key + _PARTITION.pack(partition), value)])
        parts.append(bytes(records[start:-behind]))
    if alone:
        parts[0] = bytes(wrap_keyed(records, len(parts), 0)[:HEADER_SIZE]) + parts[0]
    between: list[Any] = [None] * (width * len(parts))
    between[::width] = parts
    if metadata:
        between[3::width] = [text] * len(parts)
    return _Layout(struct.Struct(">" + "".join(f"{len(part)}s{columns}" for part in parts)), between, width)
