"""Compaction by a running broker: its process, its settings, and what it does when something goes wrong."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.batches import batch
from support.cleaning import held
from support.wire import WireClient

from odradek.log.log import Log
from odradek.testing import Broker

SETTINGS = {"log.cleaner.backoff.ms": "5", "log.initial.task.delay.ms": "0"}
SMALL = {"cleanup_policy": "compact", "segment_bytes": str(1 << 20), "min_cleanable_dirty_ratio": "0.01"}


def log_of(broker: Broker, topic: str) -> Log:
    assert broker.node is not None
    found = broker.node.partitions.get(topic, 0)
    assert found is not None
    return found.log


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again; the test's own time limit ends it."""
    while not condition():
        time.sleep(0.005)


def fill(client: WireClient, topic: str, rounds: int = 3) -> None:
    """Write the same three keys into `rounds` segments, and begin another one."""
    for number in range(rounds + 1):
        value = b"%d" % number + bytes(300_000)
        assert client.produce(topic, batch(value, value, value, keys=[b"a", b"b", b"c"])).error_code == 0


def processes() -> set[int]:
    """The processes that this one has started, ended ones that nobody waited for included, by /proc."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.update(int(number) for number in (task / "children").read_text().split())
    return found


@pytest.fixture
def children() -> Callable[[], set[int]]:
    """Tells the processes that were started during the test: other tests' fixtures may have left theirs running."""
    before = processes()
    return lambda: processes() - before


def test_a_topic_is_compacted_and_the_checkpoint_says_how_far(tmp_path: Path, children: Callable[[], set[int]]) -> None:
    with Broker(SETTINGS, folder=tmp_path) as broker, WireClient(broker.port) as client:
        client.create_topic("t", **SMALL)
        fill(client, "t")
        log = log_of(broker, "t")
        wait_until(lambda: log.cleaned_offset == 9)
        assert [record.offset for record in held(log)] == [6, 7, 8, 9, 10, 11]
        checkpoint = tmp_path / "cleaner-offset-checkpoint"
        wait_until(lambda: checkpoint.exists() and "t 0 9" in checkpoint.read_text().splitlines())
    assert not children()
    with Broker(SETTINGS, folder=tmp_path) as broker:
        assert log_of(broker, "t").cleaned_offset == 9


def test_a_process_that_dies_is_started_again(tmp_path: Path, children: Callable[[], set[int]]) -> None:
    with Broker(SETTINGS, folder=tmp_path) as broker, WireClient(broker.port) as client:
        client.create_topic("t", **SMALL)
        fill(client, "t")
        log = log_of(broker, "t")
        wait_until(lambda: log.cleaned_offset == 9)
        (process,) = children()
        os.kill(process, signal.SIGKILL)
        fill(client, "t")
        wait_until(lambda: log.cleaned_offset == 21)
        assert log.uncleanable is None


def test_a_damaged_log_is_left_alone_and_others_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(SETTINGS, folder=tmp_path) as broker, WireClient(broker.port) as client:
        client.create_topic("bad", **SMALL | {"min_compaction_lag_ms": "86400000"})
        fill(client, "bad")
        bad = log_of(broker, "bad")
        with open(bad.segments[0].path, "r+b") as file:
            file.seek(1000)
            file.write(b"damage")
        client.create_topic("good", **SMALL)
        client.alter_topic("bad", "min.compaction.lag.ms", "0")
        wait_until(lambda: bad.uncleanable is not None)
        assert "the CRC of the batch at 0" in str(bad.uncleanable)
        wait_until(lambda: any("is not compacted any more" in record.message for record in caplog.records))
        fill(client, "good")
        wait_until(lambda: log_of(broker, "good").cleaned_offset == 9)
        assert not list((tmp_path / "bad-0").glob("*.cleaned"))


def test_a_topic_that_is_deleted_while_it_is_cleaned(tmp_path: Path, children: Callable[[], set[int]]) -> None:
    settings = SETTINGS | {"log.cleaner.io.max.bytes.per.second": "3000000", "log.cleaner.io.buffer.size": "131072"}
    with Broker(settings, folder=tmp_path) as broker, WireClient(broker.port) as client:
        client.create_topic("t", **SMALL)
        fill(client, "t")
        wait_until(lambda: bool(children()))
        client.delete_topic("t")
        client.create_topic("t", **SMALL)
        fill(client, "t")
        wait_until(lambda: log_of(broker, "t").cleaned_offset == 9)


def test_it_can_be_switched_off(tmp_path: Path, children: Callable[[], set[int]]) -> None:
    with (
        Broker(SETTINGS | {"log.cleaner.enable": "false"}, folder=tmp_path) as broker,
        WireClient(broker.port) as client,
    ):
        client.create_topic("t", **SMALL)
        fill(client, "t")
        client.create_topic("u", **SMALL)
        assert not children()
        assert log_of(broker, "t").cleaned_offset is None
