"""The broker as its users run it: the command line, signals, folders, and what a kill leaves behind."""

import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from support.batches import batch
from support.process import broker_process, run_to_end
from support.wire import WireClient, fetch_request

from odradek import __version__
from odradek_protocol.errors import Error
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.read import read_records


def values(client: WireClient, topic: str) -> list[bytes]:
    """All values in the first partition of a topic."""
    found: list[bytes] = []
    offset = 0
    while True:
        records = memoryview(client.fetch(topic, offset).records)
        if not records:
            return found
        for position, header in iter_batches(records):
            whole = records[position : position + header.size]
            found += [bytes(record.value or b"") for record in read_records(whole)]
            offset = header.last_offset + 1


def topic_id(client: WireClient, topic: str) -> bytes:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    identity: bytes = client.call(asked, 12).topics[0].topic_id
    return identity


def commit(client: WireClient, group: str, topic: str, offset: int) -> int:
    """Commit an offset as a consumer outside a group does; the error code."""
    coordinator = client.call(FindCoordinatorRequest(key=group, key_type=0), 2)
    assert coordinator.error_code == 0
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    asked = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    code: int = client.call(asked, 8).topics[0].partitions[0].error_code
    return code


def committed(client: WireClient, group: str, topic: str) -> int:
    """The committed offset, as soon as the group is loaded."""
    asked = OffsetFetchRequest(group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])])
    while (reply := client.call(asked, 5)).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS:
        pass
    assert reply.error_code == 0
    offset: int = reply.topics[0].partitions[0].committed_offset
    return offset


def test_the_ready_line_names_an_address_that_answers(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        with WireClient(broker.port) as client:
            (told,) = client.call(MetadataRequest(topics=()), 9).brokers
            assert (told.host, told.port) == ("127.0.0.1", broker.port)
        assert broker.stop() == 0
        assert "Traceback" not in broker.errors()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(tmp_path: Path, number: int) -> None:
    with broker_process(tmp_path) as broker:
        assert broker.stop(number) == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_waiting_requests_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    """A fetch and a join that could wait for minutes are answered when the broker stops."""
    with broker_process(tmp_path, {"group.initial.rebalance.delay.ms": "60000"}) as broker:
        with WireClient(broker.port) as fetching, WireClient(broker.port) as joining:
            fetching.create_topic("t")
            commit(joining, "g", "t", 0)
            fetching.send(fetch_request("t", [(0, 0)], max_wait_ms=600_000), 12)
            protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
            joining.send(
                JoinGroupRequest(
                    group_id="g",
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=300_000,
                    member_id="",
                    protocol_type="consumer",
                    protocols=[protocol],
                ),
                3,
            )
            started = time.monotonic()
            assert broker.stop() == 0
            assert time.monotonic() - started < 15
        assert "Traceback" not in broker.errors()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--override", "num.partitions=many"], ["num.partitions", "many"]),
        (["--override", "num.partitons=3"], ["num.partitons", "num.partitions"]),
        (["--override", "listeners=SSL://127.0.0.1:0"], ["listeners", "SSL"]),
        (["--override", "num.partitions"], ["--override", "num.partitions"]),
        (["/nowhere/server.properties"], ["/nowhere/server.properties"]),
    ],
)
def test_bad_configuration_names_the_key_and_exits_1(arguments: list[str], named: list[str]) -> None:
    ended = run_to_end("serve", *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("odradek: ")
    for text in named:
        assert text in line


def test_a_taken_port_is_named_and_exits_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listener = f"listeners=PLAINTEXT://127.0.0.1:{port}"
        ended = run_to_end("serve", "--override", listener, "--override", f"log.dirs={tmp_path}")
    assert ended.returncode == 1
    assert f"PLAINTEXT://127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    options = ["--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", f"log.dirs={tmp_path}"]
    with broker_process(tmp_path) as first:
        ended = run_to_end("serve", *options)
        assert first.running
    assert ended.returncode == 1
    assert re.search(rf"odradek: .*{re.escape(str(tmp_path))}", ended.stderr)
    assert "Traceback" not in ended.stderr


def test_a_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    with broker_process(tmp_path, {"node.id": "7"}) as first:
        first.stop()
    options = ["--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", f"log.dirs={tmp_path}"]
    ended = run_to_end("serve", *options, "--override", "node.id=8")
    assert ended.returncode == 1
    assert "7" in ended.stderr
    assert "8" in ended.stderr


def test_version() -> None:
    assert run_to_end("--version").stdout == f"odradek {__version__}\n"


def test_a_properties_file_and_its_overrides(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "# a comment\nnode.id = 5\nnum.partitions=2\nlisteners=PLAINTEXT://127.0.0.1:1\nzookeeper.connect=x\n"
    )
    options = {"listeners": "PLAINTEXT://127.0.0.1:0", "num.partitions": "3"}
    with broker_process(tmp_path / "data", options, file) as broker:
        with WireClient(broker.port) as client:
            assert client.call(MetadataRequest(topics=()), 9).brokers[0].node_id == 5
            asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
            assert len(client.call(asked, 9).topics[0].partitions) == 3
        assert "zookeeper.connect" in broker.errors()


class TestRestart:
    """What was there before a stop or a kill is there again."""

    @pytest.mark.parametrize("how", ["stop", "kill"])
    def test_everything_is_there_again(self, tmp_path: Path, how: str) -> None:
        sent = [b"%d" % index for index in range(50)]
        with broker_process(tmp_path) as broker, WireClient(broker.port) as client:
            identity = client.create_topic("kept", retention_ms="-1")
            client.create_topic("gone")
            for value in sent:
                assert client.produce("kept", batch(value), acks=-1).error_code == 0
            assert commit(client, "g", "kept", 17) == 0
            getattr(broker, how)()
        with broker_process(tmp_path) as broker, WireClient(broker.port) as client:
            assert values(client, "kept") == sent
            assert topic_id(client, "kept") == identity
            assert committed(client, "g", "kept") == 17
            assert client.produce("kept", batch(b"more")).base_offset == len(sent)

    def test_t32_a_repetition_after_a_kill_is_still_a_repetition(self, tmp_path: Path) -> None:
        with broker_process(tmp_path) as broker, WireClient(broker.port) as client:
            client.create_topic("t")
            assert client.produce("t", batch(b"a", producer=(5, 0, 0))).base_offset == 0
            assert client.produce("t", batch(b"b", producer=(5, 0, 1))).base_offset == 1
            broker.kill()
        with broker_process(tmp_path) as broker, WireClient(broker.port) as client:
            again = client.produce("t", batch(b"b", producer=(5, 0, 1)))
            assert (again.error_code, again.base_offset) == (0, 1)
            assert client.produce("t", batch(b"c", producer=(5, 0, 3))).error_code == 45
            assert values(client, "t") == [b"a", b"b"]

    def test_acknowledged_records_survive_a_kill_under_load(self, tmp_path: Path) -> None:
        """Producers write as fast as they can until the broker dies; what was acknowledged is there, once, in order."""
        acknowledged: list[list[bytes]] = [[], [], []]

        def produce(index: int, port: int) -> None:
            with WireClient(port) as client:
                for number in range(1_000_000):
                    value = b"%d-%d" % (index, number)
                    try:
                        reply = client.produce("t", batch(value, producer=(index, 0, number)), acks=-1)
                    except (OSError, EOFError):
                        return
                    if reply.error_code == 0:
                        acknowledged[index].append(value)

        with broker_process(tmp_path, {"log.segment.bytes": str(1 << 20)}) as broker:
            with WireClient(broker.port) as client:
                client.create_topic("t")
            threads = [threading.Thread(target=produce, args=(index, broker.port)) for index in range(3)]
            for thread in threads:
                thread.start()
            while any(len(done) < 300 for done in acknowledged):
                time.sleep(0.01)
            broker.kill()
            for thread in threads:
                thread.join()
        with broker_process(tmp_path) as broker, WireClient(broker.port) as client:
            found = values(client, "t")
        for index, done in enumerate(acknowledged):
            mine = [value for value in found if value.startswith(b"%d-" % index)]
            assert mine[: len(done)] == done
            assert len(mine) - len(done) in (0, 1), "at most the record whose reply the kill cut off"
