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
from odradek_protocol.records.batch import HEADER_SIZE, RecordBatch, finish_copy, read_header
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
        fields = (topic, partitions, offsets, leader_epochs, metadata, times, expire_ms, record_offset)
        return tuple.__new__(Commit, fields)  # a frame of Python less than Commit(...)

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
            part = commit.part(start, start + ROWS_AT_ONCE)
            body += _written(_layout(group_id, part, first + start, alone=False), part)
        return
    for offset_delta, (partition, row) in enumerate(commit.by_partition(), first):
        value = offset_value(CommittedOffset._make(row))
        encode_keyed(body, offset_delta, [(offset_key(group_id, commit.topic, partition), value)])


def encode_alone(group_id: str, commit: Commit, now_ms: int) -> tuple[bytearray, RecordBatch] | None:
    """The batch that has nothing but this commit; None where its records are not written all at once.

    The header is good until the next commit. Raises INVALID_REQUEST for text that it cannot hold.
    """
    if len(commit.partitions) > ROWS_AT_ONCE or not _are_alike(commit):
        return None
    layout = _layout(group_id, commit, 0, alone=True)
    batch = bytearray(_written(layout, commit))
    header = layout.header
    header.attributes = 0  # an append may have set one
    finish_copy(batch, header, now_ms)
    return batch, header


def _are_alike(commit: Commit) -> bool:
    metadata = commit.metadata
    return commit.expire_timestamp_ms < 0 and metadata.count(metadata[0]) == len(metadata)


class _Layout:
    """Records, and where they are alone in a batch the header of that before them."""

    __slots__ = ("between", "header", "rows", "width")

    def __init__(self, rows: struct.Struct, between: list[Any], width: int, header: RecordBatch) -> None:
        """Each record has `width` values in `between`; those of the columns are to be put there."""
        self.rows = rows
        self.between = between
        self.width = width
        self.header = header


def _layout(group_id: str, commit: Commit, first: int, *, alone: bool) -> _Layout:
    """That of a commit whose first record is record `first` of its batch."""
    metadata = commit.metadata[0]
    kept = _kept_with_metadata if metadata else _kept
    return kept[group_id, commit.topic, tuple(commit.partitions), metadata, first, alone]


def _written(layout: _Layout, commit: Commit) -> bytes:
    values, width = layout.between.copy(), layout.width
    values[1::width] = commit.offsets
    values[2::width] = commit.leader_epochs
    values[width - 1 :: width] = commit.timestamps_ms
    return layout.rows.pack(*values)


_Commits = tuple[str, str, tuple[int, ...], str, int, bool]
"""Group, topic, partitions and metadata, how many records stand before, and whether they get a header."""


class _Kept(dict[_Commits, _Layout]):
    """Layouts of records, by what is committed.

    All are forgotten when there would be too many: to know which one was not used for long would cost every commit.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._bytes = 0
        self._max_bytes = max_bytes

    def __missing__(self, commits: _Commits) -> _Layout:
        """Make the layout of such commits. Raises INVALID_REQUEST for text that they cannot hold."""
        made = _laid_out(*commits)
        size = made.rows.size + ROW_BYTES * (4 + len(commits[2]))
        if self._bytes + size > self._max_bytes:
            self.clear()
            self._bytes = 0
        if size <= self._max_bytes:
            self[commits] = made
            self._bytes += size
        return made


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
    batch = wrap_keyed(records, len(parts), 0)
    if alone:
        parts[0] = bytes(batch[:HEADER_SIZE]) + parts[0]
    between: list[Any] = [None] * (width * len(parts))
    between[::width] = parts
    if metadata:
        between[3::width] = [text] * len(parts)
    rows = struct.Struct(">" + "".join(f"{len(part)}s{columns}" for part in parts))
    return _Layout(rows, between, width, read_header(batch))
