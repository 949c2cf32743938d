"""Several `log.dirs`: what a failed one costs, moving logs between them, cordoned ones; over the wire."""

import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.batches import batch
from support.wire import WireClient

from odradek.log.files import Files
from odradek.testing import Broker
from odradek_protocol.errors import Error
from odradek_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek_protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResult
from odradek_protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.read import read_records


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in ("first", "second", "third")]


def start(folders: list[Path], **overrides: str) -> Broker:
    return Broker({"log.dirs": ",".join(map(str, folders)), **overrides})


@pytest.fixture
def broker(folders: list[Path]) -> Iterator[Broker]:
    with start(folders) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.port) as connection:
        yield connection


def folder_of(folders: list[Path], topic: str, index: int) -> Path:
    """The folder that a partition's log is in."""
    (found,) = [folder for folder in folders if (folder / f"{topic}-{index}").is_dir()]
    return found


def describe(client: WireClient, folder: Path) -> DescribeLogDirsResult:
    reply = client.call(DescribeLogDirsRequest(topics=None), 5)
    (result,) = [result for result in reply.results if result.log_dir == str(folder)]
    return result


def partitions(client: WireClient, topic: str, version: int = 9) -> dict[int, MetadataResponsePartition]:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return {one.partition_index: one for one in client.call(asked, version).topics[0].partitions}


def end_offset_error(client: WireClient, topic: str, index: int) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)])
    code: int = client.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), 5).topics[0].partitions[0].error_code
    return code


def alter(client: WireClient, folder: str | Path, topic: str, index: int = 0, version: int = 2) -> int:
    """Ask for a partition in a folder; the error code."""
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[index])]
    reply = client.call(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(folder), topics=topics)]), version)
    (result,) = reply.results
    assert (result.topic_name, result.partitions[0].partition_index) == (topic, index)
    code: int = result.partitions[0].error_code
    return code


def values(client: WireClient, topic: str, index: int = 0) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while records := memoryview(client.fetch(topic, offset, index=index).records):
        for position, header in iter_batches(records):
            found += [record.value or b"" for record in read_records(records[position : position + header.size])]
            offset = header.last_offset + 1
    return found


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; the broker says nothing when a move ends."""
    tick = threading.Event()
    for _ in range(600):
        if condition():
            return
        tick.wait(0.05)
    raise AssertionError(condition)


class TestFailure:
    def test_a_folder_that_breaks_while_it_is_used(
        self, broker: Broker, client: WireClient, folders: list[Path], topic: str
    ) -> None:
        client.create_topic(topic, partitions=3)
        broken = next(index for index in range(3) if folder_of(folders, topic, index) == folders[1])
        others = [index for index in range(3) if index != broken]
        for index in range(3):
            assert client.produce(topic, batch(b"before"), index=index).error_code == 0
        assert broker.node is not None
        broker.node.logs.folders[1].fail(OSError(errno.EIO, "broken"))
        reply = client.produce(topic, batch(b"lost"), index=broken)
        assert reply.error_code == Error.KAFKA_STORAGE_ERROR
        eventually(lambda: partitions(client, topic)[broken].leader_id == -1)
        offline = partitions(client, topic)[broken]
        assert offline.error_code == Error.LEADER_NOT_AVAILABLE
        assert (offline.leader_epoch, offline.replica_nodes, offline.isr_nodes) == (1, [1], [])
        assert offline.offline_replicas == [1]
        assert client.fetch(topic, 0, index=broken).error_code == Error.KAFKA_STORAGE_ERROR
        assert end_offset_error(client, topic, broken) == Error.KAFKA_STORAGE_ERROR
        described = describe(client, folders[1])
        assert (described.error_code, described.topics, described.total_bytes) == (Error.KAFKA_STORAGE_ERROR, [], -1)
        for index in others:
            assert client.produce(topic, batch(b"after"), index=index).error_code == 0
            assert values(client, topic, index) == [b"before", b"after"]
            assert partitions(client, topic)[index].leader_id == 1
        client.create_topic(f"{topic}-new", partitions=4)
        assert folders[1] not in {folder_of(folders, f"{topic}-new", index) for index in range(4)}
        assert alter(client, folders[1], topic, others[0]) == Error.KAFKA_STORAGE_ERROR
        assert alter(client, folders[2], topic, broken) == Error.KAFKA_STORAGE_ERROR
        client.delete_topic(topic)
        assert all(
            not (folder / f"{topic}-{index}").exists() for folder in (folders[0], folders[2]) for index in others
        )
        client.create_topic(topic, partitions=3)
        assert values(client, topic, broken) == []

    def test_a_folder_that_is_gone_at_the_start_and_comes_back(self, folders: list[Path], topic: str) -> None:
        with start(folders) as broker, WireClient(broker.port) as client:
            client.create_topic(topic, partitions=3)
            for index in range(3):
                client.produce(topic, batch(b"%d" % index), index=index)
            gone = next(index for index in range(3) if folder_of(folders, topic, index) == folders[2])
        away = folders[2].rename(folders[2].with_name("away"))
        folders[2].write_text("not a folder")
        with start(folders) as broker, WireClient(broker.port) as client:
            found = partitions(client, topic)
            assert {index: one.leader_id for index, one in found.items()} == {
                index: -1 if index == gone else 1 for index in range(3)
            }
            assert found[gone].offline_replicas == [1]
            assert client.produce(topic, batch(b"x"), index=gone).error_code == Error.KAFKA_STORAGE_ERROR
            assert describe(client, folders[2]).error_code == Error.KAFKA_STORAGE_ERROR
        folders[2].unlink()
        away.rename(folders[2])
        with start(folders) as broker, WireClient(broker.port) as client:
            found = partitions(client, topic)
            assert (found[gone].leader_id, found[gone].leader_epoch, found[gone].isr_nodes) == (1, 2, [1])
            assert values(client, topic, gone) == [b"%d" % gone]

    def test_the_folder_with_the_metadata_is_needed(self, folders: list[Path], topic: str) -> None:
        with start(folders) as broker:
            assert broker.node is not None
            with WireClient(broker.port) as client:
                client.create_topic(topic)
                broker.node.logs.folders[0].fail(OSError(errno.EIO, "broken"))
                assert client.is_closed_by_broker()
            with pytest.raises(OSError, match=r"first, which holds metadata.db, cannot be used: \[Errno 5\] broken"):
                broker.stop()


class TestMoves:
    @pytest.mark.parametrize("version", range(3))
    def test_a_log_moves_with_all_that_is_in_it(
        self, client: WireClient, folders: list[Path], topic: str, version: int
    ) -> None:
        client.create_topic(topic, segment_bytes="1048576")
        written = [b"%02d" % number * 50_000 for number in range(40)]
        for value in written[:39]:
            assert client.produce(topic, batch(value)).error_code == 0
        source = folder_of(folders, topic, 0)
        (target, _) = [folder for folder in folders if folder != source]
        assert alter(client, target, topic, version=version) == 0
        eventually(lambda: not (source / f"{topic}-0").exists())
        eventually((target / f"{topic}-0").exists)
        assert client.produce(topic, batch(written[39])).error_code == 0
        assert values(client, topic) == written
        assert not list(target.glob("*-future"))
        (row,) = next(one for one in describe(client, target).topics if one.name == topic).partitions
        assert (row.is_future_key, row.offset_lag) == (False, 0)

    def test_under_load(self, folders: list[Path], topic: str) -> None:
        """Written to without pause, moved to and fro: every acknowledged record is there, once, in order."""
        acknowledged: list[bytes] = []
        stop = threading.Event()
        with start(folders) as broker, WireClient(broker.port) as client:
            client.create_topic(topic, segment_bytes="1048576")

            def write() -> None:
                with WireClient(broker.port) as writer:
                    while not stop.is_set():
                        value = b"%06d" % len(acknowledged) * 100
                        assert writer.produce(topic, batch(value)).error_code == 0
                        acknowledged.append(value)

            thread = threading.Thread(target=write)
            thread.start()
            for _ in range(4):
                source = folder_of(folders, topic, 0)
                target = next(folder for folder in folders if folder != source)
                assert alter(client, target, topic) == 0
                eventually((target / f"{topic}-0").exists)
            stop.set()
            thread.join()
            assert values(client, topic) == acknowledged
        with start(folders) as broker, WireClient(broker.port) as client:
            assert values(client, topic) == acknowledged

    def test_refusals(self, client: WireClient, folders: list[Path], topic: str) -> None:
        client.create_topic(topic)
        assert alter(client, "/nowhere", topic) == Error.LOG_DIR_NOT_FOUND
        assert alter(client, folders[0], topic, 7) == Error.REPLICA_NOT_AVAILABLE
        assert alter(client, folders[0], "x" * 212) == Error.REPLICA_NOT_AVAILABLE
        assert alter(client, folders[0], "x" * 214) == Error.INVALID_TOPIC_EXCEPTION
        assert alter(client, folder_of(folders, topic, 0), topic) == 0

    def test_a_folder_asked_for_before_the_partition_is_there(
        self, client: WireClient, folders: list[Path], topic: str
    ) -> None:
        for index in range(3):
            assert alter(client, folders[2], topic, index) == Error.REPLICA_NOT_AVAILABLE
        client.create_topic(topic, partitions=3)
        assert {folder_of(folders, topic, index) for index in range(3)} == {folders[2]}


def test_cordoned_folders(folders: list[Path], topic: str) -> None:
    cordoned = {"cordoned.log.dirs": f"{folders[0]},{folders[2]}"}
    with start(folders, **cordoned) as broker, WireClient(broker.port) as client:
        client.create_topic(topic, partitions=3)
        assert {folder_of(folders, topic, index) for index in range(3)} == {folders[1]}
        assert [describe(client, folder).is_cordoned for folder in folders] == [True, False, True]
        assert alter(client, folders[2], topic) == Error.INVALID_REPLICA_ASSIGNMENT


def test_files_tell_what_they_cannot_say(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for call in (Files().exists, Files().is_directory):
        assert not call(str(tmp_path / "nothing"))
        with pytest.raises(OSError, match="symbolic links"):
            call(str(tmp_path / "loop"))
