"""Spend: what clicks cost, by country and segment of the user's profile.

Profiles are the latest value for each key of a compacted topic. Each micro-batch reads them again, as a batch: a table
of this size costs less to read than to keep in step. A user without a profile, or whose profile was deleted by a
tombstone, counts as "unknown".

The amounts are added to those that the database has, so a micro-batch must not count twice: the sink's work
(`database.upsert`).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["latest_profiles", "spend"]

_PROFILE = "country string, segment string"


def latest_profiles(records: DataFrame) -> DataFrame:
    """`user_id`, `country` and `segment`: the last record of each key, without tombstones. A key has one partition."""
    last = F.max_by(F.struct("value"), "offset").alias("last")
    latest = records.groupBy(F.col("key").cast("string").alias("user_id")).agg(last)
    profile = F.from_json(F.col("last.value").cast("string"), _PROFILE).alias("profile")
    return latest.where(F.col("last.value").isNotNull()).select("user_id", profile).select("user_id", "profile.*")


def spend(clicks: DataFrame, profiles: DataFrame) -> DataFrame:
    """`country`, `segment`, `clicks` and `cost_cents` of these clicks."""
    joined = clicks.select("user_id", "cost_cents").join(profiles, "user_id", "left")
    known = [F.coalesce(name, F.lit("unknown")).alias(name) for name in ("country", "segment")]
    return joined.groupBy(*known).agg(F.count("*").alias("clicks"), F.sum("cost_cents").alias("cost_cents"))
