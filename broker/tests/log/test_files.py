"""What stands between the log and the operating system: whole writes, handles that live as long as needed."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.logs import FaultyFiles

from odradek.log.files import FileCache, FileHandle, Files


class Owner:
    def __init__(self) -> None:
        self.handle: FileHandle | None = None
        self.used = False
        self.released = 0

    def release(self) -> None:
        self.handle = None
        self.released += 1


def test_handle_closes_with_its_last_holder(tmp_path: Path) -> None:
    handle = Files().open(str(tmp_path / "a"), create=True)
    held, fd = handle, handle.fd
    del handle
    os.fstat(fd)
    del held
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_short_writes_are_completed(tmp_path: Path) -> None:
    class Short(Files):
        def pwrite(self, fd: int, data: memoryview, position: int) -> int:
            return os.pwrite(fd, data[:3], position)

    files = Short()
    handle = files.open(str(tmp_path / "a"), create=True)
    files.write_at(handle.fd, b"0123456789", 0)
    assert files.read(str(tmp_path / "a")) == b"0123456789"


def test_write_that_gets_nowhere_fails(tmp_path: Path) -> None:
    class Stuck(Files):
        def pwrite(self, fd: int, data: memoryview, position: int) -> int:
            assert (fd, position) == (handle.fd, len(data) - 1)
            return 0

    handle = Files().open(str(tmp_path / "a"), create=True)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Stuck().write_at(handle.fd, b"0", 0)


def test_replacing_is_all_or_nothing(tmp_path: Path) -> None:
    files = FaultyFiles()
    path = tmp_path / "a"
    files.replace(str(path), b"old", durable=True)
    files.write_limit = 1
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        files.replace(str(path), b"new", durable=True)
    assert path.read_bytes() == b"old"


def test_reading_behind_the_end_fails(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123")
    handle = Files().open(str(path))
    assert Files().read_at(handle.fd, 2, 2) == b"23"
    with pytest.raises(OSError, match="the file ends at 4"):
        Files().read_at(handle.fd, 3, 2)


def test_peeking_gives_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123")
    handle = Files().open(str(path))
    assert Files().peek(handle.fd, 2, 1) == b"12"
    assert Files().peek(handle.fd, 3, 2) == b"23"
    assert Files().peek(handle.fd, 3, 4) == b""


def test_peeking_where_the_system_cannot_tell_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123")
    handle = Files().open(str(path))
    read = os.preadv

    def refusing(number: int) -> Callable[..., int]:
        def preadv(fd: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
            if flags & os.RWF_NOWAIT:
                raise OSError(number, os.strerror(number))
            return read(fd, buffers, position)

        return preadv

    monkeypatch.setattr(os, "preadv", refusing(errno.EOPNOTSUPP))
    assert Files().peek(handle.fd, 2, 1) == b"12"
    monkeypatch.setattr(os, "preadv", refusing(errno.EAGAIN))
    assert Files().peek(handle.fd, 2, 1) is None
    monkeypatch.setattr(os, "preadv", refusing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Files().peek(handle.fd, 2, 1)


def test_cache_puts_away_what_is_not_used(tmp_path: Path) -> None:
    files, cache = Files(), FileCache(2)
    owners = [Owner() for _ in range(4)]

    def open_owner(owner: Owner) -> None:
        owner.handle = files.open(str(tmp_path / "a"), create=True)
        cache.add(owner)

    open_owner(owners[0])
    open_owner(owners[1])
    owners[0].used = True
    open_owner(owners[2])
    assert [owner.released for owner in owners] == [0, 1, 0, 0]
    open_owner(owners[3])
    assert len(cache) == 2
    cache.discard(owners[3])
    assert owners[3].handle is None
    assert len(cache) == 1
