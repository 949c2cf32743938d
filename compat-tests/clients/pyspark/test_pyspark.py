"""PySpark: batch and streaming reads, both sinks, and what happens when records are gone. One session for all."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from harness.agent import ClientError
from harness.clients import client_of, python_driver
from harness.records import same_in_order
from harness.spark import spark_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.agent import Agent
    from harness.target import Target

QUERY_TIMEOUT_S = 300  # the first one starts Spark


@pytest.fixture(scope="module")
def spark(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("spark")
    env = spark_environment(folder)
    with client_of(python_driver("pyspark", "pyspark"), target, folder, env) as agent:
        yield agent


@pytest.fixture(scope="module")
def kafka(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """A plain client that makes topics and fills them."""
    folder = tmp_path_factory.mktemp("confluent-kafka")
    with client_of(python_driver("confluent-kafka", "confluent-kafka"), target, folder) as agent:
        yield agent


def query(spark: Agent, operation: str, **arguments: Any) -> Any:
    return spark.call(operation, timeout_s=QUERY_TIMEOUT_S, **arguments)


def fill(kafka: Agent, topic: str, first: int, last: int, partitions: int) -> None:
    """Produce the numbered values [first, last), dealt to the partitions in turn."""
    records = [{"partition": number % partitions, "value": f"{number}"} for number in range(first, last)]
    kafka.call("produce", topic=topic, records=records)


def numbers(records: list[dict[str, Any]]) -> list[int]:
    return sorted(int(record["value"]) for record in records)


@pytest.mark.feature("Spark: batch")
def test_batch_reads_everything(spark: Agent, kafka: Agent, name: str) -> None:
    kafka.call("create_topic", topic=name, partitions=4)
    now_ms = int(time.time() * 1000)
    sent = [
        {
            "topic": name,
            "partition": number % 4,
            "offset": number // 4,
            "timestamp": now_ms + number,
            "key": f"key {number}",
            "value": f"value {number} \x00\xff",
            "headers": [["a", f"{number}"], ["a", None], ["b", ""]],
        }
        for number in range(4000)
    ]
    kafka.call("produce", topic=name, records=sent, compression="zstd")
    assert query(spark, "read_batch", topic=name) == [record for first in range(4) for record in sent[first::4]]


@pytest.mark.feature("Spark: batch")
def test_batch_between_offsets(spark: Agent, kafka: Agent, name: str) -> None:
    kafka.call("create_topic", topic=name, partitions=3)
    fill(kafka, name, 0, 300, partitions=3)
    options = {
        "startingOffsets": json.dumps({name: {"0": 10, "1": -2, "2": 90}}),
        "endingOffsets": json.dumps({name: {"0": 20, "1": 5, "2": -1}}),
    }
    read = query(spark, "read_batch", topic=name, options=options)
    wanted = [(0, offset) for offset in range(10, 20)] + [(1, offset) for offset in range(5)]
    wanted += [(2, offset) for offset in range(90, 100)]
    assert same_in_order(read, "partition", "offset", "value") == [
        (partition, offset, f"{3 * offset + partition}") for partition, offset in wanted
    ]


@pytest.mark.feature("Spark: batch")
def test_batch_from_timestamps(spark: Agent, kafka: Agent, name: str) -> None:
    kafka.call("create_topic", topic=name, partitions=2)
    start_ms = int(time.time() * 1000) - 600_000
    records = [
        {"partition": number % 2, "value": f"{number}", "timestamp": start_ms + 1000 * number} for number in range(200)
    ]
    kafka.call("produce", topic=name, records=records)
    options = {
        "startingOffsetsByTimestamp": json.dumps({name: {"0": start_ms + 100_000, "1": start_ms + 150_500}}),
        "endingOffsetsByTimestamp": json.dumps({name: {"0": start_ms + 110_000, "1": start_ms + 900_000}}),
    }
    read = query(spark, "read_batch", topic=name, options=options)
    assert numbers(read) == sorted([*range(100, 110, 2), *range(151, 200, 2)])

    past_the_end = {"startingTimestamp": str(start_ms + 900_000)}
    with pytest.raises(ClientError, match="No offset matched"):
        query(spark, "read_batch", topic=name, options=past_the_end)
    past_the_end["startingOffsetsByTimestampStrategy"] = "latest"
    assert query(spark, "read_batch", topic=name, options=past_the_end) == []


@pytest.mark.feature("Spark: batch")
def test_min_partitions_splits_a_partition(spark: Agent, kafka: Agent, name: str) -> None:
    kafka.call("create_topic", topic=name, partitions=2)
    fill(kafka, name, 0, 1000, partitions=2)
    options = {"minPartitions": "8"}
    assert query(spark, "count_tasks", topic=name, options=options) == 8
    assert numbers(query(spark, "read_batch", topic=name, options=options)) == list(range(1000))


@pytest.mark.feature("Spark: streaming")
def test_stream_goes_on_where_its_checkpoint_ends(spark: Agent, kafka: Agent, name: str, tmp_path: Path) -> None:
    kafka.call("create_topic", topic=name, partitions=2)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "400"}
    where = {"topic": name, "files": str(tmp_path / "files"), "checkpoint": str(tmp_path / "checkpoint")}

    fill(kafka, name, 0, 1000, partitions=2)
    assert query(spark, "stream_to_files", **where, options=options) == [400, 400, 200]
    fill(kafka, name, 1000, 1300, partitions=2)
    kafka.call("create_partitions", topic=name, total=3)
    fill(kafka, name, 1300, 1399, partitions=3)
    assert sum(query(spark, "stream_to_files", **where, options=options)) == 399
    assert sum(query(spark, "stream_to_files", **where, options=options)) == 0

    read = query(spark, "read_files", files=where["files"])
    assert numbers(read) == list(range(1399))
    assert same_in_order(read, "partition", "offset") == [
        (partition, offset) for partition, end in enumerate((683, 683, 33)) for offset in range(end)
    ]


@pytest.mark.feature("Spark: batch")
def test_batch_sink(spark: Agent, kafka: Agent, name: str) -> None:
    kafka.call("create_topic", topic=name, partitions=2)
    sent = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        records = [
            {
                "topic": name,
                "partition": number % 2,
                "key": codec if number else None,
                "value": f"{codec} {number} \x00\xff",
                "headers": [["codec", codec], ["number", f"{number}"]],
            }
            for number in range(100)
        ]
        query(spark, "write_batch", records=records, options={"kafka.compression.type": codec})
        sent += records
    read = kafka.call("read_all", topic=name)
    assert [record["offset"] for record in read] == [*range(250), *range(250)]
    fields = ("partition", "key", "value")
    assert sorted(same_in_order(read, *fields), key=str) == sorted(same_in_order(sent, *fields), key=str)
    assert {record["value"]: record["headers"] for record in read} == {
        record["value"]: record["headers"] for record in sent
    }


@pytest.mark.feature("Spark: streaming")
def test_stream_sink(spark: Agent, kafka: Agent, name: str, tmp_path: Path) -> None:
    copy = f"{name}-copy"
    kafka.call("create_topic", topic=name, partitions=2)
    kafka.call("create_topic", topic=copy, partitions=2)
    arguments = {"topic": name, "to": copy, "checkpoint": str(tmp_path / "checkpoint")}
    for first in (0, 300):
        records = [
            {"partition": number % 2, "key": f"{number}", "value": f"value {number}", "headers": [["n", f"{number}"]]}
            for number in range(first, first + 300)
        ]
        kafka.call("produce", topic=name, records=records)
        query(spark, "stream_to_topic", **arguments)
    fields = ("partition", "key", "value", "headers")
    original, copied = (kafka.call("read_all", topic=topic) for topic in (name, copy))
    assert len(copied) == 600
    assert sorted(map(str, same_in_order(copied, *fields))) == sorted(map(str, same_in_order(original, *fields)))


@pytest.mark.feature("Spark: streaming")
def test_deleted_records_end_the_stream_unless_it_may_lose_data(
    spark: Agent, kafka: Agent, name: str, tmp_path: Path
) -> None:
    kafka.call("create_topic", topic=name)
    options = {"startingOffsets": "earliest"}
    where = {"topic": name, "files": str(tmp_path / "files"), "checkpoint": str(tmp_path / "checkpoint")}
    fill(kafka, name, 0, 100, partitions=1)
    assert query(spark, "stream_to_files", **where, options=options) == [100]
    fill(kafka, name, 100, 200, partitions=1)
    kafka.call("delete_records", topic=name, partition=0, before=150)

    with pytest.raises(ClientError, match=r"(?i)data may have been lost"):
        query(spark, "stream_to_files", **where, options=options)
    query(spark, "stream_to_files", **where, options={**options, "failOnDataLoss": "false"})
    assert numbers(query(spark, "read_files", files=where["files"])) == [*range(100), *range(150, 200)]
