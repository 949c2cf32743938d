"""The sparse indexes of a segment, in memory while it is in use.

    NNN.index       relative_offset int32 | position int32          the last offset of a batch, and where it starts
    NNN.timeindex   timestamp int64 | relative_offset int32         largest timestamp so far, and its offset
    NNN.txnindex    see `aborted`

Offsets are relative to the base offset of the segment. The files get what they lack when the segment is flushed, sealed
or closed, so that an append costs no write of its own. Source: Kafka's files, as its DumpLogSegments reads them.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Protocol

from odradek.log.aborted import ABORTED_ENTRY_SIZE, AbortedIndex
from odradek.log.files import Files

__all__ = ["Indexes", "OffsetIndex", "TimeIndex"]

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12


class OffsetIndex:
    """Entries in ascending order of both offset and position. `saved` of them are in the file."""

    __slots__ = ("offsets", "positions", "saved")

    def __init__(self) -> None:
        self.offsets = array("i")
        self.positions = array("i")
        self.saved = 0

    @classmethod
    def parse(cls, data: bytes, log_size: int) -> "OffsetIndex | None":
        """Read a file's content. None when it is not an index of a log of `log_size` bytes: it has to be rebuilt."""
        if len(data) % OFFSET_ENTRY_SIZE:
            return None
        numbers = _swap(array("i", data))
        index = cls()
        index.offsets, index.positions = numbers[0::2], numbers[1::2]
        index.saved = len(index.offsets)
        if not index.saved:
            return index
        within = index.offsets[0] >= 0 and index.positions[0] >= 0 and index.positions[-1] < log_size
        return index if within and _ascends(index.offsets) and _ascends(index.positions) else None

    def append(self, relative_offset: int, position: int) -> None:
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def position_of(self, relative_offset: int) -> int:
        """The start of a batch at or before the one that holds the offset."""
        entry = bisect_right(self.offsets, relative_offset) - 1
        return self.positions[entry] if entry >= 0 else 0

    def position_before(self, position: int) -> int:
        """The greatest known start of a batch that is at most `position`."""
        entry = bisect_right(self.positions, position) - 1
        return self.positions[entry] if entry >= 0 else 0

    def truncate(self, position: int) -> None:
        """Forget the batches that start at or behind `position`."""
        keep = bisect_left(self.positions, position)
        del self.offsets[keep:]
        del self.positions[keep:]
        self.saved = min(self.saved, keep)

    def unsaved(self) -> bytes:
        """The bytes of the entries that the file lacks."""
        numbers = array("i", bytes(OFFSET_ENTRY_SIZE * (len(self.offsets) - self.saved)))
        numbers[0::2] = self.offsets[self.saved :]
        numbers[1::2] = self.positions[self.saved :]
        return _swap(numbers).tobytes()


class TimeIndex:
    """Entries in ascending order of both timestamp and offset. `saved` of them are in the file."""

    __slots__ = ("offsets", "saved", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("i")
        self.saved = 0

    @classmethod
    def parse(cls, data: bytes) -> "TimeIndex | None":
        """Read a file's content. None when it is not a time index: it has to be rebuilt."""
        if len(data) % TIME_ENTRY_SIZE:
            return None
        index = cls()
        index.saved = len(data) // TIME_ENTRY_SIZE
        numbers = struct.unpack(">" + "qi" * index.saved, data)
        index.timestamps, index.offsets = array("q", numbers[0::2]), array("i", numbers[1::2])
        sound = _ascends(index.timestamps) and _ascends(index.offsets) and (not index.saved or index.offsets[0] >= 0)
        return index if sound else None

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry when it says something new: a timestamp above all before."""
        if timestamp >= 0 and (not self.timestamps or timestamp > self.timestamps[-1]):
            self.timestamps.append(timestamp)
            self.offsets.append(relative_offset)

    def offset_before(self, timestamp: int) -> int:
        """A relative offset before which every record is older than `timestamp`; 0 when none is known."""
        entry = bisect_left(self.timestamps, timestamp) - 1
        return self.offsets[entry] if entry >= 0 else 0

    def truncate(self, relative_offset: int) -> None:
        """Forget the entries at or behind an offset."""
        keep = bisect_left(self.offsets, relative_offset)
        del self.offsets[keep:]
        del self.timestamps[keep:]
        self.saved = min(self.saved, keep)

    def unsaved(self) -> bytes:
        """The bytes of the entries that the file lacks."""
        count = len(self.timestamps) - self.saved
        entries = zip(self.timestamps[self.saved :], self.offsets[self.saved :], strict=True)
        return struct.pack(">" + "qi" * count, *(number for entry in entries for number in entry))


class _Savable(Protocol):
    saved: int

    def unsaved(self) -> bytes: ...


class Indexes:
    """The three indexes of one segment, and their files: `stem` and a suffix each."""

    __slots__ = ("_files", "_stem", "aborted", "offsets", "times")

    def __init__(self, stem: str, files: Files) -> None:
        self._stem = stem
        self._files = files
        self.offsets = OffsetIndex()
        self.times = TimeIndex()
        self.aborted = AbortedIndex()

    @classmethod
    def load(cls, stem: str, files: Files, log_size: int) -> "Indexes | None":
        """Read the files. None when one is missing or makes no sense: they have to be rebuilt. Raises OSError."""
        indexes = cls(stem, files)
        try:
            offsets = OffsetIndex.parse(files.read(stem + ".index"), log_size)
            times = TimeIndex.parse(files.read(stem + ".timeindex"))
        except FileNotFoundError:
            return None
        aborted = cls.load_aborted(stem, files)
        if offsets is None or times is None or aborted is None:
            return None
        indexes.offsets, indexes.times, indexes.aborted = offsets, times, aborted
        return indexes

    @staticmethod
    def load_aborted(stem: str, files: Files) -> AbortedIndex | None:
        """Read the transactions' file, which most segments lack. None when it makes no sense. Raises OSError."""
        path = stem + ".txnindex"
        return AbortedIndex.parse(files.read(path)) if files.exists(path) else AbortedIndex()

    @staticmethod
    def load_last_time(stem: str, files: Files) -> tuple[int, int] | None:
        """Timestamp and relative offset of the time index's last entry. None without a sound one. Raises OSError."""
        try:
            handle = files.open_for_reading(stem + ".timeindex")
        except FileNotFoundError:
            return None
        size = files.size(stem + ".timeindex")
        if size % TIME_ENTRY_SIZE or not size:
            return None
        timestamp, offset = struct.unpack(">qi", files.read_at(handle.fd, TIME_ENTRY_SIZE, size - TIME_ENTRY_SIZE))
        return (timestamp, offset) if timestamp >= 0 and offset >= 0 else None

    def is_full(self, limit_bytes: int) -> bool:
        """Whether a file of `limit_bytes` has no room for more; the time index keeps a place for its last entry."""
        return (
            len(self.offsets.offsets) >= limit_bytes // OFFSET_ENTRY_SIZE
            or len(self.times.offsets) >= limit_bytes // TIME_ENTRY_SIZE - 1
        )

    def truncate(self, position: int, offset: int, base_offset: int) -> None:
        """Forget the batches from `position`, which holds `offset`, on; in the files too. Raises OSError."""
        self.offsets.truncate(position)
        self.times.truncate(offset - base_offset)
        self.aborted.truncate(offset)
        for suffix, index, entry_size in self._parts():
            if self._files.exists(self._stem + suffix):
                self._files.truncate(self._stem + suffix, index.saved * entry_size)

    def save(self) -> bool:
        """Write what the files lack, and give whether that was anything. Raises OSError."""
        changed = False
        for suffix, index, entry_size in self._parts():
            data = index.unsaved()
            if data:
                handle = self._files.open(self._stem + suffix, create=True)
                self._files.write_at(handle.fd, data, index.saved * entry_size)
                index.saved += len(data) // entry_size
                changed = True
        return changed

    def contents(self) -> dict[str, bytes]:
        """What new files hold, by their suffixes. Of indexes that have none yet."""
        return {suffix: index.unsaved() for suffix, index, _ in self._parts()}

    def create(self) -> None:
        """Write everything into new files; what they held is gone. Raises OSError."""
        for suffix, index, _ in self._parts():
            index.saved = 0
            path = self._stem + suffix
            if suffix != ".txnindex" or self._files.exists(path):
                self._files.truncate(path, 0)
        self.save()

    def relocate(self, stem: str, files: Files) -> None:
        """Go by other files, which hold what these do."""
        self._stem, self._files = stem, files

    def _parts(self) -> tuple[tuple[str, _Savable, int], ...]:
        return (
            (".index", self.offsets, OFFSET_ENTRY_SIZE),
            (".timeindex", self.times, TIME_ENTRY_SIZE),
            (".txnindex", self.aborted, ABORTED_ENTRY_SIZE),
        )


def _swap(numbers: "array[int]") -> "array[int]":
    """Between this machine's byte order and the files' big-endian one, in place."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _ascends(numbers: "array[int]") -> bool:
    """In C, because a full segment has a quarter of a million entries."""
    listed = numbers.tolist()
    return listed == sorted(listed)
