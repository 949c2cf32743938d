"""PySpark with its Kafka connector."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from serving import operation, serve, to_bytes, to_text
from session import spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_BOOTSTRAP = sys.argv[1]
_STREAM_TIMEOUT_S = 90
_SCHEMA = "topic string, partition int, key binary, value binary, headers array<struct<key: string, value: binary>>"


def _options(topic: str, options: dict[str, str] | None) -> dict[str, str]:
    return {"kafka.bootstrap.servers": _BOOTSTRAP, "subscribe": topic, **(options or {})}


def _batch(topic: str, options: dict[str, str] | None) -> DataFrame:
    return spark.read.format("kafka").options(**_options(topic, options)).load()


def _record(row: Row) -> dict[str, Any]:
    return {
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp_ms,
        "key": to_text(row.key),
        "value": to_text(row.value),
        "headers": [[header.key, to_text(header.value)] for header in row.headers or []],
    }


def _collect(frame: DataFrame) -> list[dict[str, Any]]:
    rows = frame.selectExpr("*", "unix_millis(timestamp) as timestamp_ms").collect()
    return sorted(map(_record, rows), key=lambda record: (record["partition"], record["offset"]))


@operation
def read_batch(topic: str, options: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Return what a batch query reads, headers too."""
    return _collect(_batch(topic, {**(options or {}), "includeHeaders": "true"}))


@operation
def count_tasks(topic: str, options: dict[str, str]) -> int:
    """Return into how many tasks Spark splits a batch query."""
    return _batch(topic, options).rdd.getNumPartitions()


@operation
def write_batch(records: list[dict[str, Any]], options: dict[str, str] | None = None) -> None:
    """Write records with the batch sink."""
    rows = [
        (
            record["topic"],
            record.get("partition"),
            to_bytes(record.get("key")),
            to_bytes(record.get("value")),
            [(name, to_bytes(value)) for name, value in record.get("headers", [])],
        )
        for record in records
    ]
    frame = spark.createDataFrame(rows, _SCHEMA)
    frame.write.format("kafka").options(**{"kafka.bootstrap.servers": _BOOTSTRAP, **(options or {})}).save()


@operation
def stream_to_files(topic: str, files: str, checkpoint: str, options: dict[str, str] | None = None) -> list[int]:
    """Stream what is there from where the checkpoint ends into Parquet; return the rows of each micro-batch."""
    source = spark.readStream.format("kafka").options(**_options(topic, options)).option("includeHeaders", "true")
    query = (
        source.load()
        .writeStream.format("parquet")
        .option("path", files)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        if not query.awaitTermination(_STREAM_TIMEOUT_S):
            raise TimeoutError(query.lastProgress)
        return [progress.numInputRows for progress in query.recentProgress]
    finally:
        query.stop()


@operation
def read_files(files: str) -> list[dict[str, Any]]:
    """Return what streams have left in Parquet."""
    return _collect(spark.read.parquet(files))


@operation
def stream_to_topic(topic: str, to: str, checkpoint: str) -> None:
    """Stream what is there, from where the checkpoint ends, into another topic."""
    source = spark.readStream.format("kafka").options(**_options(topic, {"startingOffsets": "earliest"}))
    query = (
        source.option("includeHeaders", "true")
        .load()
        .selectExpr("key", "value", "headers", "partition")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", _BOOTSTRAP)
        .option("topic", to)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        if not query.awaitTermination(_STREAM_TIMEOUT_S):
            raise TimeoutError(query.lastProgress)
    finally:
        query.stop()


if __name__ == "__main__":
    serve()
