"""Folders that fail: while they are opened, and at any call afterwards. The others go on."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from support.logs import FOREVER, NOW_MS, FaultyFiles, LogSettings, contents, records
from support.stores import ID, Config, SetClock, append, make, open_store

from odradek.log.errors import LogFolderError
from odradek.log.folder import Folder
from odradek.log.log import Log
from odradek.log.store import LogStore
from odradek_protocol.errors import BrokerError, Error


class BrokenBelow(FaultyFiles):
    """Files of which those below one path fail."""

    def __init__(self) -> None:
        super().__init__()
        self.path: str | None = None
        self.error = errno.EIO

    def open(self, path: str, *, create: bool = False):  # type: ignore[no-untyped-def]  # as the method that it wraps
        self._fail(path)
        return super().open(path, create=create)

    def names(self, directory: str) -> list[str]:
        self._fail(directory)
        return super().names(directory)

    def _fail(self, path: str) -> None:
        if self.path is not None and path.startswith(self.path):
            raise OSError(self.error, "broken", path)


def two_folders(tmp_path: Path, files: FaultyFiles) -> tuple[LogStore, Log, Log, list[Folder]]:
    """A store with a log in each of two folders, and the folders that failed."""
    store = LogStore.open([str(tmp_path / "1"), str(tmp_path / "2")], Config(), 1, SetClock(), files=files)
    failed: list[Folder] = []
    store.on_folder_failure = failed.append
    first, second = make(store, index=0), make(store, index=1)
    append(first, b"1")
    append(second, b"2")
    return store, first, second, failed


CALLS: dict[str, Callable[[Log], object]] = {
    "pwrite": lambda log: append(log, b"3"),
    "pread": lambda log: log.offset_for_timestamp(NOW_MS, 1),
    "fsync": lambda log: log.prepare_flush().run(),
    "ftruncate": lambda log: log.truncate_to(0),
    "rename": lambda log: log.delete_old_segments(FOREVER),
}
"""What fails when a call is broken."""


@pytest.mark.parametrize("call", CALLS)
def test_any_broken_call_takes_the_folder_offline(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    store, first, second, failed = two_folders(tmp_path, files)
    files.broken = {call}
    with pytest.raises(BrokerError) as caught:
        CALLS[call](second)
    assert caught.value.error is Error.KAFKA_STORAGE_ERROR
    files.broken = set()
    assert failed == [store.folders[1]]
    with pytest.raises(BrokerError) as caught:
        append(second, b"4")
    assert caught.value.error is Error.KAFKA_STORAGE_ERROR
    append(first, b"5")
    assert contents(first) == [(0, b"1"), (1, b"5")]
    store.abandon()


def test_a_full_disk_is_no_broken_one(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, _, second, failed = two_folders(tmp_path, files)
    files.write_limit = 10
    with pytest.raises(BrokerError, match="No space left"):
        append(second, b"3")
    files.write_limit = None
    append(second, b"4")
    assert failed == []
    store.close()


def test_an_fsync_that_fails_is_never_believed_again(tmp_path: Path) -> None:
    class Full(FaultyFiles):
        def fsync(self, fd: int) -> None:
            if self.broken:
                raise OSError(errno.ENOSPC, "full")
            super().fsync(fd)

    files = Full()
    store, _, second, failed = two_folders(tmp_path, files)
    files.broken = {"fsync"}
    with pytest.raises(BrokerError):
        second.prepare_flush().run()
    assert failed == [store.folders[1]]
    store.abandon()


def test_what_is_left_serves_and_closes_cleanly(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, _, second, failed = two_folders(tmp_path, files)
    files.broken = {"pwrite"}
    with pytest.raises(BrokerError):
        append(second, b"3")
    files.broken = set()
    store.drop(failed[0])
    assert store.is_missing("a", 1)
    assert not store.is_missing("a", 0)
    assert make(store, "new", 0).directory == str(tmp_path / "1" / "new-0")
    store.close()
    assert (tmp_path / "1" / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "2" / ".kafka_cleanshutdown").exists()
    again = open_store(tmp_path / "1", tmp_path / "2")
    found = again.get("a", 1)
    assert found is not None
    assert contents(found) == [(0, b"2")]
    again.close()


def test_a_folder_that_cannot_be_read_at_the_start(tmp_path: Path) -> None:
    store = open_store(tmp_path / "1", tmp_path / "2")
    for index in range(2):
        append(make(store, index=index), b"%d" % index)
    store.close()
    (tmp_path / "2").rename(tmp_path / "away")
    (tmp_path / "2").write_text("not a folder")
    again = open_store(tmp_path / "1", tmp_path / "2")
    assert [folder.online for folder in again.folders] == [True, False]
    assert again.is_missing("a", 1)
    assert list(again.logs) == [("a", 0)]
    again.close()
    (tmp_path / "2").unlink()
    (tmp_path / "away").rename(tmp_path / "2")
    repaired = open_store(tmp_path / "1", tmp_path / "2")
    assert contents(repaired.logs["a", 1]) == [(0, b"1")]
    repaired.close()


def test_a_folder_that_fails_while_its_logs_are_opened(tmp_path: Path) -> None:
    store = open_store(tmp_path / "1", tmp_path / "2")
    for index in range(4):
        append(make(store, index=index), b"%d" % index)
    store.abandon()
    files = BrokenBelow()
    files.path = str(tmp_path / "2" / "a-3")
    again = LogStore.open([str(tmp_path / "1"), str(tmp_path / "2")], Config(), 1, SetClock(), files=files)
    assert [folder.online for folder in again.folders] == [True, False]
    assert sorted(again.logs) == [("a", 0), ("a", 2)]
    again.abandon()


def test_no_folder_is_left(tmp_path: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / name).write_text("not a folder")
    with pytest.raises(LogFolderError, match=r"no folder of log.dirs can be used: .*1: .*; .*2: "):
        open_store(tmp_path / "1", tmp_path / "2")


def test_a_new_log_does_not_inherit_the_checkpoints_of_an_old_one(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    log = make(store)
    for value in (b"1", b"2", b"3"):
        append(log, value)
    log.increment_log_start_offset(2)
    store.checkpoint()
    store.delete(log)
    append(store.get_or_create("a", 0, bytes(16), LogSettings()), b"new")
    store.abandon()
    again = open_store(tmp_path)
    assert contents(again.logs["a", 0]) == [(0, b"new")]
    again.close()


def test_cordoned_folders_take_no_new_logs(tmp_path: Path) -> None:
    config = Config()
    store = LogStore.open([str(tmp_path / "1"), str(tmp_path / "2")], config, 1, SetClock())
    config.cordoned_log_dirs = [str(tmp_path / "1")]
    for index in range(3):
        assert make(store, index=index).directory == str(tmp_path / "2" / f"a-{index}")
    store.preferred["b", 0] = str(tmp_path / "1")
    assert make(store, "b").directory == str(tmp_path / "1" / "b-0")
    store.close()


def test_records_of_an_unknown_topic_id_stay(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    log = store.get_or_create("a", 0, ID, LogSettings())
    log.append_as_leader(records(b"1"), 0, NOW_MS)
    assert store.get_or_create("a", 0, ID, LogSettings()) is log
    store.close()
