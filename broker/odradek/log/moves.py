"""Moving a log to another of `log.dirs` while it is appended to and read (KIP-113).

The log is copied, file by file, into `topic-partition.UUID-future` in the folder where it is to live.

Rules:

- Copying runs in a thread and changes nothing of the log. What is copied is brought to the disk before it counts, so
  that a move never makes less durable what was durable before.
- Only a copy that has everything takes the log's place. What retention, a truncation or a compaction changed meanwhile
  is seen by comparing the segments, and copied anew.
- The copy of a segment that is sealed gets the original's modification time when it is whole and on the disk: by time
  and size a later start of the broker knows it, and does not copy it again.
- The places are changed in three steps: the copy is complete and on the disk; the log's folder is renamed to be
  deleted, which is on the disk too; the copy's folder gets the log's name. A start that finds a copy beside its log
  goes on copying; one that finds a copy without its log does the third step.
"""

import os
import re
from typing import TYPE_CHECKING

from odradek.log.checkpoints import TopicPartition
from odradek.log.files import Files
from odradek.log.folder import Folder
from odradek.log.properties import PARTITION_METADATA
from odradek.log.segment import INDEX_SUFFIXES, Segment, file_name
from odradek.log.snapshots import SUFFIX as SNAPSHOT_SUFFIX
from odradek.log.snapshots import offsets_of

if TYPE_CHECKING:
    from odradek.log.log import Log

__all__ = ["FUTURE_SUFFIX", "MAX_TOPIC", "PIECE_BYTES", "Move", "Piece", "parse_future_name", "take_place"]

FUTURE_SUFFIX = "-future"
MAX_TOPIC = 255 - len("-.") - 32 - len(FUTURE_SUFFIX)
"""The longest topic name and partition number, in bytes, for which the name of a copy's folder is not too long."""
PIECE_BYTES = 4 << 20
"""Copied between two looks at the log: large enough to cost little, small enough for a throttle to be even."""

_FUTURE_NAME = re.compile(r"(.+)-(\d+)\.[0-9a-f]{32}-future")


def parse_future_name(name: str) -> TopicPartition | None:
    """Topic and partition of the folder of a log's copy; None for a folder that is none."""
    match = _FUTURE_NAME.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def take_place(folder: Folder, directory: str, partition: TopicPartition) -> str:
    """Give a complete copy the name of its log, durably; the path that it has then. Raises OSError."""
    path = os.path.join(folder.path, f"{partition[0]}-{partition[1]}")
    folder.files.rename(directory, path)
    folder.files.sync(folder.path)
    return path


class _Copy:
    """How far a segment is copied."""

    __slots__ = ("end_offset", "finished", "segment", "size")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.size = 0
        self.end_offset = segment.base_offset
        """All records below it are copied."""
        self.finished: tuple[int, bool] | None = None
        """The size that is on the disk, and whether the segment was sealed then."""

    @property
    def is_current(self) -> bool:
        """Whether nothing is left to be done."""
        return self.finished == (self.segment.size, self.segment.sealed)


class Piece:
    """Bytes to copy; where there are none, what ends the copy of a segment. Making one raises OSError."""

    def __init__(self, copy: _Copy, source: Files, files: Files, directory: str) -> None:
        segment = copy.segment
        self.copy = copy
        self.size = min(segment.size - copy.size, PIECE_BYTES)
        self.whole = copy.size + self.size == segment.size
        self.next_offset = segment.next_offset
        self.state = segment.size, segment.sealed
        self._handle = segment.open()
        self._source = source
        self._files = files
        self._directory = directory

    @property
    def is_last(self) -> bool:
        """Whether the copy has everything then, but for what comes meanwhile."""
        return self.whole and not self.state[1]

    def run(self) -> None:
        """Do it; for a thread. Raises OSError."""
        copy, files = self.copy, self._files
        path = os.path.join(self._directory, file_name(copy.segment.base_offset, ".log"))
        target = files.open(path, create=True)
        if not copy.size:
            files.ftruncate(target.fd, 0)
        if self.size:
            files.write_at(target.fd, self._source.read_at(self._handle.fd, self.size, copy.size), copy.size)
            return
        files.fsync(target.fd)
        if self.state[1]:
            for index in copy.segment.existing_files()[1:]:
                _copy_file(self._source, index, files, self._directory)
            files.set_modified_ms(path, copy.segment.modified_ms())

    def done(self) -> None:
        """Count what `run` did."""
        self.copy.size += self.size
        if self.whole:
            self.copy.end_offset = self.next_offset
        if not self.size:
            self.copy.finished = self.state


class Move:
    """A log on its way from the folder `source` to `folder`, where `directory` holds its copy."""

    def __init__(self, log: "Log", source: Folder, folder: Folder, directory: str) -> None:
        self.log = log
        self.source = source
        self.folder = folder
        self.directory = directory
        self._files = folder.files
        self._copies: dict[int, _Copy] = {}
        self._beside: tuple[object, ...] | None = None
        self._snapshots: set[str] = set()
        """The names of those that are copied; a snapshot never changes."""

    def __repr__(self) -> str:
        return f"Move({self.log!r} to {self.directory})"

    @property
    def size(self) -> int:
        """Bytes that are copied."""
        return sum(copy.size for copy in self._copies.values())

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind the log."""
        ends = [copy.end_offset for copy in self._copies.values()]
        return max(self.log.log_end_offset - max(ends, default=self.log.log_start_offset), 0)

    def resume(self) -> None:
        """Count the segments that an earlier run of the broker copied whole. Raises OSError."""
        for segment in self.log.segments[:-1]:
            path = os.path.join(self.directory, file_name(segment.base_offset, ".log"))
            if (
                self._files.exists(path)
                and self._files.size(path) == segment.size
                and self._files.modified_ms(path) == segment.modified_ms()
            ):
                copy = self._copies[segment.base_offset] = _Copy(segment)
                copy.size, copy.end_offset = segment.size, segment.next_offset
                copy.finished = segment.size, True

    def next_piece(self) -> Piece | None:
        """What is to be copied next; None when all segments are, and are on the disk. Raises OSError."""
        present = {segment.base_offset: segment for segment in self.log.segments}
        for base, copy in list(self._copies.items()):
            if present.get(base) is not copy.segment or copy.segment.size < copy.size:
                del self._copies[base]
        for base, segment in present.items():
            copy = self._copies.setdefault(base, _Copy(segment))
            if not copy.is_current:
                return Piece(copy, self.source.files, self._files, self.directory)
        return None

    def copy_rest(self) -> None:
        """Copy what belongs to the segments; for a thread. Raises OSError."""
        self._beside = None
        before = self._state_beside()
        beside = {name for name in self.source.files.names(self.log.directory) if name.endswith(SNAPSHOT_SUFFIX)}
        wanted = {file_name(base, suffix) for base in self._copies for suffix in (".log", *INDEX_SUFFIXES)} | beside
        for name in self._files.names(self.directory):
            if name not in wanted and name != PARTITION_METADATA:
                self._files.unlink(os.path.join(self.directory, name))
        self._snapshots &= beside
        for name in sorted(beside - self._snapshots):
            _copy_file(self.source.files, os.path.join(self.log.directory, name), self._files, self.directory)
            self._snapshots.add(name)
        if self.source.files.exists(self.log.epochs.path):
            _copy_file(self.source.files, self.log.epochs.path, self._files, self.directory)
        self._files.sync(self.directory)
        self._beside = before

    def is_complete(self) -> bool:
        """Whether the copy has all that the log has at this moment. Raises OSError."""
        return self.next_piece() is None and self._beside == self._state_beside()

    def _state_beside(self) -> tuple[object, ...]:
        epochs = self.log.epochs
        snapshots = tuple(offsets_of(self.source.files, self.log.directory))
        return tuple(epochs.epochs), tuple(epochs.start_offsets), snapshots


def _copy_file(source: Files, path: str, files: Files, directory: str) -> None:
    target = os.path.join(directory, os.path.basename(path))
    files.replace(target, source.read(path), durable=False)
    files.sync(target)
