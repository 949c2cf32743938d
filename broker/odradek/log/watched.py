"""The files of one of `log.dirs`, watched for the failure of the disk below them.

A full disk, a missing file or one that ends too early are matters of one log, which tells of them. An error that says
that the device or its file system is broken is a matter of the whole folder: whoever asked gets it as ever, and the
folder's owner is told, whatever call it was. So is an fsync that failed, whatever its error: the system may have
dropped what it could not write, and would call the next fsync a success.
"""

import errno
from collections.abc import Callable
from typing import Any

from odradek.log.files import Files

__all__ = ["BROKEN", "WatchedFiles"]

BROKEN = frozenset({errno.EIO, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EUCLEAN})
"""Errors of a device that is gone, or of a file system that is damaged or was made read-only because it is."""

_CALLS = (
    "close",
    "exists",
    "fdatasync",
    "fsync",
    "ftruncate",
    "is_directory",
    "link",
    "lock",
    "make_directories",
    "mkdir",
    "modified_ms",
    "names",
    "open",
    "open_for_reading",
    "peek",
    "pread",
    "pwrite",
    "rename",
    "rmdir",
    "set_modified_ms",
    "size",
    "sync_file_system",
    "unlink",
)
"""The calls that reach the system; what `Files` has besides is made of them."""
_SYNCING = ("fdatasync", "fsync", "sync_file_system")


class WatchedFiles(Files):
    """`files`, whose failures of a disk are told to `report`, in the thread that meets them."""

    def __init__(self, files: Files, report: Callable[[OSError], None]) -> None:
        for name in _CALLS:
            setattr(self, name, _watched(getattr(files, name), report, always=name in _SYNCING))


def _watched(call: Callable[..., Any], report: Callable[[OSError], None], *, always: bool) -> Callable[..., Any]:
    def watched(*arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except OSError as error:
            if always or error.errno in BROKEN:
                report(error)
            raise

    return watched
