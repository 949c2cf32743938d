"""Conversions: a click joined with the view that caused it, when it came within `attribution_s` of it.

A join of two streams keeps both sides in state; the range of times lets Spark forget a view once no click can belong to
it. The streams have watermarks of their own, and the slower one counts.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.landing import deduplicate

__all__ = ["attribute"]


def attribute(clicks: DataFrame, views: DataFrame, watermark_s: int, attribution_s: int) -> DataFrame:
    """Records for the topic of conversions: the key is the click's event id, the value JSON."""
    caused = deduplicate(clicks, watermark_s).select(
        F.col("event_id").alias("click_id"),
        F.col("event_time").alias("clicked"),
        "user_id",
        "view_id",
        "cost_cents",
    )
    seen = deduplicate(views, watermark_s).select(
        F.col("event_id").alias("seen_id"), F.col("event_time").alias("viewed"), "page", "country"
    )
    in_time = F.col("clicked").between(F.col("viewed"), F.col("viewed") + F.expr(f"interval {attribution_s} seconds"))
    value = F.struct(
        "click_id",
        "view_id",
        "user_id",
        "page",
        "country",
        "cost_cents",
        (F.unix_millis("clicked") - F.unix_millis("viewed")).alias("after_ms"),
    )
    joined = caused.join(seen, (F.col("view_id") == F.col("seen_id")) & in_time)
    return joined.select(F.col("click_id").alias("key"), F.to_json(value).alias("value"))
