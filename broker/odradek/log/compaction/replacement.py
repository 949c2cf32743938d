"""New segment files in the place of old ones, so that a crash at any point leaves the one or the other.

    .cleaned    being written by a cleaner               a start removes it
    .swap       complete and on the disk                 a start finishes the replacement
    .deleted    replaced, waits to be removed            a start removes it

The files of one segment change their names one by one, the log file last. So there is a `.log.swap` exactly from where
nothing may be undone any more to where nothing is left to be done; index files that end in ".swap" without one are
those of a replacement that has not begun. There is always an index of transactions, if an empty one, so that none of an
old segment is taken for the new one's.

A loss of power may undo any change of a name that is not on the disk yet, and keep those that came behind it. So the
".swap" names are on the disk before an old file goes, and all else is before the log file gets its name.

The old files go in the order of their offsets. A crash on the way leaves the newer ones, and the records that they hold
beyond the new segment's end stay until the next round.
"""

import logging
import os

from odradek.log.files import FileCache, Files
from odradek.log.segment import INDEX_SUFFIXES, Segment

__all__ = ["CLEANED_SUFFIX", "SWAP_SUFFIX", "begin", "finish", "finish_interrupted", "remove_cleaned"]

logger = logging.getLogger(__name__)

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_ORDER = (*INDEX_SUFFIXES, ".log")


def begin(files: Files, stem: str) -> None:
    """Declare the cleaned files good; from here on the replacement will happen. Raises OSError."""
    for suffix in _ORDER:
        files.rename(stem + suffix + CLEANED_SUFFIX, stem + suffix + SWAP_SUFFIX)
    files.sync(os.path.dirname(stem))


def finish(files: Files, stem: str) -> None:
    """Give the new files their names, once the old ones are out of the way. Raises OSError."""
    for suffix in _ORDER:
        if suffix == ".log":
            files.sync(os.path.dirname(stem))
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
        finish(files, os.path.join(directory, stem))
