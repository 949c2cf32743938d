"""Bringing a log to the disk, outside the thread that appends."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.log import snapshots
from odradek.log.files import FileHandle, Files
from odradek.log.segment import Segment
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.log.log import Log

__all__ = ["PendingFlush", "files_to_flush", "prepare_close"]


class PendingFlush:
    """What has to be on the disk before everything below `offset` is.

    The handles are its own, so that segments may be rolled, put away or deleted meanwhile.
    """

    __slots__ = ("_files", "_handles", "_log", "_paths", "offset", "truncations")

    def __init__(
        self, log: "Log", files: Files, offset: int, truncations: int, handles: list[FileHandle], paths: list[str]
    ) -> None:
        self.offset = offset
        self.truncations = truncations
        self._log = log
        self._files = files
        self._handles = handles
        self._paths = paths

    @property
    def is_empty(self) -> bool:
        """Whether all is on the disk already."""
        return not self._handles and not self._paths

    def run(self) -> None:
        """Flush; may run in a thread while the log is appended to. Raises KAFKA_STORAGE_ERROR, and the log fails."""
        try:
            for handle in self._handles:
                self._files.fdatasync(handle.fd)
            for path in self._paths:
                if self._files.exists(path):
                    self._files.sync(path)
        except OSError as error:
            self._log.failed = f"flushing it failed: {error}"
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{self._log.directory}: {self._log.failed}") from error

    def add_paths(self, paths: list[str]) -> None:
        """Flush these files too."""
        self._paths += paths


def files_to_flush(segments: Sequence[Segment], end: int) -> tuple[list[FileHandle], list[str]]:
    """The log files of those of `segments` that begin before `end`, and the paths of their indexes. Raises OSError."""
    handles: list[FileHandle] = []
    paths: list[str] = []
    for segment in segments:
        if segment.base_offset >= end:
            break
        handles.append(segment.open())
        if segment.sealed:
            # A recovery trusts these from now on; those of the segment that it scans are made again.
            segment.save_indexes()
            paths += segment.existing_files()[1:]
    return handles, paths


def prepare_close(log: "Log", files: Files) -> PendingFlush:
    """Complete the files of a log that is closed, and note its producers; what has to be flushed for that.

    A log that nothing was written to costs no call to the system. Raises OSError, KAFKA_STORAGE_ERROR.
    """
    pending = log.prepare_flush()
    if log.active.seal() or log.log_end_offset > log.recovery_point:
        pending.add_paths(log.active.existing_files()[1:])
        if log.producers.by_id or snapshots.offsets_of(files, log.directory):
            pending.add_paths([snapshots.save(files, log.directory, log.log_end_offset, log.producers)])
    return pending
