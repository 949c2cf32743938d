"""Folders of logs that change hands: what Odradek wrote a real Kafka dumps and serves, and the reverse."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness.clients import client_of, python_driver
from harness.java import Tools
from harness.kafka import KraftKafka, ZooKeeperKafka
from harness.odradek import Odradek
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.agent import Agent
    from harness.target import Target

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
GROUP = "readers"
START_TIMEOUT_S = 60
README = Path(__file__).parents[1] / "README.md"
SETTINGS = {"retention.ms": "-1", "segment.bytes": "1048576"}

# What DumpLogSegments says of files that are not whole.
COMPLAINTS = ("Mismatches in", "Non-consecutive offsets", "isvalid: false", "Exception", "ERROR", "not found in")


def fill(client: Agent) -> dict[str, Any]:
    """Make topics of several segments and all codecs, a compacted one, and a group's commits; return `seen` of them."""
    for codec in CODECS:
        client.call("create_topic", topic=f"codec-{codec}", partitions=2, configs=SETTINGS)
        records = [
            {
                "partition": n % 2,
                "key": f"k{n}",
                "value": f"{n} " + f"{n * 7919 % 10007:05d}" * 400,
                "headers": [["n", f"{n}"]],
            }
            for n in range(1500)
        ]
        client.call(
            "produce", timeout_s=60, topic=f"codec-{codec}", records=records, compression=codec, idempotent=True
        )
    client.call("create_topic", topic="compacted", configs={"cleanup.policy": "compact"})
    updates = [{"key": f"k{n % 10}", "value": f"{n}"} for n in range(200)]
    client.call("produce", topic="compacted", records=updates, idempotent=True)
    client.call("delete_records", topic="codec-None", partition=0, before=100)
    client.call("open_consumer", name="reader", topics=["compacted"], group=GROUP)
    client.call("poll", names=["reader"], count=120)
    client.call("commit", name="reader")
    client.call("close_consumer", name="reader")
    return seen(client)


def seen(client: Agent) -> dict[str, Any]:
    """Return all that a client sees: records, offsets, settings, commits."""
    topics = ["compacted", *(f"codec-{codec}" for codec in CODECS)]
    return {
        "topics": sorted(client.call("list_topics")),
        "records": {topic: client.call("read_all", timeout_s=60, topic=topic) for topic in topics},
        "offsets": {topic: client.call("offset_range", topic=topic) for topic in topics},
        "settings": [client.call("topic_config", topic="codec-zstd", key=key) for key in SETTINGS]
        + [client.call("topic_config", topic="compacted", key="cleanup.policy")],
        "committed": client.call("committed", group=GROUP, topic="compacted", partition=0),
    }


def wait_for(client: Agent, topics: list[str]) -> None:
    """Wait until the broker, which answers before its controller has told it of its topics, knows them."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while sorted(client.call("list_topics")) != topics:
        assert time.monotonic() < deadline, "the broker does not know the topics"


def check_use(client: Agent) -> None:
    """The folder's new broker goes on where the old one ended: producers, groups, logs."""
    for codec in CODECS:
        end = client.call("offset_range", topic=f"codec-{codec}")[0][1]
        more = [{"partition": 0, "value": f"more {n}"} for n in range(10)]
        sent = client.call("produce", topic=f"codec-{codec}", records=more, compression=codec, idempotent=True)
        assert sent == [[0, end + n] for n in range(10)]
    client.call("open_consumer", name="again", topics=["compacted"], group=GROUP)
    rest = client.call("poll", names=["again"], count=80)["again"]
    assert [record["value"] for record in rest] == [f"{n}" for n in range(120, 200)]
    client.call("commit", name="again")
    client.call("close_consumer", name="again")


def ask(target: Target, folder: Path, what: Callable[[Agent], Any]) -> Any:
    with client_of(python_driver("confluent-kafka", "confluent-kafka"), target, folder) as client:
        return what(client)


def dump(release: str, data: Path, folder: Path) -> None:
    """Have `DumpLogSegments` read every segment and snapshot of a folder, records too."""
    tools = Tools(release, "127.0.0.1:1", folder)
    try:
        logs = [log for log in sorted(data.glob("*/*.log")) if log.stat().st_size]
        assert len(logs) > 2 * len(CODECS)
        for log in logs:
            decoder = ["--offsets-decoder"] if log.parent.name.startswith("__consumer_offsets") else []
            done = tools.run("dump-log", "--deep-iteration", "--print-data-log", *decoder, "--files", log)
            # The tool of Kafka 4 begins to count at -1, and says so of each segment that begins elsewhere.
            told = re.sub(rf"Non-consecutive offsets in {re.escape(str(log))}\n  -1 is followed by \d+\n", "", done.err)
            assert (done.status, complaints(done.out + told)) == (0, []), done
        for snapshot in sorted(data.glob("*/*.snapshot")):
            done = tools.run("dump-log", "--files", snapshot)
            assert (done.status, complaints(done.out + done.err)) == (0, []), done
    finally:
        tools.close()


def complaints(told: str) -> list[str]:
    return [line for line in told.splitlines() if any(complaint in line for complaint in COMPLAINTS)]


def znodes_of(data: Path) -> str:
    """Return the commands that the README's query makes of a metadata store, for ZooKeeper's shell."""
    [query] = re.findall(r'"(SELECT [^"]+ FROM znodes [^"]+)"', README.read_text())
    with sqlite3.connect(data / "metadata.db") as store:
        return "\n".join(text for (text,) in store.execute(query))


def test_kafka_takes_over_a_folder_of_odradek(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (tmp_path / "kafka").mkdir()
    odradek = Odradek(tmp_path, data)
    try:
        before = ask(odradek, tmp_path, fill)
    finally:
        odradek.stop()
    for release in (KAFKA_3, KAFKA_4):
        dump(release, data, tmp_path)

    kafka = ZooKeeperKafka(tmp_path / "kafka", data, znodes_of(data))
    try:
        ask(kafka, tmp_path, lambda client: wait_for(client, before["topics"]))
        assert ask(kafka, tmp_path, seen) == before
        ask(kafka, tmp_path, check_use)
    finally:
        kafka.stop()


@pytest.mark.parametrize("kafka_of", [ZooKeeperKafka, KraftKafka])
def test_odradek_takes_over_a_folder_of_kafka(kafka_of: Callable[[Path, Path], Target], tmp_path: Path) -> None:
    data, topics = tmp_path / "data", tmp_path / "topics.txt"
    (tmp_path / "kafka").mkdir()
    kafka = kafka_of(tmp_path / "kafka", data)
    try:
        before = ask(kafka, tmp_path, fill)
        tools = Tools(kafka.name.removeprefix("kafka-"), kafka.bootstrap, tmp_path)
        try:
            topics.write_text(tools.run_on_broker("topics", "--describe").out)
        finally:
            tools.close()
    finally:
        kafka.stop()

    command = [sys.executable, "-m", "odradek", "adopt", topics, "--override", f"log.dirs={data}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "odradek adopted 7 topics\n"), done
    odradek = Odradek(tmp_path, data)
    try:
        assert ask(odradek, tmp_path, seen) == before
        ask(odradek, tmp_path, check_use)
    finally:
        odradek.stop()
