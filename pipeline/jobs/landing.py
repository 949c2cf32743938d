"""Landing: each event once, with the date and the hour that the lake is partitioned by.

A producer that tries again without idempotence, or a user's device that sends again, makes duplicates with the same
event id. State keeps an id for `watermark_s` behind the newest event; later ones than that are dead letters before they
get here (`events.Fault.LATE`).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["deduplicate", "land"]


def deduplicate(events: DataFrame, watermark_s: int) -> DataFrame:
    """The first of all events with the same id."""
    return events.withWatermark("event_time", f"{watermark_s} seconds").dropDuplicatesWithinWatermark(["event_id"])


def land(events: DataFrame, watermark_s: int) -> DataFrame:
    """Events as they go to the lake: once, with `date` and `hour` (UTC) of when they happened."""
    return deduplicate(events, watermark_s).select(
        "*", F.to_date("event_time").alias("date"), F.hour("event_time").alias("hour")
    )
