"""A folder of logs: whose it is, who uses it, what a start finds and a stop leaves."""

import base64
import logging
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from support.logs import FaultyFiles, contents
from support.stores import ID, OTHER_ID, Config, SetClock, append, make, open_store

from odradek.log.errors import LogFolderError
from odradek.log.files import Files
from odradek.log.store import LogStore
from odradek_protocol.errors import BrokerError, Error

MEETING_DEADLINE_S = 60


class MeetingFiles(Files):
    """Files of which each thread reads for the first time when so many of them do."""

    def __init__(self, threads: int) -> None:
        self.meeting = threading.Barrier(threads, timeout=MEETING_DEADLINE_S)
        self._met = threading.local()

    def pread(self, fd: int, size: int, position: int) -> bytes:
        if not hasattr(self._met, "there"):
            self._met.there = True
            self.meeting.wait()
        return os.pread(fd, size, position)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


class TestOwnership:
    def test_one_broker_at_a_time(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        with pytest.raises(LogFolderError, match=f"another broker uses {tmp_path}"):
            open_store(tmp_path)
        store.close()
        open_store(tmp_path).close()

    def test_of_another_broker(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        assert store.cluster_id is None
        store.identify("c1")
        store.close()
        assert "version=0\n" in (tmp_path / "meta.properties").read_text()
        with pytest.raises(LogFolderError, match=f"{tmp_path}/meta.properties has broker.id=1, and this broker has 2"):
            open_store(tmp_path, node_id=2)
        with pytest.raises(LogFolderError, match=r"has cluster.id=c1, and this broker has c2"):
            open_store(tmp_path, cluster_id="c2")
        again = open_store(tmp_path, cluster_id="c1")
        assert again.cluster_id == "c1"
        with pytest.raises(LogFolderError, match=r"has cluster.id=c1, and this broker has c2"):
            again.identify("c2")
        again.close()

    def test_version_1(self, tmp_path: Path) -> None:
        text = "#\n#Mon Jan 01 00:00:00 UTC 2024\nnode.id=4\nversion=1\ncluster.id=c1\ndirectory.id=xyz\n"
        (tmp_path / "meta.properties").write_text(text)
        with pytest.raises(LogFolderError, match=r"has node.id=4, and this broker has 1"):
            open_store(tmp_path, node_id=1)
        store = open_store(tmp_path, node_id=4)
        store.identify("c1")
        store.close()
        assert (tmp_path / "meta.properties").read_text() == text

    def test_each_folder_has_an_id_of_its_own(self, tmp_path: Path) -> None:
        store = open_store(tmp_path / "1", tmp_path / "2")
        store.identify("c1")
        store.close()
        texts = [(tmp_path / name / "meta.properties").read_text() for name in ("1", "2")]
        ids = [dict(line.split("=", 1) for line in text.splitlines())["directory.id"] for text in texts]
        assert len(set(ids)) == 2
        assert all(len(base64.urlsafe_b64decode(one + "==")) == 16 for one in ids)
        again = open_store(tmp_path / "1", tmp_path / "2")
        again.identify("c1")
        again.close()
        assert [(tmp_path / name / "meta.properties").read_text() for name in ("1", "2")] == texts

    def test_a_copied_folder(self, tmp_path: Path) -> None:
        store = open_store(tmp_path / "1")
        store.identify("c1")
        store.close()
        shutil.copytree(tmp_path / "1", tmp_path / "2")
        with pytest.raises(LogFolderError, match=r"both have directory.id="):
            open_store(tmp_path / "1", tmp_path / "2")

    def test_folders_of_two_clusters(self, tmp_path: Path) -> None:
        for name in ("1", "2"):
            store = open_store(tmp_path / name)
            store.identify(f"c{name}")
            store.close()
        with pytest.raises(LogFolderError, match=f"{tmp_path}/2/meta.properties has cluster.id=c2, and this broker"):
            open_store(tmp_path / "1", tmp_path / "2")

    def test_unknown_version(self, tmp_path: Path) -> None:
        (tmp_path / "meta.properties").write_text("version=7\n")
        with pytest.raises(LogFolderError, match="has version 7"):
            open_store(tmp_path)


class TestRestart:
    def test_after_a_clean_stop(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        log = make(store)
        for value in (b"1", b"2", b"3"):
            append(log, value)
        log.increment_log_start_offset(1)
        store.close({("a", 0): 3})
        assert (tmp_path / ".kafka_cleanshutdown").exists()
        assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\na 0 3\n"
        again = open_store(tmp_path)
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        assert again.high_watermarks == {("a", 0): 3}
        found = make(again)
        assert contents(found) == [(1, b"2"), (2, b"3")]
        assert found.recovery_point == 3
        again.close()

    def test_after_a_crash(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        append(make(store), b"1")
        store.abandon()
        again = open_store(tmp_path)
        log = again.get("a", 0)
        assert log is not None
        assert contents(log) == [(0, b"1")]
        assert log.recovery_point == 0
        again.close()

    def test_not_clean_when_a_log_cannot_be_closed(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        store = LogStore.open([str(tmp_path)], Config(), 1, SetClock(), files=files)
        append(make(store), b"1")
        files.broken = {"fsync"}
        store.close()
        assert not (tmp_path / ".kafka_cleanshutdown").exists()

    def test_damaged_checkpoints_are_ignored(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        append(make(store), b"1")
        store.close()
        for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
            for text in (b"", b"0\n3\na 0 1\n", b"0\n1\na 0 x\n", b"\xff\xfe", b"1\n0\n"):
                (tmp_path / name).write_bytes(text)
                again = open_store(tmp_path)
                assert contents(make(again)) == [(0, b"1")]
                again.abandon()

    def test_a_recovery_reads_in_all_folders_and_threads_at_once_and_tells_how_far_it_is(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folders = [tmp_path / "1", tmp_path / "2"]
        store = open_store(*folders)
        for topic in "abcd":
            append(make(store, topic), b"v" * 1000)
        store.abandon()
        caplog.set_level(logging.INFO)
        files = MeetingFiles(len(folders) * Config.num_recovery_threads_per_data_dir)
        again = LogStore.open([str(folder) for folder in folders], Config(), 1, SetClock(), files=files)
        assert not files.meeting.broken
        told = next(message for message in caplog.messages if message.startswith("recovered"))
        assert re.fullmatch(r"recovered 4 of 4 logs, 0\.0 MB of 0\.0 MB, \d+ MB/s", told)
        again.close()
        caplog.clear()
        open_store(*folders).close()
        assert not [message for message in caplog.messages if message.startswith("recovered")]


class TestLogs:
    def test_layout(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        make(store, "my-topic", 3)
        assert (tmp_path / "my-topic-3" / "partition.metadata").read_text() == (
            "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
        )
        store.close()

    def test_folder_with_fewest_logs(self, tmp_path: Path) -> None:
        first, second = tmp_path / "1", tmp_path / "2"
        store = open_store(first, second)
        for index in range(4):
            make(store, index=index)
        assert sorted(path.name for path in first.glob("a-*")) == ["a-0", "a-2"]
        assert sorted(path.name for path in second.glob("a-*")) == ["a-1", "a-3"]
        store.close()
        again = open_store(first, second)
        assert len(again.logs) == 4
        again.close()

    def test_partition_in_two_folders(self, tmp_path: Path) -> None:
        for name in ("1", "2"):
            store = open_store(tmp_path / name)
            make(store)
            store.close()
        with pytest.raises(LogFolderError, match="hold the same partition"):
            open_store(tmp_path / "1", tmp_path / "2")

    def test_new_topic_of_an_old_name_starts_empty(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        append(make(store), b"old")
        store.close()
        again = open_store(tmp_path)
        assert contents(make(again, topic_id=OTHER_ID)) == []
        again.purge()
        (stray,) = tmp_path.glob("a-0.*-stray")
        assert (stray / f"{0:020d}.log").stat().st_size > 0
        again.close()

    def test_the_logs_of_a_topic_are_those_that_do_not_say_they_are_anothers(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        make(store, index=0)
        make(store, index=1)
        make(store, index=2, topic_id=OTHER_ID)
        make(store, topic="aa")
        store.close()
        (tmp_path / "a-1" / "partition.metadata").unlink()
        again = open_store(tmp_path)
        assert {(log.topic, log.partition) for log in again.of_topic("a", ID)} == {("a", 0), ("a", 1)}
        again.close()

    def test_deletion(self, tmp_path: Path, clock: SetClock) -> None:
        store = open_store(tmp_path, clock=clock)
        log = make(store)
        append(log, b"1")
        piece = log.read(0, 100, 1, at_least_one=True)
        store.delete(log)
        assert store.get("a", 0) is None
        with pytest.raises(BrokerError) as caught:
            append(log, b"2")
        assert caught.value.error is Error.KAFKA_STORAGE_ERROR
        (doomed,) = tmp_path.glob("a-0.*-delete")
        assert piece is not None
        assert len(piece.read_bytes()) == piece.size
        clock.now += 59_999
        store.purge()
        assert doomed.exists()
        clock.now += 1
        store.purge()
        assert not doomed.exists()
        store.close()

    def test_deletion_goes_on_after_a_restart(self, tmp_path: Path) -> None:
        store = open_store(tmp_path)
        store.delete(make(store, "x" * 249))
        store.close()
        again = open_store(tmp_path)
        again.purge()
        assert not list(tmp_path.glob("*-delete"))
        again.close()
