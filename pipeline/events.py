"""Events on the wire, and the first step of every job: telling what is an event from what is not.

An event is a JSON object in a record's value, keyed by user:

    {"schema_version": 1, "event_id": "...", "event_time_ms": 1790000000000, "user_id": "u17", "agent": "browser",
     "page": "/articles/3", "country": "DE",            a page view
     "query": "...",                                    a search
     "page": ..., "view_id": "...", "cost_cents": 12}   a click on an ad, with the view that showed it

with the headers `traceparent` (W3C Trace Context), and `arrived-ms` where the record is a replay. When it arrived is
the record's timestamp, or that header. A `Fault` is decided for each record by itself, so that a restart or a replay
decides the same:

    malformed          no JSON object, or a field of another type or out of its range
    incomplete         a field that every event has is missing
    unknown_version    a schema version that this code does not know
    future             it says that it happened after it arrived: one such event would take the watermark along, and
                       everything behind it would be late
    late               it arrived more than `late_after_s` after it happened
"""

from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["ARRIVED_HEADER", "BOT", "FUTURE_TOLERANCE_MS", "SCHEMA_VERSION", "Fault", "parse", "people", "valid"]

SCHEMA_VERSION: Final = 1
ARRIVED_HEADER: Final = "arrived-ms"
FUTURE_TOLERANCE_MS: Final = 1000
"""How far the clocks of those who write events may be ahead."""

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, up to which Spark's timestamps and Python's go."""

MOST_CENTS: Final = 100_000_000

BOT: Final = "bot"

_CORRUPT = "_corrupt"
_FIELDS = {
    "schema_version": "int",
    "event_id": "string",
    "event_time_ms": "bigint",
    "user_id": "string",
    "agent": "string",
    "page": "string",
    "country": "string",
    "query": "string",
    "view_id": "string",
    "cost_cents": "bigint",
}
_REQUIRED = ("schema_version", "event_id", "event_time_ms", "user_id")
_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in {**_FIELDS, _CORRUPT: "string"}.items())


class Fault(StrEnum):
    """Why a record is no event that a job may take, in the order of the checks."""

    MALFORMED = "malformed"
    INCOMPLETE = "incomplete"
    UNKNOWN_VERSION = "unknown_version"
    FUTURE = "future"
    LATE = "late"


def parse(records: DataFrame, late_after_s: int) -> DataFrame:
    """Read the values of `records`, as the Kafka source gives them with `includeHeaders`.

    The result has what locates a record (`topic`, `partition`, `offset`), `key` and `value` as they came, `arrived` and
    `event_time`, the fields of an event, and `fault`: a `Fault`, or null for an event.
    """
    text = F.col("value").cast("string")
    event = F.from_json(text, _SCHEMA, {"columnNameOfCorruptRecord": _CORRUPT})
    # Nothing that a record says may raise: it would come again with each restart, and end the query for good.
    header = F.expr(f"get(filter(headers, header -> header.key = '{ARRIVED_HEADER}'), 0).value").cast("string")
    arrived = F.coalesce(_timestamp(header.try_cast("bigint")), F.col("timestamp"))
    parsed = records.select(
        "topic", "partition", "offset", "key", "value", arrived.alias("arrived"), event.alias("event")
    ).select("*", _timestamp(F.col("event.event_time_ms")).alias("event_time"), _fault(late_after_s).alias("fault"))
    return parsed.select("*", *(f"event.{name}" for name in _FIELDS)).drop("event", "event_time_ms")


def _timestamp(time_ms: Column) -> Column:
    """The timestamp of milliseconds; null where there is none."""
    return F.when(time_ms.between(0, LAST_MS), F.timestamp_millis(time_ms))


def _fault(late_after_s: int) -> Column:
    field = {name: F.col(f"event.{name}") for name in (*_FIELDS, _CORRUPT)}
    in_range = field["event_time_ms"].between(0, LAST_MS) & F.coalesce(
        field["cost_cents"].between(0, MOST_CENTS), F.lit(True)
    )
    missing = reduce(or_, (field[name].isNull() for name in _REQUIRED))
    delay_ms = F.unix_millis("arrived") - field["event_time_ms"]
    return (
        F.when(F.col("event").isNull() | field[_CORRUPT].isNotNull() | ~in_range, Fault.MALFORMED.value)
        .when(missing, Fault.INCOMPLETE.value)
        .when(field["schema_version"] != SCHEMA_VERSION, Fault.UNKNOWN_VERSION.value)
        .when(delay_ms < -FUTURE_TOLERANCE_MS, Fault.FUTURE.value)
        .when(delay_ms > late_after_s * 1000, Fault.LATE.value)
    )


def valid(parsed: DataFrame) -> DataFrame:
    """The events among parsed records, which jobs may take."""
    return parsed.where(F.col("fault").isNull()).drop("fault", "key", "value")


def people(events: DataFrame) -> DataFrame:
    """The events that no bot made."""
    return events.where(~F.col("agent").eqNullSafe(BOT))
