"""Kafka's command line tools, of the releases in `versions.py`, as the Java client's users run them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from harness.java import Tools
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.target import Target

# What producers, consumers, groups and the tools below cannot do without.
NEEDED_APIS = {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 35, 37, 42, 44, 47, 60}

PRINT_EVERYTHING = [
    f"--property=print.{what}=true" for what in ("key", "value", "headers", "partition", "offset", "timestamp")
]


@pytest.fixture(scope="module", params=[f"java-tools-{release}" for release in (KAFKA_4, KAFKA_3)])
def tools(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    launched = Tools(request.param.removeprefix("java-tools-"), target.bootstrap, tmp_path_factory.mktemp("tools"))
    try:
        yield launched
    finally:
        launched.close()


def create_topic(tools: Tools, name: str, partitions: int = 1, *configs: str) -> None:
    options = [option for config in configs for option in ("--config", config)]
    tools.run_on_broker("topics", "--create", "--topic", name, "--partitions", str(partitions), *options)


def produce(tools: Tools, name: str, records: int, *options: str) -> None:
    """Produce `records` records "key N" -> "value N", each with one header."""
    lines = "".join(f"number:{number}\tkey {number}:value {number}\n" for number in range(records))
    reader = ("parse.key=true", "key.separator=:", "parse.headers=true")
    properties = [option for value in reader for option in ("--property", value)]
    tools.run_on_broker("console-producer", "--topic", name, *properties, *options, stdin=lines)


def rows(lines: list[str], first_column: str) -> list[list[str]]:
    """Return the columns of the table rows that begin with a name."""
    return [columns for line in lines if (columns := line.split()) and columns[0] == first_column]


@pytest.mark.feature("codec: {codec}")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer(tools: Tools, name: str, codec: str) -> None:
    create_topic(tools, name, 1)
    produce(tools, name, 50, "--compression-codec", codec)
    read = tools.run_on_broker(
        "console-consumer", "--topic", name, "--from-beginning", "--max-messages", "50", *PRINT_EVERYTHING
    )
    shown = [line.split("\t") for line in read.lines if line.startswith("CreateTime:")]
    assert [columns[1:] for columns in shown] == [
        ["Partition:0", f"Offset:{number}", f"number:{number}", f"key {number}", f"value {number}"]
        for number in range(50)
    ]
    assert all(int(columns[0].removeprefix("CreateTime:")) > 1_600_000_000_000 for columns in shown)


@pytest.mark.feature("offsets: seek, by time")
def test_console_consumer_from_an_offset(tools: Tools, name: str) -> None:
    create_topic(tools, name, 2)
    tools.run_on_broker("console-producer", "--topic", name, stdin="".join(f"{n}\n" for n in range(20)))
    ends = dict(line.rsplit(":", 1) for line in tools.run_on_broker("get-offsets", "--topic", name).lines)
    assert sum(map(int, ends.values())) == 20
    partition, end = next((key.rsplit(":", 1)[1], int(end)) for key, end in ends.items() if int(end) > 0)
    for isolation in ("read_uncommitted", "read_committed"):
        where = ["--topic", name, "--partition", partition, "--offset", str(end - 1), "--isolation-level", isolation]
        last = tools.run_on_broker("console-consumer", *where, "--max-messages", "1", "--property=print.offset=true")
        assert [line.split("\t")[0] for line in last.lines if "\t" in line] == [f"Offset:{end - 1}"]


@pytest.mark.feature("admin: topics and configs")
def test_topics(tools: Tools, name: str) -> None:
    created = tools.run_on_broker(
        "topics", "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=7200000"
    )
    assert f"Created topic {name}." in created.lines
    assert name in tools.run_on_broker("topics", "--list").lines

    again = tools.run("topics", "--bootstrap-server", tools.bootstrap, "--create", "--topic", name)
    assert again.status == 1
    assert f"Topic '{name}' already exists." in again.out

    tools.run_on_broker("topics", "--alter", "--topic", name, "--partitions", "3")
    head, *partitions = [
        dict(field.split(": ", 1) for field in line.strip("\t").split("\t"))
        for line in tools.run_on_broker("topics", "--describe", "--topic", name).lines
    ]
    assert (head["Topic"], head["PartitionCount"], head["ReplicationFactor"]) == (name, "3", "1")
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", head["TopicId"])
    assert "retention.ms=7200000" in head["Configs"].split(",")
    assert [partition["Partition"] for partition in partitions] == ["0", "1", "2"]
    for partition in partitions:
        assert partition["Leader"] == partition["Replicas"] == partition["Isr"]

    tools.run_on_broker("topics", "--delete", "--topic", name)
    assert name not in tools.run_on_broker("topics", "--list").lines
    gone = tools.run("topics", "--bootstrap-server", tools.bootstrap, "--describe", "--topic", name)
    assert gone.status == 1
    assert "does not exist" in gone.out


@pytest.mark.feature("admin: groups")
def test_consumer_groups(tools: Tools, name: str) -> None:
    create_topic(tools, name, 1)
    produce(tools, name, 30)
    consume = ["--topic", name, "--group", name, "--from-beginning"]
    tools.run_on_broker("console-consumer", *consume, "--max-messages", "12")
    assert name in tools.run_on_broker("consumer-groups", "--list").lines

    described = tools.run_on_broker("consumer-groups", "--describe", "--group", name)
    assert rows(described.lines, name) == [[name, name, "0", "12", "30", "18", "-", "-", "-"]]
    [state] = rows(tools.run_on_broker("consumer-groups", "--describe", "--group", name, "--state").lines, name)
    assert state[-2:] == ["Empty", "0"]

    reset = ["consumer-groups", "--reset-offsets", "--group", name, "--topic", name, "--execute"]
    assert tools.run_on_broker(*reset, "--shift-by", "-5").out.split()[4:] == [name, name, "0", "7"]
    [row] = rows(tools.run_on_broker("consumer-groups", "--describe", "--group", name).lines, name)
    assert row[3:6] == ["7", "30", "23"]
    rest = tools.run_on_broker("console-consumer", *consume, "--max-messages", "23")
    assert [line for line in rest.lines if line.startswith("value")] == [f"value {number}" for number in range(7, 30)]

    tools.run_on_broker("consumer-groups", "--delete-offsets", "--group", name, "--topic", name)
    assert rows(tools.run_on_broker("consumer-groups", "--describe", "--group", name).lines, name) == []
    tools.run_on_broker(*reset, "--to-latest")
    deleted = tools.run_on_broker("consumer-groups", "--delete", "--group", name)
    assert f"Deletion of requested consumer groups ('{name}') was successful." in deleted.lines
    assert name not in tools.run_on_broker("consumer-groups", "--list").lines


@pytest.mark.feature("admin: delete records")
def test_offsets_and_deleted_records(tools: Tools, name: str, tmp_path: Path) -> None:
    create_topic(tools, name, 1)
    produce(tools, name, 25)
    assert tools.run_on_broker("get-offsets", "--topic", name).lines == [f"{name}:0:25"]
    assert tools.run_on_broker("get-offsets", "--topic", name, "--time", "earliest").lines == [f"{name}:0:0"]

    request = tmp_path / "records.json"
    request.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "offset": 10}]}))
    deleted = tools.run_on_broker("delete-records", "--offset-json-file", request)
    assert f"partition: {name}-0\tlow_watermark: 10" in deleted.lines
    assert tools.run_on_broker("get-offsets", "--topic", name, "--time", "-2").lines == [f"{name}:0:10"]
    read = tools.run_on_broker("console-consumer", "--topic", name, "--from-beginning", "--max-messages", "15")
    assert [line for line in read.lines if line.startswith("value")] == [f"value {number}" for number in range(10, 25)]


@pytest.mark.feature("admin: incremental configs")
def test_configs(tools: Tools, name: str) -> None:
    create_topic(tools, name, 1, "retention.ms=7200000")
    topic = ["--entity-type", "topics", "--entity-name", name]
    alter = ["configs", *topic, "--alter"]
    tools.run_on_broker(*alter, "--add-config", "segment.bytes=2097152,cleanup.policy=[compact,delete]")
    described = tools.run_on_broker("configs", *topic, "--describe")
    overrides = dict(line.split()[0].split("=") for line in described.lines if "sensitive=" in line)
    overrides.pop("min.insync.replicas", None)  # Kafka 4 adds it to each topic
    assert overrides == {"retention.ms": "7200000", "segment.bytes": "2097152", "cleanup.policy": "compact,delete"}
    assert "synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7200000" in described.out

    tools.run_on_broker(*alter, "--delete-config", "segment.bytes,cleanup.policy")
    described = tools.run_on_broker("configs", *topic, "--describe", "--all")
    values = dict(line.split()[0].split("=", 1) for line in described.lines if "sensitive=" in line)
    assert values["retention.ms"] == "7200000"
    assert values["segment.bytes"] == "1073741824"
    assert values["cleanup.policy"] == "delete"

    refused = tools.run(
        "configs", "--bootstrap-server", tools.bootstrap, *topic, "--alter", "--add-config", "retention.ms=soon"
    )
    assert refused.status == 1
    assert "retention.ms" in refused.err + refused.out
    refused = tools.run(
        "configs", "--bootstrap-server", tools.bootstrap, *topic, "--alter", "--add-config", "no.such.key=1"
    )
    assert refused.status == 1
    assert "no.such.key" in refused.err + refused.out


@pytest.mark.feature("admin: cluster")
def test_broker_configs(tools: Tools) -> None:
    node = re.search(r"\(id: (\d+) ", tools.run_on_broker("broker-api-versions").out)
    assert node is not None
    described = tools.run_on_broker(
        "configs", "--entity-type", "brokers", "--entity-name", node[1], "--describe", "--all"
    )
    values = dict(line.split()[0].split("=", 1) for line in described.lines if "sensitive=" in line)
    assert values["num.partitions"] == "1"
    assert values["log.segment.bytes"] == "1073741824"
    assert values["offsets.topic.num.partitions"] == "50"
    assert values["group.initial.rebalance.delay.ms"] == "0"


@pytest.mark.feature("admin: cluster")
def test_api_versions(tools: Tools, target: Target) -> None:
    shown = tools.run_on_broker("broker-api-versions")
    assert shown.lines[0].startswith(f"{target.bootstrap} (id: ")
    usable = {int(key): int(version) for key, version in re.findall(r"\((\d+)\): [^\n]*\[usable: (\d+)\]", shown.out)}
    assert set(usable) >= NEEDED_APIS


@pytest.mark.feature("files: read by DumpLogSegments")
def test_performance_tools_and_what_they_leave_on_disk(tools: Tools, target: Target, name: str) -> None:
    """The producer's records come back in number, and `DumpLogSegments` reads the files without a complaint."""
    records = 30_000
    create_topic(tools, name, 1, "segment.bytes=1048576")
    producer = ["bootstrap.servers=" + tools.bootstrap, "compression.type=none", "batch.size=16384"]
    size = ["--num-records", str(records), "--record-size", "100", "--throughput", "-1"]
    produced = tools.run("producer-perf-test", "--topic", name, *size, "--producer-props", *producer)
    assert produced.status == 0, produced
    assert re.search(rf"^{records} records sent, ", produced.out, re.MULTILINE)

    consumed = tools.run_on_broker(
        "consumer-perf-test", "--topic", name, "--messages", str(records), "--timeout", "20000"
    )
    header = next(line for line in consumed.lines if line.startswith("start.time")).split(", ")
    measured = dict(zip(header, consumed.lines[-1].split(", "), strict=True))
    assert measured["data.consumed.in.nMsg"] == str(records)

    folder = target.log_folder() / f"{name}-0"
    logs = sorted(folder.glob("*.log"))
    assert len(logs) >= 3
    shown = tools.run_on_broker("log-dirs", "--describe", "--topic-list", name)
    [broker] = json.loads(next(line for line in shown.lines if line.startswith("{")))["brokers"]
    [partition] = [one for log_dir in broker["logDirs"] for one in log_dir["partitions"]]
    assert partition == {
        "partition": f"{name}-0",
        "size": sum(log.stat().st_size for log in logs),
        "offsetLag": 0,
        "isFuture": False,
    }

    offsets: list[int] = []
    for log in logs:
        dumped = tools.run("dump-log", "--deep-iteration", "--files", log)
        assert dumped.status == 0
        # The tool of Kafka 4 begins to count at -1, so it says this of each segment but the first.
        base_offset = int(log.stem)
        allowed = f"Non-consecutive offsets in {log}\n  -1 is followed by {base_offset}\n"
        assert dumped.err == "" or (dumped.err == allowed and base_offset > 0)
        shapes = (r"Dumping .*", r"Log starting offset: \d+", r"baseOffset: .* isvalid: true", r"\| offset: (\d+) .*")
        assert unexpected(dumped.lines, *shapes) == []
        assert dumped.lines[1] == f"Log starting offset: {base_offset}"
        offsets += map(int, re.findall(r"^\| offset: (\d+) ", dumped.out, re.MULTILINE))
    assert offsets == list(range(records))

    entry = {".index": r"offset: \d+ position: \d+", ".timeindex": r"timestamp: \d+ offset: \d+"}
    for log in logs:
        for suffix, shape in entry.items():
            index = log.with_suffix(suffix)
            dumped = tools.run("dump-log", "--files", index)
            assert (dumped.status, dumped.err) == (0, "")
            if log == logs[-1]:
                # A broker may hold the entries of the segment that it appends to in memory.
                assert unexpected(dumped.lines, r"Dumping .*", shape, re.escape(f"{index} is empty.")) == []
                continue
            assert unexpected(dumped.lines, r"Dumping .*", shape) == []
            # At most one entry for each 4 KiB; for each 16 KiB batch one offset, but a time only where it moved on.
            fewest = log.stat().st_size // (2 * 16_384) if suffix == ".index" else 1
            assert fewest <= len(dumped.lines) - 1 <= log.stat().st_size // 4096
            dumped = tools.run("dump-log", "--index-sanity-check", "--files", index)
            assert (dumped.status, dumped.err) == (0, "")
            assert f"{index} passed sanity check." in dumped.lines
    # Older ones go when the segments before them are on the disk, which may be in this moment.
    newest = max(folder.glob("*.snapshot"))
    assert newest.stem == logs[-1].stem
    dumped = tools.run("dump-log", "--files", newest)
    assert (dumped.status, dumped.err) == (0, "")
    [state] = re.findall(r"^producerId: (\d+) producerEpoch: 0 .* lastSequence: (\d+) ", dumped.out, re.MULTILINE)
    assert int(state[1]) == int(newest.stem) - 1


def unexpected(lines: list[str], *shapes: str) -> list[str]:
    """Return the lines that have none of the shapes."""
    return [line for line in lines if not any(re.fullmatch(shape, line) for shape in shapes)]


@pytest.mark.feature("files: read by DumpLogSegments")
def test_committed_offsets_on_disk(tools: Tools, target: Target, name: str) -> None:
    """`DumpLogSegments` decodes the group's commit in `__consumer_offsets`."""
    create_topic(tools, name, 1)
    produce(tools, name, 5)
    tools.run_on_broker("console-consumer", "--topic", name, "--group", name, "--from-beginning", "--max-messages", "5")
    folders = sorted(target.log_folder().glob("__consumer_offsets-*"))
    assert len(folders) == 50
    [log] = [log for folder in folders for log in folder.glob("*.log") if name.encode() in log.read_bytes()]
    assert log.parent.name == f"__consumer_offsets-{java_hash(name) % 50}"
    dumped = tools.run("dump-log", "--offsets-decoder", "--files", log)
    assert dumped.status == 0, dumped
    assert f'"group":"{name}","topic":"{name}","partition":0' in dumped.out
    assert re.search(r'"offset":5,"leaderEpoch":-?\d+,"metadata":"","commitTimestamp":\d+', dumped.out)
    assert "group_metadata" in dumped.out or '"protocolType":"consumer"' in dumped.out


def java_hash(text: str) -> int:
    """Return the absolute value of Java's String.hashCode, by which Kafka places groups."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return min(value, (1 << 32) - value) & 0x7FFFFFFF
