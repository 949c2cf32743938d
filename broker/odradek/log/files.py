"""The only place where the log store touches the operating system.

A `Files` is handed down to whatever opens, writes or removes a file, so that a test can pass one that fails. Errors
are the operating system's own (OSError); who writes decides what they mean.

A `FileHandle` is a file descriptor that lives as long as somebody holds it: a segment may be deleted, and its
descriptor put away by the cache, while a slice of it is still being sent.
"""

import ctypes
import errno
import fcntl
import os
import platform
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

__all__ = ["FileCache", "FileHandle", "Files", "HandleOwner"]


def _find_syncfs() -> Callable[[int], int] | None:
    """The system's syncfs, unless it is one that keeps failed writes to itself."""
    major, _, minor = platform.release().partition(".")
    if sys.platform != "linux" or (int(major), int(minor.partition(".")[0])) < (5, 8):
        return None
    call: Callable[[int], int] | None = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return call


_syncfs = _find_syncfs()


class FileHandle:
    """An open file. The descriptor is closed with the last reference to the handle."""

    __slots__ = ("_close", "fd")

    def __init__(self, fd: int, close: Callable[[int], None]) -> None:
        self.fd = fd
        self._close = close

    def __del__(self) -> None:
        self._close(self.fd)


class Files:
    """Calls to the operating system. `pwrite` may write less than asked, as the operating system may."""

    pwrite = staticmethod(os.pwrite)
    """(fd, data, position) -> bytes written."""
    pread = staticmethod(os.pread)
    """(fd, size, position) -> at most `size` bytes."""
    fsync = staticmethod(os.fsync)
    fdatasync = staticmethod(os.fdatasync)
    """Like `fsync`, for a file's content and size without its times."""
    rename = staticmethod(os.replace)
    link = staticmethod(os.link)
    """(path, another name for the same file)."""
    unlink = staticmethod(os.unlink)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    ftruncate = staticmethod(os.ftruncate)
    close = staticmethod(os.close)

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        """Open for reading and writing; `create` makes the file when there is none."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return FileHandle(os.open(path, flags, 0o644), self.close)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def names(self, directory: str) -> list[str]:
        """The sorted names of what lies in a folder."""
        return sorted(os.listdir(directory))

    def exists(self, path: str) -> bool:
        """Whether there is something of that name. Raises OSError when the system cannot tell."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_directory(self, path: str) -> bool:
        """Whether there is a folder of that name. Raises OSError when the system cannot tell."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def make_directories(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def read(self, path: str) -> bytes:
        """The whole file. Raises FileNotFoundError."""
        handle = self.open_for_reading(path)
        parts = []
        position = 0
        while part := self.pread(handle.fd, 1 << 20, position):
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def open_for_reading(self, path: str) -> FileHandle:
        return FileHandle(os.open(path, os.O_RDONLY | os.O_CLOEXEC), self.close)

    def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all of `data`. Raises OSError when that fails; what lies at `position` is undefined then."""
        view = memoryview(data)
        while view:
            written = self.pwrite(fd, view, position)
            if written == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            view = view[written:]
            position += written

    def peek(self, fd: int, size: int, position: int) -> bytearray | None:
        """At most `size` bytes if they are in memory; None when reading them would wait for the disk.

        Where a file system cannot tell, as an old kernel's in memory, they are read. Raises OSError.
        """
        data = bytearray(size)
        try:
            read = os.preadv(fd, [data], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            read = os.preadv(fd, [data], position)
        if read < size:
            del data[read:]
        return data

    def read_at(self, fd: int, size: int, position: int) -> bytes:
        """Exactly `size` bytes. Raises OSError, also when the file ends before."""
        data = self.pread(fd, size, position)
        while len(data) < size:
            more = self.pread(fd, size - len(data), position + len(data))
            if not more:
                raise OSError(errno.EIO, f"the file ends at {position + len(data)}, before {position + size}")
            data += more
        return data

    def replace(self, path: str, data: bytes, *, durable: bool) -> None:
        """Put a whole new content in place of a file in one step: nobody sees half of it.

        With `durable` it is on the disk when this returns; otherwise a crash of the machine may bring back the old
        content.
        """
        temporary = path + ".tmp"
        handle = self.open(temporary, create=True)
        self.ftruncate(handle.fd, 0)
        self.write_at(handle.fd, data, 0)
        if durable:
            self.fsync(handle.fd)
        self.rename(temporary, path)
        if durable:
            self.sync(os.path.dirname(path))

    def sync(self, path: str) -> None:
        """Make a file's content durable, or the names in a folder: files made, renamed and removed."""
        handle = self.open_for_reading(path)
        self.fsync(handle.fd)

    def sync_file_system(self, fd: int) -> bool:
        """Bring everything on the file system of an open file to the disk; False where the system cannot.

        It tells of every write that failed since the file was opened (Linux 5.8 and later). Raises OSError.
        """
        if _syncfs is None:
            return False
        if _syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return True

    def truncate(self, path: str, size: int) -> None:
        """Cut or lengthen a file; one that is not there is made."""
        handle = self.open(path, create=True)
        self.ftruncate(handle.fd, size)

    def unlink_if_exists(self, path: str) -> None:
        try:
            self.unlink(path)
        except FileNotFoundError:
            return

    def lock(self, path: str) -> FileHandle | None:
        """Lock a file for this process until the handle goes. None when another one holds the lock."""
        handle = self.open(path, create=True)
        try:
            fcntl.flock(handle.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return handle


class HandleOwner(Protocol):
    """Something with a file that it can open again. `used` is set by the owner whenever it uses its handle."""

    handle: FileHandle | None
    used: bool

    def release(self) -> None:
        """Let go of the handle, and of whatever else can be had again from disk."""


class FileCache:
    """Bounds the number of descriptors that segments keep open. Logs are loaded in threads, which share it.

    Second chance instead of an exact LRU: a use costs the owner one assignment, and the price of order is paid only
    when a file is opened.
    """

    __slots__ = ("_lock", "_owners", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._owners: deque[HandleOwner] = deque()

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, owner: HandleOwner) -> None:
        """Count the handle that `owner` has just opened, and put away another one when there are too many."""
        owners = self._owners
        with self._lock:
            while len(owners) >= self.capacity:
                oldest = owners.popleft()
                if oldest.used and oldest.handle is not None:
                    oldest.used = False
                    owners.append(oldest)
                else:
                    oldest.release()
            owners.append(owner)

    def discard(self, owner: HandleOwner) -> None:
        """Put away the handle of an owner that goes."""
        with self._lock:
            if owner.handle is not None:
                owner.release()
                self._owners.remove(owner)
