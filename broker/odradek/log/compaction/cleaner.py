"""One round of cleaning a log: two passes over its files, which make new ones beside them.

The first pass puts the keys of the dirty segments into the offset map, until it is full or there are no more. The
second goes through all segments from the first one on, as far as the first pass came, and writes what is left of
neighbours that together fit into one segment to files that end in ".cleaned". The log itself is not touched: it may be
read, appended to and shortened meanwhile, and the broker decides whether the new files take the place of the old ones.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence

from odradek.log.aborted import AbortedEntry
from odradek.log.compaction.batches import BatchFilter, Kept, LastRecord, open_messages, records_of
from odradek.log.compaction.keys import Scan
from odradek.log.compaction.offset_map import OffsetMap
from odradek.log.compaction.replacement import CLEANED_SUFFIX
from odradek.log.compaction.requests import Cleaned, CleanedGroup, CleanRequest, SegmentFile
from odradek.log.compaction.survivors import Survivors
from odradek.log.compaction.transactions import TransactionPass
from odradek.log.files import FileCache, FileHandle, Files
from odradek.log.index import Indexes
from odradek.log.segment import INDEX_SUFFIXES, MAX_RELATIVE_OFFSET, Segment, file_name
from odradek.log.validation import read_end_marker
from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import HEADER_SIZE, MAGIC, RecordBatch
from odradek_protocol.records.formats import MAGIC_AT, SMALLEST_BATCH, any_crc_matches, read_any_header

__all__ = ["Cleaner"]

_WRITE_BYTES = 1 << 20
"""Written at once."""
_SURVIVORS_SHARE = 4
"""One in how many bytes of the memory may go to the offsets' states; without these each key is looked up."""
_LARGEST_SEGMENT = 2**31 - 1
"""Index entries hold positions in an int32."""

Pace = Callable[[int], None]
"""Called with a number of bytes that are about to be read or written; returns when they may be."""


class Cleaner:
    """The round that a request asks for. What goes wrong is ProtocolError or BrokerError (damage) or OSError."""

    def __init__(self, request: CleanRequest, files: Files, pace: Pace) -> None:
        self._request = request
        self._files = files
        self._pace = pace
        self._cache = FileCache(2)
        self._old_horizon_ms = 0
        """Tombstones of formats 0 and 1 go from segments that were not written to since then."""
        self._aborted: list[AbortedEntry] = []
        dirty = max(request.end_offset - request.first_dirty_offset, 0)
        told = dirty if dirty <= request.memory_bytes // _SURVIVORS_SHARE else 0
        self._survivors = Survivors(request.first_dirty_offset, told)
        self._offsets = OffsetMap(request.memory_bytes - told, request.load_factor, dirty)
        self._bytes_read = self._bytes_written = self._records_read = self._records_written = 0

    def run(self) -> Generator[CleanedGroup | Cleaned, None, None]:
        """Clean, group by group; each one's files are complete when it is given, and Cleaned comes last.

        To be closed, which removes the files that were not taken.
        """
        request = self._request
        self._aborted = request.aborted + self._read_aborted()
        clean = [segment for segment in request.segments if segment.base_offset < request.first_dirty_offset]
        if clean:
            self._old_horizon_ms = self._modified_ms(clean[-1]) - request.delete_retention_ms
        latest_offset = self._read_keys()
        self._survivors.settle(self._offsets.offsets(), latest_offset)
        first_offset = request.segments[0].base_offset if request.segments else 0
        transactions = TransactionPass(self._aborted, first_offset)
        rules = BatchFilter(
            self._offsets,
            self._survivors,
            latest_offset,
            transactions,
            {producer_id: LastRecord(offset, epoch) for producer_id, offset, epoch in request.producers},
            end_offset=request.end_offset,
            now_ms=request.now_ms,
            horizon_ms=request.now_ms + request.delete_retention_ms,
        )
        for group in self._groups(latest_offset):
            try:
                self._clean_group(group, rules, transactions)
                yield CleanedGroup([segment.base_offset for segment in group])
            finally:
                # What the broker took has other names by now.
                self._remove_cleaned(group[0].base_offset)
        yield Cleaned(
            latest_offset + 1, self._bytes_read, self._bytes_written, self._records_read, self._records_written
        )

    def _read_aborted(self) -> list[AbortedEntry]:
        found = []
        for segment in self._request.segments:
            index = Indexes.load_aborted(self._stem(segment.base_offset), self._files)
            if index is None:
                raise ProtocolError(f"the index of transactions of {self._stem(segment.base_offset)} makes no sense")
            found += index.entries
        return found

    # -- the first pass ---------------------------------------------------------------------------------------------

    def _read_keys(self) -> int:
        """Note the last offset of each dirty key; gives up to which offset that is known."""
        request = self._request
        start = request.first_dirty_offset
        transactions = TransactionPass(self._aborted, start)
        latest_offset = start - 1
        for segment in request.segments:
            if segment.next_offset <= start:
                continue
            for data, batch in self._batches(segment, self._position_of(segment, start)):
                if batch.is_control:
                    transactions.read_marker(batch, read_end_marker(data))
                elif not transactions.read_batch(batch) and batch.last_offset >= start:
                    full_at = self._put_keys(data, batch)
                    if full_at is not None:
                        return max(latest_offset, full_at)
                latest_offset = max(latest_offset, batch.last_offset)
            # Behind the last batch there may be offsets whose records an earlier round removed.
            latest_offset = min(segment.next_offset, request.end_offset) - 1
        return latest_offset

    def _put_keys(self, data: memoryview, batch: RecordBatch) -> int | None:
        """Put in the dirty keys of a batch; gives the last offset of which it was done, when there is no more room."""
        base_offset, start = batch.base_offset, self._request.first_dirty_offset
        if batch.magic < MAGIC:
            dirty = [one for one in open_messages(data) if one.key is not None and one.offset >= start]
            keys = [one.key or b"" for one in dirty]
            return self._put(keys, [one.offset for one in dirty], max(map(len, keys), default=0))
        scan = Scan(records_of(data, batch), batch.record_count, batch.last_offset_delta)
        keys = scan.keys
        offsets = [base_offset + delta for delta in scan.deltas]
        self._survivors.note_tombstones([offsets[number] for number in scan.tombstones])
        if base_offset < start or scan.keyless:
            for number in scan.keyless:
                offsets[number] = start - 1
            keys = [key for key, offset in zip(keys, offsets, strict=True) if offset >= start]
            offsets = [offset for offset in offsets if offset >= start]
        return self._put(keys, offsets, scan.longest_key)

    def _put(self, keys: Sequence[bytes], offsets: Sequence[int], longest_key: int) -> int | None:
        known = self._offsets
        if len(known) + len(keys) <= known.capacity:
            known.put(keys, offsets, longest_key)
            return None
        last_offset = self._request.first_dirty_offset - 1
        for key, offset in zip(keys, offsets, strict=True):
            if len(known) >= known.capacity:
                return last_offset
            known.put([key], [offset], longest_key)
            last_offset = offset
        return None

    def _position_of(self, segment: SegmentFile, offset: int) -> int:
        """Where to begin to read for the batch that holds `offset`."""
        if offset <= segment.base_offset:
            return 0
        indexes = Indexes.load(self._stem(segment.base_offset), self._files, segment.size)
        return indexes.offsets.position_of(offset - segment.base_offset) if indexes else 0

    # -- the second pass --------------------------------------------------------------------------------------------

    def _groups(self, latest_offset: int) -> Iterator[list[SegmentFile]]:
        """Neighbours that go into one segment: by their bytes, those of their indexes, and their offsets."""
        request = self._request
        limits = (request.segment_bytes, request.segment_index_bytes, request.segment_index_bytes)
        group: list[SegmentFile] = []
        sums = (0, 0, 0)
        for segment in request.segments:
            if segment.base_offset > latest_offset:
                break
            sizes = (segment.size, self._index_size(segment, ".index"), self._index_size(segment, ".timeindex"))
            grown = tuple(map(int.__add__, sums, sizes))
            reach = segment.next_offset - 1 - group[0].base_offset if group and segment.size else 0
            if group and (reach > MAX_RELATIVE_OFFSET or any(map(int.__gt__, grown, limits))):
                yield group
                group, grown = [], sizes
            group.append(segment)
            sums = grown[0], grown[1], grown[2]
        if group:
            yield group

    def _index_size(self, segment: SegmentFile, suffix: str) -> int:
        path = self._stem(segment.base_offset) + suffix
        return self._files.size(path) if self._files.exists(path) else 0

    def _clean_group(self, group: list[SegmentFile], rules: BatchFilter, transactions: TransactionPass) -> None:
        request, files = self._request, self._files
        stem = self._stem(group[0].base_offset)
        path = stem + ".log" + CLEANED_SUFFIX
        handle = files.open(path, create=True)
        files.ftruncate(handle.fd, 0)
        cleaned = Segment(request.directory, group[0].base_offset, files, self._cache, request.now_ms)
        transactions.kept_aborts = []
        parts: list[bytes | bytearray | memoryview] = []
        written = 0
        for kept in self._keep(group, rules):
            size = len(kept.data)
            if cleaned.size + size > _LARGEST_SEGMENT:
                raise ProtocolError(f"{path} would be larger than a segment may be")
            cleaned.publish(size, kept.last_offset, kept.max_timestamp, kept.last_offset, request.index_interval_bytes)
            parts.append(kept.data)
            if cleaned.size - written >= _WRITE_BYTES:
                self._write(handle, parts, written)
                written, parts = cleaned.size, []
        self._write(handle, parts, written)
        cleaned.complete_indexes()
        cleaned.indexes.aborted.entries = transactions.kept_aborts
        files.fsync(handle.fd)
        for suffix, content in cleaned.indexes.contents().items():
            index = stem + suffix + CLEANED_SUFFIX
            files.replace(index, content, durable=False)
            if content:
                files.sync(index)
        files.sync(request.directory)
        # Records without timestamps are as old as their file is.
        files.set_modified_ms(path, self._modified_ms(group[-1]))

    def _keep(self, group: list[SegmentFile], rules: BatchFilter) -> Iterator[Kept]:
        """What is left of each batch of which something is."""
        for segment in group:
            rules.keeps_old_tombstones = self._modified_ms(segment) > self._old_horizon_ms
            for data, batch in self._batches(segment, 0):
                self._bytes_read += batch.size
                # What a wrapper of an old format holds is not known from its header.
                self._records_read += max(batch.record_count, 1) if batch.magic < MAGIC else batch.record_count
                kept = rules.apply(data, batch)
                if kept is not None:
                    self._records_written += kept.records
                    yield kept

    def _write(self, handle: FileHandle, parts: list[bytes | bytearray | memoryview], position: int) -> None:
        data = b"".join(parts)
        self._pace(len(data))
        self._files.write_at(handle.fd, data, position)
        self._bytes_written += len(data)

    def _remove_cleaned(self, base_offset: int) -> None:
        for suffix in (".log", *INDEX_SUFFIXES):
            self._files.unlink_if_exists(self._stem(base_offset) + suffix + CLEANED_SUFFIX)

    # -- reading ----------------------------------------------------------------------------------------------------

    def _stem(self, base_offset: int) -> str:
        return os.path.join(self._request.directory, file_name(base_offset, ""))

    def _modified_ms(self, segment: SegmentFile) -> int:
        return self._files.modified_ms(self._stem(segment.base_offset) + ".log")

    def _batches(self, segment: SegmentFile, position: int) -> Iterator[tuple[memoryview, RecordBatch]]:
        """The batches of a segment from one position on, each with its header; all of them are checked."""
        path = self._stem(segment.base_offset) + ".log"
        handle = self._files.open_for_reading(path)
        if self._files.size(path) < segment.size:
            raise ProtocolError(f"{path} has less than its {segment.size} bytes")
        window, start, end = memoryview(b""), position, segment.size
        while position < end:
            missing = _header_size(window, position - start)
            if position + missing <= start + len(window):
                batch = read_any_header(window, position - start)
                missing = batch.size
            if position + missing > end:
                raise ProtocolError(f"{path} is cut short in the batch at {position}")
            if position + missing > start + len(window):
                size = min(max(self._request.chunk_bytes, missing), end - position)
                self._pace(size)
                window, start = memoryview(self._files.read_at(handle.fd, size, position)), position
                continue
            if not 0 <= batch.magic <= MAGIC:
                raise ProtocolError(f"the batch at {position} of {path} is of format {batch.magic}")
            if not any_crc_matches(window, position - start, batch):
                raise ProtocolError(f"the CRC of the batch at {position} of {path} is wrong")
            yield window[position - start : position - start + batch.size], batch
            position += batch.size


def _header_size(window: memoryview, position: int) -> int:
    """How many bytes the header at `position` has, as far as the window tells; a smaller one tells which it is."""
    if position + SMALLEST_BATCH > len(window):
        return SMALLEST_BATCH
    return SMALLEST_BATCH if window[position + MAGIC_AT] < MAGIC else HEADER_SIZE
