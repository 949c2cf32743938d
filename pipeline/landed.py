"""What a run has landed, read from the outputs, and how it compares with the truth: the reconciliation.

with broker, Spark and database as they are      collect  -> Landed
from the records that were produced              truth.derive -> Truth
both                                             reconcile -> one Check per promise
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.database import COUNTS, SESSIONS, SPEND, read_table
from pipeline.settings import Settings
from pipeline.sources import read_topic
from pipeline.topics import CONVERSIONS, DEAD_LETTERS
from pipeline.truth import Session, Truth

Thing = TypeVar("Thing")

__all__ = ["Check", "Landed", "collect", "read_lake", "reconcile"]


@dataclass(frozen=True)
class Landed:
    """The outputs of a run."""

    ids: Counter[str]
    """How often the lake holds each event."""

    dead: Counter[str]
    """Dead letters by fault, each source record once."""

    views: Counter[tuple[int, str, str]]
    sessions: list[Session]
    conversions: dict[str, str]
    """The view that caused a click, by the click's id."""

    cost_cents: int


@dataclass(frozen=True)
class Check:
    """One promise: what was expected, what was found, and how many single things differ."""

    name: str
    expected: int
    found: int
    differences: int

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def read_lake(spark: SparkSession, settings: Settings) -> DataFrame:
    """The lake, by the log that knows which files count."""
    return spark.read.format(settings.lake_format.value).load(settings.lake)


def collect(spark: SparkSession, settings: Settings) -> Landed:
    """Read all outputs."""
    lake = read_lake(spark, settings).groupBy("event_id").count().collect()
    fault = F.expr("get(filter(headers, header -> header.key = 'fault'), 0).value").cast("string")
    letters = read_topic(spark, settings, DEAD_LETTERS).select("key", fault.alias("fault")).distinct()
    counts = read_table(spark, settings.database_url, COUNTS.name).collect()
    sessions = read_table(spark, settings.database_url, SESSIONS.name).collect()
    spent = read_table(spark, settings.database_url, SPEND.name).agg(F.sum("cost_cents")).collect()[0]
    conversions = read_topic(spark, settings, CONVERSIONS).select(F.col("value").cast("string")).collect()
    pairs = (json.loads(row.value) for row in conversions)
    return Landed(
        ids=Counter({row.event_id: row["count"] for row in lake}),
        dead=Counter(row.fault for row in letters.collect()),
        views=Counter({(row.window_start_ms, row.dimension, row.value): row.views for row in counts}),
        sessions=sorted(Session(row.user_id, row.start_ms, row.end_ms) for row in sessions),
        conversions={pair["click_id"]: pair["view_id"] for pair in pairs},
        cost_cents=spent[0] or 0,
    )


def reconcile(truth: Truth, landed: Landed, settings: Settings) -> list[Check]:
    """Compare the outputs with what was produced, when all of it was read."""
    expected_ids = Counter(dict.fromkeys(truth.landed, 1))
    dead = Counter(truth.dead)
    closed = Counter(truth.closed_sessions(settings))
    sessions = Counter(landed.sessions)
    aborted = truth.aborted & (landed.ids.keys() | landed.conversions.keys())
    return [
        Check(
            "valid events in the lake, each once",
            len(truth.landed),
            landed.ids.total(),
            _apart(expected_ids, landed.ids),
        ),
        Check("aborted events seen anywhere", 0, len(aborted), len(aborted)),
        Check("dead letters, by fault", dead.total(), landed.dead.total(), _apart(dead, landed.dead)),
        Check(
            "views counted, by window, page and country",
            truth.views.total(),
            landed.views.total(),
            _apart(truth.views, landed.views),
        ),
        Check("sessions that the watermark closed", closed.total(), sessions.total(), _apart(closed, sessions)),
        Check(
            "clicks with their view",
            len(truth.conversions),
            len(landed.conversions),
            len(truth.conversions.items() ^ landed.conversions.items()),
        ),
        Check("cents spent on clicks", truth.cost_cents, landed.cost_cents, abs(truth.cost_cents - landed.cost_cents)),
    ]


def _apart(one: Counter[Thing], other: Counter[Thing]) -> int:
    """In how many things two counts differ."""
    return sum((one - other).values()) + sum((other - one).values())
