"""Counts: page views by window, for each page and for each country, without bots.

Late data within the watermark changes a window that was told already: in update mode each micro-batch gives the windows
that it changed, with their whole new count, and the sink replaces the old one.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.events import people
from pipeline.jobs.landing import deduplicate

__all__ = ["count_views"]


def count_views(views: DataFrame, watermark_s: int, window_s: int) -> DataFrame:
    """`window_start_ms`, `dimension` ("page" or "country"), `value`, `views`."""
    dimensions = F.create_map(F.lit("page"), "page", F.lit("country"), "country")
    return (
        deduplicate(people(views), watermark_s)
        .select("event_time", F.explode(dimensions).alias("dimension", "value"))
        .where(F.col("value").isNotNull())
        .groupBy(F.window("event_time", f"{window_s} seconds"), "dimension", "value")
        .agg(F.count("*").alias("views"))
        .select(F.unix_millis("window.start").alias("window_start_ms"), "dimension", "value", "views")
    )
