"""Records the request frames that real clients send, as the corpus of `protocol/tests/corpus`.

    python compat-tests/record_frames.py

Each client runs a session of producing, consuming in a group and administration against Odradek, through a tap. A
corpus file is named for its client; a line is an API key, a version and the frame in hex, the longest one up to
`MAX_FRAME_BYTES` of those with that key and version.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from harness.clients import client_of, python_driver
from harness.java import Tools
from harness.odradek import Odradek
from harness.tap import Tap
from harness.target import External
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.agent import Agent

CORPUS = Path(__file__).parents[1] / "protocol" / "tests" / "corpus"

MAX_FRAME_BYTES = 600
"""Longer frames say nothing that these do not."""

HEARTBEAT_POLLS = 10
"""Polls of a tenth of a second, in which a member sends a heartbeat."""

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
RECORDS = [
    {"key": "key", "value": "value", "partition": 0, "headers": [["trace", "1"]]},
    {"key": "key", "value": None, "partition": 1},
]


def core_session(client: Agent) -> None:
    """What the drivers of all libraries have."""
    client.call("create_topic", topic="t", partitions=2, configs={"retention.ms": "7200000"})
    for codec in CODECS:
        client.call("produce", topic="t", records=RECORDS, compression=codec, idempotent=codec is None)
    for name, instance in (("member", None), ("static", "instance")):
        client.call("open_consumer", name=name, topics=["t"], group=name, instance=instance)
        for _ in range(HEARTBEAT_POLLS):
            client.call("settle", names=[name], partitions=2)
        client.call("seek", name=name, topic="t", partition=0, offset=0)
        client.call("poll", names=[name], count=1)
        client.call("commit", name=name)
        client.call("describe_group", group=name)
        client.call("close_consumer", name=name)
    client.call("committed", group="member", topic="t", partition=0)
    client.call("find_offsets", topic="t", partition=0, timestamps=[0])
    client.call("offset_range", topic="t")
    client.call("create_partitions", topic="t", total=3)
    client.call("count_partitions", topic="t")
    client.call("alter_topic_config", topic="t", configs={"retention.ms": "3600000"})
    client.call("topic_config", topic="t", key="retention.ms")
    client.call("delete_records", topic="t", partition=0, before=1)
    client.call("list_topics")
    client.call("list_groups")
    client.call("delete_group", group="member")
    client.call("delete_topic", topic="t")


def librdkafka_session(client: Agent) -> None:
    """The same, and what only librdkafka's driver has."""
    core_session(client)
    client.call("create_topic", topic="u")
    client.call("produce", topic="u", records=RECORDS[:1])
    client.call("list_offset", topic="u", partition=0, spec="max_timestamp")
    client.call("alter_offset", group="altered", topic="u", partition=0, offset=1)
    client.call("describe_cluster")


def java_session(tools: Tools) -> None:
    """Kafka's console clients and tools."""
    run, topic = tools.run_on_broker, ("--topic", "t")
    run("topics", "--create", *topic, "--partitions", "2", "--config", "retention.ms=7200000")
    for codec in CODECS:
        options = ("--property", "parse.key=true", "--compression-codec", codec or "none")
        run("console-producer", *topic, *options, stdin="key\tvalue\nother\tone\n")
    run("console-consumer", *topic, "--group", "member", "--from-beginning", "--max-messages", "10")
    heartbeats = ("--consumer-property", "heartbeat.interval.ms=100", "--timeout-ms", "1500")
    tools.run("console-consumer", "--bootstrap-server", tools.bootstrap, *topic, "--group", "waiting", *heartbeats)
    run("console-consumer", *topic, "--partition", "0", "--offset", "0", "--max-messages", "1")
    run("consumer-groups", "--list")
    run("consumer-groups", "--describe", "--group", "member")
    run("consumer-groups", "--reset-offsets", "--group", "member", *topic, "--to-earliest", "--execute")
    run("consumer-groups", "--delete-offsets", "--group", "member", *topic)
    run("consumer-groups", "--delete", "--group", "member")
    for time in ("latest", "earliest", "max-timestamp"):
        run("get-offsets", *topic, "--time", time)
    run("topics", "--alter", *topic, "--partitions", "3")
    run("topics", "--describe", *topic)
    entity = ("--entity-type", "topics", "--entity-name", "t")
    run("configs", *entity, "--alter", "--add-config", "retention.ms=3600000")
    run("configs", *entity, "--describe", "--all")
    run("log-dirs", "--describe", "--topic-list", "t")
    run("broker-api-versions")
    run("topics", "--delete", *topic)


def record(name: str, session: Callable[[str, Path], None]) -> None:
    """Run a session against a broker behind a tap, and write what it sent."""
    with tempfile.TemporaryDirectory() as directory, Tap() as tap:
        folder = Path(directory)
        advertised = {
            "advertised.listeners": f"PLAINTEXT://{tap.address}",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
        broker = Odradek(folder, advertised)
        tap.upstream = broker.bootstrap
        try:
            session(tap.address, folder)
        finally:
            broker.stop()
        write_corpus(CORPUS / f"{name}.txt", tap.frames)


def write_corpus(file: Path, frames: Iterable[bytes]) -> None:
    """Write one frame of each API and version."""
    kept: dict[tuple[int, int], bytes] = {}
    for frame in frames:
        key, version = struct.unpack_from(">hh", frame)
        if len(kept.get((key, version), b"")) < len(frame) <= MAX_FRAME_BYTES:
            kept[key, version] = frame
    lines = [f"{key} {version} {frame.hex()}\n" for (key, version), frame in sorted(kept.items())]
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(lines))


def record_library(name: str, environment: str, driver: str, session: Callable[[Agent], None]) -> None:
    """Record a client library by its driver."""

    def run(bootstrap: str, folder: Path) -> None:
        with client_of(python_driver(environment, driver), External(bootstrap), folder) as client:
            session(client)

    record(name, run)


def record_tools(version: str) -> None:
    """Record Kafka's own clients of one release."""

    def run(bootstrap: str, folder: Path) -> None:
        tools = Tools(version, bootstrap, folder)
        try:
            java_session(tools)
        finally:
            tools.close()

    record(f"kafka-{version}", run)


if __name__ == "__main__":
    record_library("kafka-python-3", "kafka-python-3", "kafka-python", core_session)
    record_library("librdkafka", "confluent-kafka", "confluent-kafka", librdkafka_session)
    for release in (KAFKA_4, KAFKA_3):
        record_tools(release)
