"""What is an event and what is not; whatever a record holds, parsing it raises nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.events import FUTURE_TOLERANCE_MS, LAST_MS, MOST_CENTS, Fault, parse, valid
from pipeline.jobs.dead_letters import dead_letters

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

LATE_AFTER_S = 10
NOW_MS = 1_790_000_000_000
GOOD = {"schema_version": 1, "event_id": "e", "event_time_ms": NOW_MS, "user_id": "u", "agent": "phone", "page": "/a"}

RECORDS = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


def record(value: bytes | None, headers: list[tuple[str, bytes | None]] | None = None) -> tuple[Any, ...]:
    return ("page-views", 1, 7, datetime.fromtimestamp(NOW_MS / 1000, UTC), b"u", value, headers)


def parsed(spark: SparkSession, *records: tuple[Any, ...]) -> list[Row]:
    return parse(spark.createDataFrame(records, RECORDS), LATE_AFTER_S).collect()


def event(**changes: Any) -> bytes:
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value is not None}).encode()


CASES = [
    (event(), None),
    (event(unknown_field=[1, {"x": 2}]), None),
    (None, Fault.MALFORMED),
    (b"", Fault.MALFORMED),
    (b"\xff\x00\xfe", Fault.MALFORMED),
    (b"null", Fault.MALFORMED),
    (b"[]", Fault.MALFORMED),
    (b'"text"', Fault.MALFORMED),
    (event()[:-1], Fault.MALFORMED),
    (event(event_time_ms="yesterday"), Fault.MALFORMED),
    (event(event_time_ms=2**63), Fault.MALFORMED),
    (event(event_time_ms=-(2**63)), Fault.MALFORMED),
    (event(event_time_ms=LAST_MS + 1), Fault.MALFORMED),
    (event(event_time_ms=-1), Fault.MALFORMED),
    (event(event_time_ms=LAST_MS), Fault.FUTURE),
    (event(event_time_ms=0), Fault.LATE),
    (event(cost_cents=MOST_CENTS), None),
    (event(cost_cents=MOST_CENTS + 1), Fault.MALFORMED),
    (event(cost_cents=-1), Fault.MALFORMED),
    (b"{}", Fault.INCOMPLETE),
    (event(event_id=None), Fault.INCOMPLETE),
    (event(user_id=None), Fault.INCOMPLETE),
    (event(event_time_ms=None), Fault.INCOMPLETE),
    (event(schema_version=None), Fault.INCOMPLETE),
    (event(schema_version=2), Fault.UNKNOWN_VERSION),
    (event(event_time_ms=NOW_MS + FUTURE_TOLERANCE_MS), None),
    (event(event_time_ms=NOW_MS + FUTURE_TOLERANCE_MS + 1), Fault.FUTURE),
    (event(event_time_ms=NOW_MS - LATE_AFTER_S * 1000), None),
    (event(event_time_ms=NOW_MS - LATE_AFTER_S * 1000 - 1), Fault.LATE),
]


def test_each_record_is_an_event_or_has_its_fault(spark: SparkSession) -> None:
    rows = parsed(spark, *(record(value) for value, _ in CASES))
    assert [(value, row.fault) for (value, _), row in zip(CASES, rows, strict=True)] == CASES


def test_an_event_has_its_fields_and_its_place(spark: SparkSession) -> None:
    records = spark.createDataFrame([record(event()), record(b"{}")], RECORDS)
    (row,) = valid(parse(records, LATE_AFTER_S)).collect()
    assert (row.topic, row.partition, row.offset) == ("page-views", 1, 7)
    assert (row.event_id, row.user_id, row.agent, row.page, row.query) == ("e", "u", "phone", "/a", None)
    assert row.event_time == row.arrived


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ([("arrived-ms", b"%d" % (NOW_MS - 60_000))], None),
        ([("other", None), ("arrived-ms", b"%d" % (NOW_MS - 60_000))], None),
        ([("arrived-ms", b"soon")], Fault.LATE),
        ([("arrived-ms", None)], Fault.LATE),
        ([("arrived-ms", b"9" * 18)], Fault.LATE),
        ([], Fault.LATE),
        (None, Fault.LATE),
    ],
)
def test_a_replay_arrives_when_its_original_did(spark: SparkSession, headers: Any, fault: Fault | None) -> None:
    (row,) = parsed(spark, record(event(event_time_ms=NOW_MS - 61_000), headers))
    assert row.fault == fault


def test_a_dead_letter_says_where_it_came_from_and_why(spark: SparkSession) -> None:
    records = spark.createDataFrame([record(event()), record(b"{}"), record(None)], RECORDS)
    first, second = dead_letters(parse(records, LATE_AFTER_S)).collect()
    assert (bytes(first.key), bytes(first.value)) == (b"page-views/1/7", b"{}")
    assert {header.key: bytes(header.value) for header in first.headers} == {
        "fault": b"incomplete",
        "source": b"page-views/1/7",
        "arrived-ms": b"%d" % NOW_MS,
    }
    assert second.value is None
