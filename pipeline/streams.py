"""The streaming queries: where each job's records come from, where they go, and how often.

What a sink promises:

    landing                     the lake's files     exactly once (the file sink's log, or Delta's)
    counts  sessions  spend     tables               exactly once (`database.upsert`)
    dead-letters  conversions   topics               at least once; a key tells repeats, and its latest value is the
    top-pages                                        truth
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pipeline.database import COUNTS, SESSIONS, SPEND, upsert
from pipeline.events import parse, valid
from pipeline.jobs.conversions import attribute
from pipeline.jobs.counts import count_views
from pipeline.jobs.dead_letters import dead_letters
from pipeline.jobs.landing import land
from pipeline.jobs.sessions import sessionise
from pipeline.jobs.spend import latest_profiles, spend
from pipeline.jobs.top_pages import count_pages, rank
from pipeline.settings import Settings
from pipeline.sources import read_topic, stream_topics
from pipeline.topics import AD_CLICKS, CONVERSIONS, DEAD_LETTERS, EVENTS, PAGE_VIEWS, TOP_PAGES, USERS

__all__ = ["JOBS", "start", "supervise"]

_LOOK_EVERY_S: Final = 1

Job = Callable[[SparkSession, Settings], DataStreamWriter]


def start(spark: SparkSession, settings: Settings, jobs: Iterable[str]) -> list[StreamingQuery]:
    """Start the queries of `jobs`, each from where its checkpoint ends."""
    return [_start(JOBS[name](spark, settings), name, settings) for name in jobs]


def supervise(queries: Iterable[StreamingQuery], should_stop: Callable[[], bool]) -> None:
    """Wait until all `queries` have ended, or until `should_stop`; raises what one of them failed with."""
    running = list(queries)
    while running and not should_stop():
        running = [query for query in running if not query.awaitTermination(_LOOK_EVERY_S)]


def _start(writer: DataStreamWriter, name: str, settings: Settings) -> StreamingQuery:
    writer = writer.queryName(name).option("checkpointLocation", settings.checkpoint(name))
    if settings.trigger_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_s} seconds").start()


def _parsed(spark: SparkSession, settings: Settings, *topics: str) -> DataFrame:
    return parse(stream_topics(spark, settings, *topics), settings.late_after_s)


def _events(spark: SparkSession, settings: Settings, *topics: str) -> DataFrame:
    return valid(_parsed(spark, settings, *topics))


def _to_topic(records: DataFrame, settings: Settings, topic: str) -> DataStreamWriter:
    options = {"kafka.bootstrap.servers": settings.bootstrap_servers, "topic": topic}
    return records.writeStream.format("kafka").options(**options)


def _landing(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    landed = land(_events(spark, settings, *EVENTS), settings.watermark_s)
    return (
        landed.writeStream.format(settings.lake_format.value)
        .option("path", settings.lake)
        .partitionBy("date", "hour")
        .outputMode("append")
    )


def _dead_letters(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    return _to_topic(dead_letters(_parsed(spark, settings, *EVENTS)), settings, DEAD_LETTERS)


def _counts(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    counts = count_views(_events(spark, settings, PAGE_VIEWS), settings.watermark_s, settings.window_s)
    return counts.writeStream.outputMode("update").foreachBatch(upsert(settings.database_url, COUNTS))


def _top_pages(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    def write(batch: DataFrame, _: int) -> None:
        options = {"kafka.bootstrap.servers": settings.bootstrap_servers, "topic": TOP_PAGES}
        rank(batch, settings.top).write.format("kafka").options(**options).save()

    closed = count_pages(_events(spark, settings, PAGE_VIEWS), settings.watermark_s, settings.window_s)
    return closed.writeStream.outputMode("append").foreachBatch(write)


def _sessions(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    sessions = sessionise(_events(spark, settings, *EVENTS), settings.watermark_s, settings.session_gap_s)
    return sessions.writeStream.outputMode("append").foreachBatch(upsert(settings.database_url, SESSIONS))


def _conversions(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    clicks, views = (_events(spark, settings, topic) for topic in (AD_CLICKS, PAGE_VIEWS))
    return _to_topic(attribute(clicks, views, settings.watermark_s, settings.attribution_s), settings, CONVERSIONS)


def _spend(spark: SparkSession, settings: Settings) -> DataStreamWriter:
    to_database = upsert(settings.database_url, SPEND)

    def write(batch: DataFrame, batch_id: int) -> None:
        profiles = latest_profiles(read_topic(batch.sparkSession, settings, USERS))
        to_database(spend(batch, profiles), batch_id)

    return _events(spark, settings, AD_CLICKS).writeStream.foreachBatch(write)


JOBS: Final[Mapping[str, Job]] = {
    "landing": _landing,
    "dead-letters": _dead_letters,
    "counts": _counts,
    "top-pages": _top_pages,
    "sessions": _sessions,
    "conversions": _conversions,
    "spend": _spend,
}
