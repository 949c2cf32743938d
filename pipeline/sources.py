"""Reading topics: as streams, and as batches between offsets.

Always read committed, so that what a producer aborted, or has not committed yet, is never seen. `max.poll.records` is
ten times the default: a task asks for the ends of its partition with each poll. `fetch.max.wait.ms` is a small part of
the default, 500: at the end of a partition the client has asked for more already, and what a task asks then is answered
after that, on the same connection. Nobody waits for new records here, so nothing is asked more often.
"""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from pipeline.settings import Settings
from pipeline.topics import family

__all__ = ["Offsets", "read_between", "read_topic", "stream_topics"]

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset."""


def stream_topics(spark: SparkSession, settings: Settings, *topics: str) -> DataFrame:
    """The records of `topics` and of their families (`topics.family`), from the first one on."""
    options = _options(settings) | {
        "subscribePattern": family(*topics),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger),
    }
    return spark.readStream.format("kafka").options(**options).load()


def read_topic(spark: SparkSession, settings: Settings, topic: str) -> DataFrame:
    """All records that a topic has now."""
    return spark.read.format("kafka").options(**_options(settings), subscribe=topic).load()


def read_between(spark: SparkSession, settings: Settings, starts: Offsets, ends: Offsets) -> DataFrame:
    """The records from `starts` to before `ends`, which name the same partitions."""
    options = _options(settings) | {
        "assign": json.dumps({topic: sorted(partitions) for topic, partitions in starts.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }
    return spark.read.format("kafka").options(**options).load()


def _options(settings: Settings) -> dict[str, str]:
    options = {
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "5000",
        "kafka.fetch.max.wait.ms": "20",
        "includeHeaders": "true",
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
    }
    if settings.min_partitions is not None:
        options["minPartitions"] = str(settings.min_partitions)
    return options
