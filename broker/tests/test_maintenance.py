"""What a broker does by itself: flushing, retention, checkpoints, forgetting idle producers."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.batches import batch, now_ms
from support.wire import WireClient, produce_request

from odradek.log.checkpoints import LOG_START_OFFSETS, RECOVERY_POINTS
from odradek.partition import Partition
from odradek.testing import Broker
from odradek_protocol.errors import Error
from odradek_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

AT_ONCE = {"log.initial.task.delay.ms": "0"}
DAY_MS = 86_400_000


def partition(broker: Broker, topic: str) -> Partition:
    assert broker.node is not None
    found = broker.node.partitions.get(topic, 0)
    assert found is not None
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again; the test's own time limit ends it."""
    while not condition():
        time.sleep(0.005)


def refuse(fd: int) -> None:
    raise OSError(5, f"file {fd} is on a broken disk")


class TestFlush:
    """When records are on the disk for certain; the recovery point tells."""

    def test_not_before_anybody_asks(self) -> None:
        with Broker(AT_ONCE) as broker, WireClient(broker.port) as client:
            client.create_topic("t")
            client.produce("t", batch(b"a", b"b"))
            assert partition(broker, "t").log.recovery_point == 0

    def test_flush_messages_before_the_reply(self) -> None:
        with Broker(AT_ONCE) as broker, WireClient(broker.port) as client:
            client.create_topic("t", flush_messages="3")
            client.produce("t", batch(b"a", b"b"))
            assert partition(broker, "t").log.recovery_point == 0
            client.produce("t", batch(b"c"))
            assert partition(broker, "t").log.recovery_point == 3

    def test_one_flush_serves_all_who_wait(self) -> None:
        with Broker(AT_ONCE) as broker:
            clients = [WireClient(broker.port) for _ in range(8)]
            clients[0].create_topic("t", flush_messages="1")
            for client in clients * 5:
                client.send(produce_request("t", batch(b"v")), 9)
            for client in clients * 5:
                assert client.receive().responses[0].partition_responses[0].error_code == 0
            assert partition(broker, "t").log.recovery_point == 40
            for client in clients:
                client.close()

    def test_flush_ms(self) -> None:
        settings = {**AT_ONCE, "log.flush.scheduler.interval.ms": "5"}
        with Broker(settings) as broker, WireClient(broker.port) as client:
            client.create_topic("soon", flush_ms="1")
            client.create_topic("late", flush_ms=str(DAY_MS))
            client.produce("late", batch(b"a"))
            client.produce("soon", batch(b"a"))
            wait_until(lambda: partition(broker, "soon").log.recovery_point == 1)
            assert partition(broker, "late").log.recovery_point == 0

    def test_a_segment_that_was_rolled(self) -> None:
        with Broker(AT_ONCE) as broker, WireClient(broker.port) as client:
            client.create_topic("t", segment_bytes=str(1 << 20))
            client.produce("t", batch(bytes(600_000)))
            client.produce("t", batch(bytes(600_000)))
            wait_until(lambda: partition(broker, "t").log.recovery_point == 1)
            assert partition(broker, "t").log.log_end_offset == 2

    @pytest.mark.parametrize("acks", [1, -1])
    def test_a_disk_that_refuses_is_told_and_trusted_no_more(self, acks: int) -> None:
        with Broker(AT_ONCE) as broker, WireClient(broker.port) as client:
            client.create_topic("t", flush_messages="1")
            assert client.produce("t", batch(b"a"), acks=acks).error_code == 0
            broken = partition(broker, "t").log._files
            broken.fdatasync = refuse
            refused = client.produce("t", batch(b"b"), acks=acks)
            assert (refused.error_code, refused.base_offset) == (Error.KAFKA_STORAGE_ERROR, -1)
            del broken.fdatasync
            assert client.produce("t", batch(b"c"), acks=acks).error_code == Error.KAFKA_STORAGE_ERROR

    def test_with_acks_0_a_disk_that_refuses_closes_the_connection(self) -> None:
        with Broker(AT_ONCE) as broker, WireClient(broker.port) as client:
            client.create_topic("t", flush_messages="1")
            partition(broker, "t").log._files.fdatasync = refuse
            client.send(produce_request("t", batch(b"a"), acks=0), 9, expect_reply=False)
            assert client.is_closed_by_broker()


class TestRetention:
    def test_old_segments_go_and_a_setting_counts_at_once(self) -> None:
        settings = {**AT_ONCE, "log.retention.check.interval.ms": "5"}
        with Broker(settings) as broker, WireClient(broker.port) as client:
            client.create_topic("t", retention_ms="-1", file_delete_delay_ms="0")
            client.produce("t", batch(b"a", timestamps=[now_ms() - DAY_MS]))
            log = partition(broker, "t").log
            client.alter_topic("t", "retention.ms", str(2 * DAY_MS))
            assert log.log_start_offset == 0
            client.alter_topic("t", "retention.ms", str(DAY_MS // 2))
            wait_until(lambda: log.log_start_offset == 1)
            assert client.fetch("t", 0).error_code == Error.OFFSET_OUT_OF_RANGE
            assert client.produce("t", batch(b"b")).base_offset == 1

    def test_it_begins_with_the_broker_and_not_a_period_later(self, tmp_path: Path) -> None:
        with Broker(folder=tmp_path) as broker, WireClient(broker.port) as client:
            client.create_topic("t", segment_bytes=str(1 << 20), file_delete_delay_ms="0")
            for _ in range(3):
                client.produce("t", batch(bytes(600_000)))
            wanted = [DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])]
            assert client.call(DeleteRecordsRequest(topics=wanted, timeout_ms=1000), 2).topics[0].name == "t"
            assert len(list(tmp_path.glob("t-0/*.log"))) == 3
        never = {"log.retention.check.interval.ms": str(DAY_MS)}
        with Broker({**AT_ONCE, **never}, folder=tmp_path):
            wait_until(lambda: len(list(tmp_path.glob("t-0/*.log"))) == 1)


def test_t34_idle_producers_are_forgotten_and_go_on() -> None:
    settings = {**AT_ONCE, "producer.id.expiration.ms": "1", "producer.id.expiration.check.interval.ms": "5"}
    with Broker(settings) as broker, WireClient(broker.port) as client:
        client.create_topic("t")
        assert client.produce("t", batch(b"a", producer=(7, 0, 0))).error_code == 0
        wait_until(lambda: len(partition(broker, "t").log.producers) == 0)
        assert client.produce("t", batch(b"b", producer=(7, 0, 1))).base_offset == 1


def test_checkpoints_tell_where_logs_start_and_what_is_on_the_disk(tmp_path: Path) -> None:
    settings = {**AT_ONCE, "log.flush.offset.checkpoint.interval.ms": "5"}
    with Broker(settings, folder=tmp_path) as broker, WireClient(broker.port) as client:
        client.create_topic("t", flush_messages="1")
        client.produce("t", batch(b"a", b"b", b"c"))
        wanted = [DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])]
        client.call(DeleteRecordsRequest(topics=wanted, timeout_ms=1000), 2)
        for name, line in ((RECOVERY_POINTS, "t 0 3"), (LOG_START_OFFSETS, "t 0 2")):
            file = tmp_path / name
            wait_until(lambda file=file, line=line: file.exists() and line in file.read_text().splitlines())  # type: ignore[misc]


def test_checkpoints_begin_with_the_broker_and_not_a_period_later(tmp_path: Path) -> None:
    periods = ("log.flush.offset.checkpoint.interval.ms", "log.flush.start.offset.checkpoint.interval.ms")
    with Broker({**AT_ONCE, **dict.fromkeys(periods, str(DAY_MS))}, folder=tmp_path):
        wait_until((tmp_path / RECOVERY_POINTS).exists)


def test_the_folders_of_deleted_topics_go_when_their_delay_is_over(tmp_path: Path) -> None:
    settings = {**AT_ONCE, "log.segment.delete.delay.ms": "500"}
    with Broker(settings, folder=tmp_path) as broker, WireClient(broker.port) as client:
        client.create_topic("t")
        client.produce("t", batch(b"a"))
        assert (tmp_path / "t-0").exists()
        client.delete_topic("t")
        wait_until(lambda: not list(tmp_path.glob("t-0*")))
