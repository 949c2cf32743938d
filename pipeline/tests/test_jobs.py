"""What each job computes, on a few rows: state and watermarks too, but no broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row

from pipeline.events import BOT
from pipeline.jobs.conversions import attribute
from pipeline.jobs.counts import count_views
from pipeline.jobs.landing import land
from pipeline.jobs.sessions import sessionise
from pipeline.jobs.spend import latest_profiles, spend
from pipeline.jobs.top_pages import count_pages, rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Through = Callable[..., list[Row]]

NOON_S = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp())
EVENTS = (
    "topic string, event_id string, event_time timestamp, user_id string, agent string, page string, country string, "
    "view_id string, cost_cents bigint"
)
WATERMARK_S = 20


def view(event_id: str, second: float, **fields: Any) -> dict[str, Any]:
    """A page view, so many seconds after noon."""
    usual = {"topic": "page-views", "user_id": "u", "agent": "phone", "page": "/a", "country": "DE"}
    return {**usual, "event_id": event_id, "event_time": datetime.fromtimestamp(NOON_S + second, UTC), **fields}


def frame(spark: SparkSession, *events: dict[str, Any]) -> DataFrame:
    return spark.createDataFrame(list(events), EVENTS)


def second_of(time_ms: int) -> float:
    return round(time_ms / 1000 - NOON_S, 3)


def test_landing_keeps_the_first_of_the_same_id(spark: SparkSession, through_stream: Through) -> None:
    rows = through_stream(
        [
            frame(spark, view("a", 1), view("b", 2), view("a", 1)),
            frame(spark, view("a", 1), view("c", 3600 + 30)),
            frame(spark, view("c", 3600 + 30)),  # what is late is told by the watermark of the micro-batch before
            frame(spark, view("a", 1), view("b", 2), view("late", 3600), view("in time", 3600 + 11)),
        ],
        land,
        WATERMARK_S,
    )
    assert sorted((row.event_id, str(row.date), row.hour) for row in rows) == [
        ("a", "2026-11-21", 12),
        ("b", "2026-11-21", 12),
        ("c", "2026-11-21", 13),
        ("in time", "2026-11-21", 13),  # 1 s before the watermark's end; "late" is 10 s behind it
    ]


def test_counts_change_with_late_data_within_the_watermark(spark: SparkSession, through_stream: Through) -> None:
    rows = through_stream(
        [
            frame(spark, view("a", 1), view("b", 9.999), view("c", 10), view("robot", 1, agent=BOT)),
            frame(spark, view("d", 25, page="/b"), view("a", 1)),
            frame(spark, view("e", 6, country=None), view("f", 25)),
            frame(spark, view("g", 60), view("too late", 4)),
            frame(spark, view("too late", 4)),
        ],
        count_views,
        WATERMARK_S,
        10,
        mode="update",
    )
    told = [(second_of(row.window_start_ms), row.dimension, row.value, row.views) for row in rows]
    pages = [(start, value, views) for start, dimension, value, views in told if dimension == "page"]
    assert sorted(pages[:2]) == [(0, "/a", 2), (10, "/a", 1)]
    assert pages[2] == (20, "/b", 1)
    assert sorted(pages[3:5]) == [(0, "/a", 3), (20, "/a", 1)]
    assert [page for page in pages[5:] if page[0] != 0] == [(60, "/a", 1)]
    countries = {(start, value): views for start, dimension, value, views in told if dimension == "country"}
    assert countries[20, "DE"] == 2
    assert countries[60, "DE"] == 1


def test_top_pages_are_ranked_when_their_window_is_closed(spark: SparkSession, through_stream: Through) -> None:
    pages = ["/c", "/b", "/b", "/a", "/d", "/d", "/d"]
    rows = through_stream(
        [
            frame(spark, *(view(f"{number}", 1, page=page) for number, page in enumerate(pages))),
            frame(spark, view("next", 60)),
        ],
        count_pages,
        WATERMARK_S,
        10,
    )
    assert {second_of(row.window_start_ms) for row in rows} == {0}
    closed = spark.createDataFrame(rows, "window_start_ms bigint, page string, views bigint")
    (record,) = rank(closed, 3).collect()
    assert record.key == f"{NOON_S * 1000}"
    assert [tuple(page.values()) for page in json.loads(record.value)] == [(1, "/d", 3), (2, "/b", 2), (3, "/a", 1)]


def test_sessions_end_with_a_pause(spark: SparkSession, through_stream: Through) -> None:
    rows = through_stream(
        [
            frame(
                spark,
                view("b", 5, page="/b"),
                view("a", 0),
                view("s", 6, topic="searches", page=None),
                view("k", 7, topic="ad-clicks", page="/b"),
                view("a", 0),
                view("other", 7, user_id="v"),
                view("robot", 8, agent=BOT),
            ),
            frame(spark, view("again", 22.001), view("end", 300, user_id="w")),
        ],
        sessionise,
        WATERMARK_S,
        15,
    )
    told = [(row.user_id, second_of(row.start_ms), second_of(row.end_ms)) for row in rows]
    assert sorted(told) == [("u", 0, 7), ("u", 22.001, 22.001), ("v", 7, 7)]
    (first,) = (row for row in rows if row.user_id == "u" and row.views == 2)
    assert (first.searches, first.clicks, first.first_page, first.last_page) == (1, 1, "/a", "/b")


def test_a_click_finds_its_view_within_the_time(spark: SparkSession, through_stream: Through) -> None:
    def click(event_id: str, second: float, view_id: str) -> dict[str, Any]:
        return view(event_id, second, topic="ad-clicks", view_id=view_id, cost_cents=7)

    def join(events: DataFrame) -> DataFrame:
        clicks, views = (events.where(f"topic = '{topic}'") for topic in ("ad-clicks", "page-views"))
        return attribute(clicks, views, WATERMARK_S, 60)

    rows = through_stream(
        [
            frame(
                spark, view("v1", 0, page="/x"), click("before", -1, "v1"), click("k1", 3, "v1"), click("k1", 3, "v1")
            ),
            frame(spark, click("in time", 60, "v1"), click("too late", 61, "v1"), click("lost", 20, "v9")),
            frame(spark, view("v2", 45), click("k2", 50, "v2")),
        ],
        join,
    )
    told = {row.key: json.loads(row.value) for row in rows}
    assert len(rows) == len(told)
    assert {key: value["view_id"] for key, value in told.items()} == {"k1": "v1", "in time": "v1", "k2": "v2"}
    assert (told["k1"]["page"], told["k1"]["after_ms"], told["k1"]["cost_cents"]) == ("/x", 3000, 7)


def test_spend_goes_by_the_latest_profile(spark: SparkSession) -> None:
    def profile(user: str, offset: int, value: object) -> Row:
        return Row(key=user.encode(), offset=offset, value=None if value is None else json.dumps(value).encode())

    profiles = spark.createDataFrame(
        [
            profile("u", 1, {"country": "DE", "segment": "free"}),
            profile("u", 9, {"country": "DE", "segment": "plus"}),
            profile("gone", 2, {"country": "FR", "segment": "free"}),
            profile("gone", 5, None),
            profile("odd", 3, {"country": "JP"}),
        ],
        "key binary, offset bigint, value binary",
    )
    users = ("u", "u", "gone", "never seen", "odd")
    clicks = frame(spark, *(view(f"{n}", n, user_id=user, cost_cents=10 + n) for n, user in enumerate(users)))
    rows = spend(clicks, latest_profiles(profiles)).collect()
    assert {(row.country, row.segment): (row.clicks, row.cost_cents) for row in rows} == {
        ("DE", "plus"): (2, 21),
        ("unknown", "unknown"): (2, 25),
        ("JP", "unknown"): (1, 14),
    }
