"""A disk in memory that remembers what was synced, fails when told to, and loses at a crash what it may lose.

Of a file `fsync` and `fdatasync` make the content durable, of a folder `fsync` the names in it. Everything else that
was done since is pending. When the power fails, any part of that may be on the disk: of writes and truncations, of
names made, changed and removed, whatever their order; of a write any of its sectors. When only the process dies, all of
it is there.

A sync that fails drops what was pending of its file: a later one succeeds without it. What the system's cache still
shows of it is gone when the process dies.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from odradek.log.files import FileHandle, Files

SECTOR_BYTES = 512


@dataclass
class Inode:
    """The content of a file: as the process sees it, as it is on the disk, and what leads from there to here."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Callable[[bytearray], None]] = field(default_factory=list)
    distrusted: bool = False

    def change(self, *changes: Callable[[bytearray], None]) -> None:
        for one in changes:
            one(self.data)
            self.pending.append(one)

    def sync(self) -> None:
        for one in self.pending:
            one(self.durable)
        self.pending.clear()

    def fail_sync(self) -> None:
        self.pending.clear()
        self.distrusted = True

    def restart(self, kept: Callable[[], bool], *, power_lost: bool) -> None:
        """Begin anew with what is there; `kept` says of each pending change whether it reached the disk."""
        if power_lost:
            for one in self.pending:
                if kept():
                    one(self.durable)
            self.pending.clear()
        if power_lost or self.distrusted:
            self.data = bytearray(self.durable)
            for one in self.pending:
                one(self.data)
        self.distrusted = False


@dataclass
class Folder:
    """The names in a folder, like the content of a file. A pending change gives the inodes that some names get."""

    names: "dict[str, Inode | Folder]" = field(default_factory=dict)
    durable: "dict[str, Inode | Folder]" = field(default_factory=dict)
    pending: "list[dict[str, Inode | Folder | None]]" = field(default_factory=list)

    def change(self, change: "dict[str, Inode | Folder | None]") -> None:
        _rename(self.names, change)
        self.pending.append(change)

    def sync(self) -> None:
        for one in self.pending:
            _rename(self.durable, one)
        self.pending.clear()

    def fail_sync(self) -> None:
        return

    def restart(self, kept: Callable[[], bool], *, power_lost: bool) -> None:
        if power_lost:
            for one in self.pending:
                if kept():
                    _rename(self.durable, one)
            self.pending.clear()
            self.names = dict(self.durable)
        for entry in self.names.values():
            entry.restart(kept, power_lost=power_lost)


def _rename(names: "dict[str, Inode | Folder]", change: "dict[str, Inode | Folder | None]") -> None:
    for name, entry in change.items():
        if entry is None:
            names.pop(name, None)
        else:
            names[name] = entry


@dataclass
class Fault:
    """What goes wrong behind `after` calls: once, or on a full disk until the fault is taken back."""

    after: int
    error: int

    @property
    def passes(self) -> bool:
        return self.error != errno.ENOSPC


NEED_SPACE = frozenset({"pwrite", "open", "mkdir"})
"""The calls that a full disk refuses."""


class SimulatedDisk(Files):
    """`fault` is what is to go wrong next; `failed` tells whether it has. Error 0 is a write that is cut short."""

    def __init__(self, now_ms: int) -> None:
        self.root = Folder()
        self.now_ms = now_ms
        """When every file was written to."""
        self.fault: Fault | None = None
        self.failed = False
        self._open: dict[int, Inode | Folder] = {}
        self._last_fd = 0

    def restart(self, random: Random, *, power_lost: bool) -> None:
        """The process dies, or the machine with it."""
        self._open.clear()
        self.root.restart(lambda: random.random() < 0.5, power_lost=power_lost)

    def set_fault(self, fault: Fault | None) -> None:
        self.fault, self.failed = fault, False

    def _check(self, call: str) -> bool:
        """Count a call, and let it fail; gives whether a write is to be cut short."""
        fault = self.fault
        if fault is None or (fault.error == errno.ENOSPC and call not in NEED_SPACE):
            return False
        if fault.error == 0 and call != "pwrite":
            return False
        fault.after -= 1
        if fault.after >= 0:
            return False
        if fault.passes:
            self.fault = None
        if fault.error == 0:
            return True
        self.failed = True
        raise OSError(fault.error, os.strerror(fault.error))

    def _find(self, path: str) -> "Inode | Folder | None":
        entry: Inode | Folder | None = self.root
        for name in path.strip("/").split("/"):
            entry = entry.names.get(name) if isinstance(entry, Folder) else None
        return entry

    def _existing(self, path: str) -> "Inode | Folder":
        entry = self._find(path)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return entry

    def _folder(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self._existing(parent) if parent else self.root
        assert isinstance(folder, Folder)
        return folder, name

    def _inode(self, fd: int) -> Inode:
        inode = self._open[fd]
        assert isinstance(inode, Inode)
        return inode

    def _handle(self, entry: "Inode | Folder") -> FileHandle:
        self._last_fd += 1
        self._open[self._last_fd] = entry
        return FileHandle(self._last_fd, self._close)

    def _close(self, fd: int) -> None:
        self._open.pop(fd, None)

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        entry = self._find(path)
        if entry is None and create:
            self._check("open")
            folder, name = self._folder(path)
            entry = Inode()
            folder.change({name: entry})
        return self._handle(entry if entry is not None else self._existing(path))

    def open_for_reading(self, path: str) -> FileHandle:
        self._check("open_for_reading")
        return self._handle(self._existing(path))

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        content = bytes(data)
        try:
            short = self._check("pwrite")
        except OSError:
            # What did not fail of the write is in the file.
            self._write(fd, content[: len(content) // 2], position)
            raise
        written = content[: max(len(content) // 2, 1)] if short else content
        self._write(fd, written, position)
        return len(written)

    def _write(self, fd: int, data: bytes, position: int) -> None:
        for start in range(0, len(data), SECTOR_BYTES):
            piece = data[start : start + SECTOR_BYTES]
            self._inode(fd).change(lambda content, at=position + start, piece=piece: _put(content, at, piece))

    def pread(self, fd: int, size: int, position: int) -> bytes:
        self._check("pread")
        return bytes(self._inode(fd).data[position : position + size])

    def peek(self, fd: int, size: int, position: int) -> bytearray:
        self._check("peek")
        return bytearray(self._inode(fd).data[position : position + size])

    def fsync(self, fd: int) -> None:
        try:
            self._check("fsync")
        except OSError:
            self._open[fd].fail_sync()
            raise
        self._open[fd].sync()

    fdatasync = fsync

    def ftruncate(self, fd: int, size: int) -> None:
        self._check("ftruncate")
        self._inode(fd).change(lambda content: _resize(content, size))

    def rename(self, old: str, new: str) -> None:
        self._check("rename")
        folder, name = self._folder(new)
        entry = self._existing(old)
        assert self._folder(old)[0] is folder
        folder.change({name: entry, os.path.basename(old): None})

    def link(self, path: str, name: str) -> None:
        self._check("link")
        folder, new = self._folder(name)
        if new in folder.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        folder.change({new: self._existing(path)})

    def unlink(self, path: str) -> None:
        self._check("unlink")
        self._existing(path)
        folder, name = self._folder(path)
        folder.change({name: None})

    rmdir = unlink

    def mkdir(self, path: str) -> None:
        self._check("mkdir")
        folder, name = self._folder(path)
        folder.change({name: Folder()})

    def size(self, path: str) -> int:
        entry = self._existing(path)
        return len(entry.data) if isinstance(entry, Inode) else 0

    def modified_ms(self, path: str) -> int:
        self._existing(path)
        return self.now_ms

    def set_modified_ms(self, path: str, time_ms: int) -> None:  # noqa: ARG002 - all files are of one time
        self._check("set_modified_ms")
        self._existing(path)

    def names(self, directory: str) -> list[str]:
        self._check("names")
        folder = self._existing(directory)
        assert isinstance(folder, Folder)
        return sorted(folder.names)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Folder)

    def make_directories(self, path: str) -> None:
        made = ""
        for name in path.strip("/").split("/"):
            made += "/" + name
            if self._find(made) is None:
                self.mkdir(made)

    def lock(self, path: str) -> FileHandle | None:
        return self.open(path, create=True)


def _put(content: bytearray, position: int, piece: bytes) -> None:
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    content[position : position + len(piece)] = piece


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))
