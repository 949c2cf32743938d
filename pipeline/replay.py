"""Replay: records again into a topic, from Parquet that was loaded offline or from another topic.

They keep key, value and headers, and get two headers: `arrived-ms`, when the original arrived, so that jobs decide
about it as they did then, while the sink gives the record a timestamp of its own; and `replayed-from`, which is
`TOPIC/PARTITION/OFFSET`. The sink writes at least once, and that header, or the event id, tells repeats. Records of one
key keep their order.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.events import ARRIVED_HEADER
from pipeline.settings import Settings

__all__ = ["REPLAYED_HEADER", "again", "arrived_between", "replay"]

REPLAYED_HEADER = "replayed-from"


def arrived_between(records: DataFrame, since_ms: int | None, until_ms: int | None) -> DataFrame:
    """Those of `records` that arrived at `since_ms` or later and before `until_ms`."""
    if since_ms is not None:
        records = records.where(F.col("timestamp") >= F.timestamp_millis(F.lit(since_ms)))
    if until_ms is not None:
        records = records.where(F.col("timestamp") < F.timestamp_millis(F.lit(until_ms)))
    return records


def again(records: DataFrame) -> DataFrame:
    """`records` as they are sent again. One that is a replay already keeps the arrival of its original."""
    source = F.concat_ws("/", "topic", "partition", "offset")
    headers = F.coalesce("headers", F.array().cast("array<struct<key: string, value: binary>>"))
    was_replayed = F.exists(headers, lambda header: header["key"] == ARRIVED_HEADER)
    arrived = F.array(_header(ARRIVED_HEADER, F.unix_millis("timestamp").cast("string")))
    added = F.concat(
        headers, F.when(was_replayed, F.array()).otherwise(arrived), F.array(_header(REPLAYED_HEADER, source))
    )
    return (
        records.repartition("topic", "partition")
        .sortWithinPartitions("topic", "partition", "offset")
        .select("key", "value", added.alias("headers"))
    )


def replay(records: DataFrame, settings: Settings, topic: str) -> None:
    """Send `records` again, to `topic`."""
    options = {"kafka.bootstrap.servers": settings.bootstrap_servers, "topic": topic}
    again(records).write.format("kafka").options(**options).save()


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))
