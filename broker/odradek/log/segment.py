"""One segment of a log: the batches from a base offset on, and their indexes.

`size` and `next_offset` say what is published. A write goes to `size`, and moves it only when all of it succeeded; what
lies behind `size` in the file is nobody's, and is cut off before anything else is written.

Batches in a segment ascend, but need not touch: compaction leaves holes between offsets.
"""

import logging
import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self, final

from odradek.log.aborted import AbortedIndex
from odradek.log.files import FileCache, FileHandle, Files
from odradek.log.index import Indexes
from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, RecordBatch, read_header
from odradek_protocol.records.formats import MAGIC_AT, SMALLEST_BATCH, read_any_header
from odradek_protocol.schema import Records

if TYPE_CHECKING:
    from odradek.log.config import LogConfig

__all__ = ["INDEX_SUFFIXES", "MAX_RELATIVE_OFFSET", "NO_TIMESTAMP", "LogSlice", "Segment", "file_name"]

logger = logging.getLogger(__name__)

INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
NO_TIMESTAMP = -1
MAX_RELATIVE_OFFSET = 2**31 - 1
"""Index entries hold offsets relative to the segment's base in an int32."""

INDEX_INTERVAL_BYTES = 4096
"""Kafka's default of `index.interval.bytes`, for indexes that are rebuilt where no configuration is at hand."""
_START = struct.Struct(">qi4xb6xi")
"""The first fields of a batch: base offset, size behind these two, magic, last offset delta."""
_START_SIZE = _START.size
_read_start = _START.unpack
_NEAR_ENOUGH = 64
"""What part of the bytes that were asked for may be left out to end where the index knows that a batch starts: the
small batches behind that need not be looked through then.
"""
_UNREAD = -2
"""Stands for a timestamp that is on disk and was not needed yet."""
_WALK_BYTES = 16 * 1024
"""Read at once when looking for batch headers: a few index intervals, so that one read usually does."""


def file_name(offset: int, suffix: str) -> str:
    """The name of a segment's file: the base offset in twenty digits."""
    return f"{offset:020d}{suffix}"


@final
class LogSlice(Records):
    """Whole batches that lie one behind the other in a segment file.

    `file` stays open as long as the slice is held, even when the segment is deleted meanwhile. `first_offset` is the
    base offset of the first batch (or, where compaction left a hole before it, an offset in that hole);
    `next_offset` the one behind the last batch, and behind such a hole there. `in_memory` tells whether the end of it
    can be read without waiting for the disk, None where nobody looked.
    """

    __slots__ = ("_files", "file", "first_offset", "in_memory", "next_offset", "position")

    def __init__(
        self,
        files: Files,
        file: FileHandle,
        position: int,
        size: int,
        first_offset: int,
        next_offset: int,
        in_memory: bool | None = None,
    ) -> None:
        self.size = size
        self.file = file
        self.position = position
        self.first_offset = first_offset
        self.next_offset = next_offset
        self.in_memory = in_memory
        self._files = files

    def is_in_memory(self, at: int) -> bool:
        """Whether what is left from `at` on can be read without waiting for the disk. Raises OSError.

        Where nobody looked at its end, the byte `at` stands for all of it.
        """
        if self.in_memory is None:
            self.in_memory = self._files.peek(self.file.fd, 1, self.position + at) is not None
        return self.in_memory

    def read_bytes(self, max_bytes: int | None = None) -> bytes:
        """The batches themselves, or the first `max_bytes` of them. Raises OSError."""
        size = self.size if max_bytes is None else min(self.size, max_bytes)
        return self._files.read_at(self.file.fd, size, self.position)


class Segment:
    """A segment. The last one of a log is active: it is appended to, and its indexes are in memory."""

    __slots__ = (
        "_cache",
        "_files",
        "_indexes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_pwrite",
        "_unindexed_bytes",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "handle",
        "jitter_ms",
        "next_offset",
        "path",
        "sealed",
        "size",
        "torn",
        "used",
    )

    def __init__(self, directory: str, base_offset: int, files: Files, cache: FileCache, now_ms: int) -> None:
        """A segment without a byte; `create` makes its files."""
        self.path = os.path.join(directory, file_name(base_offset, ".log"))
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size = 0
        self.created_ms = now_ms
        self.first_timestamp = NO_TIMESTAMP
        self.jitter_ms = 0
        self.handle: FileHandle | None = None
        self.used = False
        self.sealed = False
        self.torn = False
        self._files = files
        self._cache = cache
        self._pwrite = files.pwrite
        self._unindexed_bytes = 0
        self._indexes: Indexes | None = Indexes(self.path[: -len(".log")], files)
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset

    @classmethod
    def of_file(cls, directory: str, base_offset: int, files: Files, cache: FileCache, suffix: str = "") -> Self:
        """A segment that is on disk, sealed. Its indexes are read when first needed; `next_offset` is not known yet.

        `suffix` is that of a log file which is to become a segment. Raises OSError.
        """
        segment = cls(directory, base_offset, files, cache, 0)
        segment.path += suffix
        segment.size = files.size(segment.path)
        segment.created_ms = files.modified_ms(segment.path)
        segment.sealed = True
        segment._indexes = None
        segment.first_timestamp = segment._max_timestamp = _UNREAD
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes, next offset {self.next_offset})"

    # -- the files --------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the empty files; what bears their names already loses its content. Raises OSError."""
        self.torn = True
        self.open()
        self.indexes.create()

    def open(self) -> FileHandle:
        """The handle of the log file, opened (and cleared of bytes that were never published) if need be."""
        handle = self.handle
        if handle is None:
            handle = self._files.open(self.path, create=self.torn)
            if self.torn:
                self._files.ftruncate(handle.fd, self.size)
                self.torn = False
            self.handle = handle
            self._cache.add(self)
        self.used = True
        return handle

    def release(self) -> None:
        """Let go of the descriptor, and in a sealed segment of the indexes: a full one has a few MB of them."""
        self.handle = None
        if self.sealed:
            self._indexes = None

    def seal(self) -> bool:
        """End appending: complete the files; gives whether the indexes lacked something. Raises OSError."""
        if self.torn:
            self.open()
        self.complete_indexes()
        changed = self.indexes.save()
        self.sealed = True
        return changed

    def complete_indexes(self) -> None:
        """Add the entry for the largest timestamp, which a segment that is no longer written to ends with."""
        self.indexes.times.maybe_append(self._max_timestamp, self._max_timestamp_offset - self.base_offset)

    def discard(self) -> None:
        """Let go of the file, whatever is or is not written."""
        self._cache.discard(self)

    def save_indexes(self) -> None:
        """Bring the index files up to what is in memory. Raises OSError."""
        if self._indexes is not None:
            self._indexes.save()

    def sync(self) -> None:
        """Bring the files to the disk. Raises OSError."""
        for path in self.existing_files():
            self._files.sync(path)

    def relocate(self, directory: str, files: Files) -> None:
        """Go on with a copy of the files that lies in `directory`; the active segment's has no indexes yet.

        Raises OSError.
        """
        self._cache.discard(self)
        self.path = os.path.join(directory, os.path.basename(self.path))
        self._files, self._pwrite = files, files.pwrite
        if self._indexes is not None:
            self._indexes.relocate(self.path[: -len(".log")], files)
        if not self.sealed:
            self.indexes.create()

    def existing_files(self) -> list[str]:
        """The paths of the segment's files."""
        stem = self.path[: -len(".log")]
        return [path for suffix in (".log", *INDEX_SUFFIXES) if self._files.exists(path := stem + suffix)]

    def modified_ms(self) -> int:
        """When the log file was last written to. Raises OSError."""
        return self._files.modified_ms(self.path)

    # -- indexes ----------------------------------------------------------------------------------------------------

    @property
    def indexes(self) -> Indexes:
        """The indexes, read or rebuilt if need be. Raises OSError."""
        indexes = self._indexes
        if indexes is None:
            indexes = Indexes.load(self.path[: -len(".log")], self._files, self.size)
            if indexes is None:
                logger.warning("%s: its indexes are missing or make no sense, they are built again", self.path)
                indexes = self._rebuild_indexes()
            self._indexes = indexes
        return indexes

    def _rebuild_indexes(self) -> Indexes:
        """Index the batches again by their headers, which do not tell of aborts: what is known of those is kept."""
        twin = Segment(os.path.dirname(self.path), self.base_offset, self._files, self._cache, 0)
        for _, batch in self.walk(0):
            twin.publish(batch.size, batch.last_offset, batch.max_timestamp, batch.last_offset, INDEX_INTERVAL_BYTES)
        twin.complete_indexes()
        twin.indexes.aborted = Indexes.load_aborted(self.path[: -len(".log")], self._files) or AbortedIndex()
        twin.indexes.create()
        return twin.indexes

    def load_aborted(self) -> AbortedIndex:
        """The aborted transactions whose markers are here, without the other indexes. Raises OSError."""
        if self._indexes is not None:
            return self._indexes.aborted
        return Indexes.load_aborted(self.path[: -len(".log")], self._files) or AbortedIndex()

    @property
    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch, -1 for none. Raises OSError."""
        if self.first_timestamp == _UNREAD:
            self.first_timestamp = next((first.max_timestamp for _, first in self.walk(0)), NO_TIMESTAMP)
        return self.first_timestamp

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, -1 for none. Raises OSError."""
        if self._max_timestamp == _UNREAD:
            self._read_max_timestamp()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that has the largest timestamp. Raises OSError."""
        if self._max_timestamp == _UNREAD:
            self._read_max_timestamp()
        return self._max_timestamp_offset

    @property
    def known_max_timestamp(self) -> int | None:
        """The largest timestamp, where it is known without the files."""
        return None if self._max_timestamp == _UNREAD else self._max_timestamp

    def twin(self, cache: FileCache) -> "Segment":
        """The same sealed segment with handles and indexes of its own, for another thread. Raises OSError."""
        twin = Segment.of_file(os.path.dirname(self.path), self.base_offset, self._files, cache)
        twin.next_offset = self.next_offset
        return twin

    def learn_max_timestamp(self, twin: "Segment") -> None:
        """Take what a twin has read."""
        self._max_timestamp, self._max_timestamp_offset = twin.max_timestamp, twin.max_timestamp_offset

    def _read_max_timestamp(self) -> None:
        """A complete time index ends with the largest timestamp; retention, which asks for it, needs no more of it."""
        last = None if self._indexes else Indexes.load_last_time(self.path[: -len(".log")], self._files)
        if last is None:
            times = self.indexes.times
            last = (times.timestamps[-1], times.offsets[-1]) if times.timestamps else (NO_TIMESTAMP, 0)
        self._max_timestamp, self._max_timestamp_offset = last[0], self.base_offset + last[1]

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(
        self, data: memoryview, last_offset: int, max_timestamp: int, max_timestamp_offset: int, interval: int
    ) -> None:
        """Write batches at the end and publish them. Raises OSError; nothing is published then.

        The arguments are those of `publish`.
        """
        handle = self.handle
        if handle is None:
            handle = self.open()
        size = len(data)
        try:
            written = self._pwrite(handle.fd, data, self.size)
            if written != size:
                self._files.write_at(handle.fd, data[written:], self.size + written)
        except OSError:
            self.tear()
            raise
        self.used = True
        self.publish(size, last_offset, max_timestamp, max_timestamp_offset, interval)

    def publish(
        self, size: int, last_offset: int, max_timestamp: int, max_timestamp_offset: int, interval: int
    ) -> None:
        """Count `size` bytes of batches at the end as the segment's.

        `max_timestamp_offset` is the last offset of the batch that has `max_timestamp`. They are indexed when more than
        `interval` bytes came since the last entry.
        """
        position = self.size
        if not position:
            self.first_timestamp = max_timestamp
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = max_timestamp_offset
        if self._unindexed_bytes > interval:
            indexes = self.indexes
            indexes.offsets.append(last_offset - self.base_offset, position)
            indexes.times.maybe_append(self._max_timestamp, self._max_timestamp_offset - self.base_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += size
        self.next_offset = last_offset + 1
        self.size = position + size

    def must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int, config: "LogConfig") -> bool:
        """Whether `size` more bytes up to `last_offset` belong into a new segment.

        Full indexes make one when the next entry is due. Time runs from the first batch's largest timestamp to that of
        the new one; where the first has none, from the creation of the segment to now.
        """
        relative_offset = last_offset - self.base_offset
        if not self.size:
            return relative_offset > MAX_RELATIVE_OFFSET
        first = self.first_timestamp
        waited = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return (
            self.size + size > config.segment_bytes
            or waited > config.segment_ms - self.jitter_ms
            or relative_offset > MAX_RELATIVE_OFFSET
            or (
                self._unindexed_bytes > config.index_interval_bytes and self.indexes.is_full(config.segment_index_bytes)
            )
        )

    def tear(self) -> None:
        """Note that the file holds bytes behind its published ones; the next opening cuts them off."""
        self.torn = True
        self._cache.discard(self)

    def reopen_for_append(self) -> None:
        """Make a segment of a cleanly closed log the active one, and find the offset behind its last batch.

        Raises OSError.
        """
        self.sealed = False
        self.first_timestamp = next((first.max_timestamp for _, first in self.walk(0)), NO_TIMESTAMP)
        end = self._read_tail()
        if end < 0:
            logger.warning("%s: there is no batch where its indexes say, they are built again", self.path)
            self._indexes = self._rebuild_indexes()
            end = max(self._read_tail(), 0)
        if end != self.size:
            logger.warning(
                "%s: %d bytes at position %d are no batch, they are cut off", self.path, self.size - end, end
            )
            self.size = end
            self.tear()
            self.open()
        positions = self.indexes.offsets.positions
        self._unindexed_bytes = end - (positions[-1] if positions else 0)

    def _read_tail(self) -> int:
        """Find offset and timestamp of the end by the batches behind the last entry of the time index.

        Gives the position behind them, -1 when there is none where the entry says. Raises OSError.
        """
        offsets, times = self.indexes.offsets, self.indexes.times
        self._read_max_timestamp()
        self.next_offset = self.base_offset
        # Behind the last entry of the time index there may be larger timestamps.
        start = offsets.position_of(times.offsets[-1]) if times.offsets else 0
        end = -1 if start else 0
        for position, batch in self.walk(start):
            if batch.base_offset < self.next_offset or batch.last_offset_delta < 0:
                break
            self.next_offset, end = batch.last_offset + 1, position + batch.size
            if batch.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = batch.max_timestamp, batch.last_offset
        return end

    def truncate_to(self, offset: int) -> None:
        """Drop the batches that hold or follow `offset`, and append behind the rest. Raises OSError."""
        found = self.find(offset)
        if found is not None:
            position, batch = found
            self.indexes.truncate(position, batch.base_offset, self.base_offset)
            self.size = position
            self.tear()
            self.open()
        self.reopen_for_append()

    # -- reading ----------------------------------------------------------------------------------------------------

    def walk(self, position: int) -> Iterator[tuple[int, RecordBatch]]:
        """The position and header of each batch, of whatever format, from the one at `position` on. Raises OSError.

        Ends, like a torn file, where there is no whole batch.
        """
        handle, end = self.open(), self.size
        window, start = b"", position
        while position + SMALLEST_BATCH <= end:
            if position + HEADER_SIZE > start + len(window):
                window, start = self._files.pread(handle.fd, min(_WALK_BYTES, end - position), position), position
                if len(window) < SMALLEST_BATCH:
                    return
            at = position - start
            try:
                batch = (read_header if window[at + MAGIC_AT] == MAGIC else read_any_header)(window, at)
            except ProtocolError:
                return
            if position + batch.size > end:
                return
            yield position, batch
            position += batch.size

    def find(self, offset: int) -> tuple[int, RecordBatch] | None:
        """The position and header of the batch that holds `offset`, or of the next one. Raises OSError."""
        for position, batch in self.walk(self.start_for(offset)):
            if batch.base_offset + batch.last_offset_delta >= offset:
                return position, batch
        return None

    def start_for(self, offset: int) -> int:
        """The start of a batch that is at or before the one that holds `offset`, by the index. Raises OSError."""
        start = self.indexes.offsets.position_of(offset - self.base_offset)
        if start and self._is_wrong_at(start, offset):
            return self._index_anew().offsets.position_of(offset - self.base_offset)
        return start

    def _is_wrong_at(self, position: int, offset: int) -> bool:
        """Whether the index of a sealed segment lies: no batch that ends at or before `offset` starts at `position`."""
        if not self.sealed:
            return False
        batch = next((batch for _, batch in self.walk(position)), None)
        return batch is None or not self.base_offset <= batch.base_offset <= batch.last_offset <= offset

    def _index_anew(self) -> Indexes:
        logger.warning("%s: its index does not fit, it is built again", self.path)
        self._indexes = self._rebuild_indexes()
        return self._indexes

    def slice(
        self, position: int, first_offset: int, max_bytes: int, end_offset: int, at_least_one: bool
    ) -> LogSlice | None:
        """Whole batches from the one at `position` on, which begins with `first_offset`. Raises OSError.

        They are at most `max_bytes`, but with `at_least_one` always one batch; none reaches `end_offset`. None when no
        batch fits. There may be somewhat less than fits, where the index tells of an edge that is near enough.
        """
        handle = self.handle or self.open()
        self.used = True
        limit = position + max_bytes
        in_memory = None
        if end_offset >= self.next_offset and self.size <= limit:
            end, next_offset = self.size, self.next_offset
        else:
            end, next_offset = self._batch_before(limit, end_offset - 1), -1
            if end > position:
                ahead = self._files.peek(handle.fd, _START_SIZE, end)
                in_memory = ahead is not None
                if ahead is not None:
                    next_offset = self._offset_of_edge(end, ahead, limit, max_bytes // _NEAR_ENOUGH, end_offset)
            if next_offset < 0:
                end, next_offset = self._extent(position, end, limit, end_offset, at_least_one)
        if end == position:
            return None
        return LogSlice(self._files, handle, position, end - position, first_offset, next_offset, in_memory)

    def _offset_of_edge(self, end: int, ahead: bytearray, limit: int, spare: int, end_offset: int) -> int:
        """The first offset of the batch at `end`, whose first bytes are `ahead`, if a slice may end before it; else -1.

        It may where the batch reaches over `limit`, or no more than `spare` bytes would be left out.
        """
        if len(ahead) < _START_SIZE:
            return -1
        base_offset, size, magic, last_offset_delta = _read_start(ahead)
        behind = end + size + LOG_OVERHEAD
        ends = behind > limit or limit - end <= spare
        sound = behind <= self.size and self.base_offset <= base_offset <= base_offset + last_offset_delta < end_offset
        return int(base_offset) if ends and sound and magic == MAGIC else -1

    def _extent(self, position: int, end: int, limit: int, end_offset: int, at_least_one: bool) -> tuple[int, int]:
        """Where the batches end that are to be given, and the offset behind them; `position` where none is.

        They are looked through from `end` on, where the index knows of a batch.
        """
        if end > position and self._is_wrong_at(end, end_offset - 1):
            self._index_anew()
            end = self._batch_before(limit, end_offset - 1)
        end = max(position, end)
        next_offset = -1
        for start, batch in self.walk(end):
            if next_offset < 0 and start > position:
                next_offset = batch.base_offset
            last_offset = batch.base_offset + batch.last_offset_delta
            if last_offset >= end_offset or (start + batch.size > limit and not (at_least_one and start == position)):
                break
            end, next_offset = start + batch.size, last_offset + 1
        return end, next_offset

    def _batch_before(self, position: int, offset: int) -> int:
        """The greatest start of a batch, of those in the index, that is at most `position` and not behind `offset`."""
        offsets = self.indexes.offsets
        before = offsets.position_before(position)
        if offset >= self.next_offset - 1:
            return before
        return min(before, offsets.position_of(offset - self.base_offset))

    def read(self, position: int, size: int) -> memoryview:
        """`size` bytes at `position`. Raises OSError."""
        return memoryview(self._files.read_at(self.open().fd, size, position))
