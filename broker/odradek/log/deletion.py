"""What is deleted but still there: files and folders that wait for `file.delete.delay.ms`.

A deleted thing is renamed at once, so that nothing finds it any more, and removed later, for readers that are still at
it. What a stop leaves over is removed by the next start.
"""

import heapq
import os
from collections.abc import Iterable

from odradek.log.files import Files
from odradek.log.segment import Segment

__all__ = ["DELETED_SUFFIX", "Deletions"]

DELETED_SUFFIX = ".deleted"


class Deletions:
    """The deletions in one of `log.dirs`. `run` may be called in a thread, by one caller at a time."""

    __slots__ = ("_due", "_files")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._due: list[tuple[int, str]] = []

    def retire(self, segments: Iterable[Segment], due_ms: int) -> None:
        """Rename the files of segments that nobody knows any more, and remove them when `due_ms` has come.

        Raises OSError.
        """
        for segment in segments:
            segment.discard()
            for path in segment.existing_files():
                self._files.rename(path, path + DELETED_SUFFIX)
                self.add(path + DELETED_SUFFIX, due_ms)

    def add(self, path: str, due_ms: int) -> None:
        """Remove a file, or a folder of files, when `due_ms` has come."""
        heapq.heappush(self._due, (due_ms, path))

    @property
    def next_due_ms(self) -> int | None:
        """When there is something to be removed; None while nothing waits."""
        return self._due[0][0] if self._due else None

    def run(self, now_ms: int) -> None:
        """Remove what is due. Raises OSError; what could not be removed is left to the next start."""
        while self._due and self._due[0][0] <= now_ms:
            _, path = heapq.heappop(self._due)
            if not self._files.is_directory(path):
                self._files.unlink_if_exists(path)
                continue
            for name in self._files.names(path):
                self._files.unlink_if_exists(os.path.join(path, name))
            self._files.rmdir(path)
