"""Bringing a log to the disk, outside the thread that appends."""

from typing import TYPE_CHECKING

from odradek.log.files import FileHandle, Files
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.log.log import Log

__all__ = ["PendingFlush"]


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
