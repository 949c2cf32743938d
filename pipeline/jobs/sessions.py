"""Sessions: what a user did without a pause of `gap_s`, told once, when the watermark has passed its end.

Several topics take part, so they are read by one query. Events of a user are put in order by when they happened, not by
when they arrived.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.events import people
from pipeline.jobs.landing import deduplicate
from pipeline.topics import AD_CLICKS, PAGE_VIEWS, SEARCHES

__all__ = ["sessionise"]


def sessionise(events: DataFrame, watermark_s: int, gap_s: int) -> DataFrame:
    """`user_id`, `start_ms` and `end_ms` (first and last event), counts of each kind, the first and the last page."""
    return (
        deduplicate(people(events), watermark_s)
        .groupBy(F.session_window("event_time", f"{gap_s} seconds").alias("session"), "user_id")
        .agg(
            F.unix_millis(F.min("event_time")).alias("start_ms"),
            F.unix_millis(F.max("event_time")).alias("end_ms"),
            _count(PAGE_VIEWS).alias("views"),
            _count(SEARCHES).alias("searches"),
            _count(AD_CLICKS).alias("clicks"),
            F.min_by("page", _when_page()).alias("first_page"),
            F.max_by("page", _when_page()).alias("last_page"),
        )
        .drop("session")
    )


def _count(topic: str) -> Column:
    return F.count_if(F.col("topic").startswith(topic))


def _when_page() -> Column:
    return F.when(F.col("page").isNotNull(), F.col("event_time"))
