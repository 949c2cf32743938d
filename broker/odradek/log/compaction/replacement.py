"""New segment files in the place of old ones, so that a crash at any point leaves the one or the other.

    .cleaned    being written by a cleaner               a start removes it
    .swap       complete and on the disk                 a start finishes the replacement
    .deleted    replaced, waits to be removed            a start removes it

The files of one segment change their names one by one, the log file last. So there is a `.log.swap` exactly from where
nothing may be undone any more to where nothing is left to be done; index files that end in ".swap" without one are
those of a replacement that has not begun. There is always an index of transactions, if an empty one, so that none of an
old segment is taken for the new one's.

A loss of power may undo any change of a name that is not on the disk yet, and keep those that came behind it. So the
".swap" names are on the disk before an old file goes, and all else is before the `.log.swap` goes: until then the log
file has both names.

The old files go in the order of their offsets. A crash on the way leaves the newer ones, and the records that they hold
beyond the new segment's end stay until the next round.
"""

import errno
import logging
import os
from collections.abc import Sequence

from odradek.log.files import FileCache, Files
from odradek.log.segment import INDEX_SUFFIXES, Segment

__all__ = ["CLEANED_SUFFIX", "SWAP_SUFFIX", "Replacement", "finish_interrupted", "remove_cleaned"]

logger = logging.getLogger(__name__)

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_ORDER = (*INDEX_SUFFIXES, ".log")
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Replacement:
    """Cleaned files on their way into the place of `old` segments: `begin`, `show` and `settle`, in this order.

    `begin`, `settle` and `undo` wait for the disk: they are for a thread. All raise OSError.
    """

    __slots__ = ("_directory", "_files", "_stem", "old")

    def __init__(self, files: Files, stem: str, old: Sequence[Segment]) -> None:
        self.old = old
        self._files = files
        self._stem = stem
        self._directory = os.path.dirname(stem)

    def begin(self) -> None:
        """Declare the cleaned files good; from here on the replacement will happen, if at the next start."""
        for suffix in _ORDER:
            self._files.rename(self._stem + suffix + CLEANED_SUFFIX, self._stem + suffix + SWAP_SUFFIX)
        self._files.sync(self._directory)

    def show(self) -> None:
        """Give the new files their names, once the old ones are out of the way."""
        _name_indexes(self._files, self._stem)
        swap = self._stem + ".log" + SWAP_SUFFIX
        try:
            self._files.link(swap, self._stem + ".log")
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._files.sync(self._directory)
            self._files.rename(swap, self._stem + ".log")

    def settle(self) -> None:
        """End it: what it did is on the disk then."""
        self._files.sync(self._directory)
        self._files.unlink_if_exists(self._stem + ".log" + SWAP_SUFFIX)

    def undo(self) -> None:
        """Have it not happen, when it has begun and is not shown."""
        for suffix in reversed(_ORDER):
            self._files.unlink_if_exists(self._stem + suffix + SWAP_SUFFIX)
            if suffix == ".log":
                self._files.sync(self._directory)


def _name_indexes(files: Files, stem: str) -> None:
    for suffix in INDEX_SUFFIXES:
        if files.exists(stem + suffix + SWAP_SUFFIX):
            files.rename(stem + suffix + SWAP_SUFFIX, stem + suffix)


def remove_cleaned(files: Files, directory: str) -> None:
    """Remove what a cleaner left half done. Raises OSError."""
    for name in files.names(directory):
        if name.endswith(CLEANED_SUFFIX):
            files.unlink_if_exists(os.path.join(directory, name))


def finish_interrupted(directory: str, files: Files, cache: FileCache) -> None:
    """Bring the replacements in a log's folder to their end, and remove what was not begun. Raises OSError."""
    names = files.names(directory)
    swapped = {name.partition(".")[0] for name in names if name.endswith(".log" + SWAP_SUFFIX)}
    for name in names:
        stem = name.partition(".")[0]
        if name.endswith(CLEANED_SUFFIX) or (name.endswith(SWAP_SUFFIX) and stem not in swapped):
            files.unlink(os.path.join(directory, name))
    for stem in sorted(swapped):
        base = int(stem)
        new = Segment.of_file(directory, base, files, cache, SWAP_SUFFIX)
        end = max((batch.last_offset + 1 for _, batch in new.walk(0)), default=base + 1)
        new.discard()
        logger.info("%s/%s takes the place of the segments from %d to %d", directory, stem, base, end)
        for name in names:
            other, _, suffix = name.partition(".")
            # An index of the new segment may have its name already.
            replaced = _ORDER if other != stem else (".log",)
            if other.isdecimal() and base <= int(other) < end and f".{suffix}" in replaced:
                files.unlink(os.path.join(directory, name))
        path = os.path.join(directory, stem)
        _name_indexes(files, path)
        files.sync(directory)
        files.rename(path + ".log" + SWAP_SUFFIX, path + ".log")
