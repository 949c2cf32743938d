"""Streams and what happens to their topics: new partitions, new topics, records that are gone, transactions."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.structs import TopicPartition
from pyspark.errors import StreamingQueryException

from pipeline.admin import beginnings, create_topics
from pipeline.broker import Broker
from pipeline.landed import read_lake
from pipeline.settings import Settings
from pipeline.streams import start, supervise
from pipeline.topics import AD_CLICKS, PAGE_VIEWS, SEARCHES, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)

WAIT_S = 60


@pytest.fixture
def settings(spark: SparkSession, tmp_path: Path) -> Iterator[Settings]:
    """A broker of each test's own, as these tests take topics apart."""
    retention = {"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "100"}
    with Broker(tmp_path, retention) as broker:
        create_topics(broker.bootstrap_servers, tuple(Topic(name, 1) for name in (PAGE_VIEWS, SEARCHES, AD_CLICKS)))
        yield Settings(broker.bootstrap_servers, str(tmp_path), "", trigger_s=None)


@pytest.fixture
def admin(settings: Settings) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def producer(settings: Settings) -> Iterator[KafkaProducer]:
    client = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    yield client
    client.close()


def send(producer: KafkaProducer, topic: str, *ids: str, partition: int = 0) -> None:
    for event_id in ids:
        now_ms = int(time.time() * 1000)
        event = {"schema_version": 1, "event_id": event_id, "event_time_ms": now_ms, "user_id": "u"}
        producer.send(topic, json.dumps(event).encode(), partition=partition, timestamp_ms=now_ms)
    producer.flush()


def land(spark: SparkSession, settings: Settings) -> list[str]:
    """Land what is there; the ids that the lake holds then."""
    supervise(start(spark, settings, ["landing"]), lambda: False)
    return sorted(row.event_id for row in read_lake(spark, settings).select("event_id").collect())


def test_partitions_and_topics_that_are_new_are_read_from_their_first_record(
    spark: SparkSession, settings: Settings, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    running = dataclasses.replace(settings, trigger_s=0.5)
    (query,) = start(spark, running, ["landing"])
    try:
        send(producer, PAGE_VIEWS, "first")
        query.processAllAvailable()
        admin.create_partitions({PAGE_VIEWS: 2})
        strangers = (f"{PAGE_VIEWS}x", f"old-{PAGE_VIEWS}")
        names = (f"{PAGE_VIEWS}-mobile", *strangers)
        create_topics(settings.bootstrap_servers, tuple(Topic(name, 1) for name in names))
        other = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
        send(other, PAGE_VIEWS, "new partition", partition=1)
        send(other, f"{PAGE_VIEWS}-mobile", "new topic")
        for stranger in strangers:
            send(other, stranger, stranger)
        other.close()
        query.processAllAvailable()
    finally:
        query.stop()
    assert land(spark, settings) == ["first", "new partition", "new topic"]


@pytest.mark.parametrize("by", ["DeleteRecords", "retention"])
def test_records_that_are_gone_end_the_query_unless_it_may_lose_them(
    spark: SparkSession, settings: Settings, admin: KafkaAdminClient, producer: KafkaProducer, by: str
) -> None:
    send(producer, PAGE_VIEWS, "a", "b")
    assert land(spark, settings) == ["a", "b"]
    send(producer, PAGE_VIEWS, "c", "d")
    if by == "DeleteRecords":
        admin.delete_records({TopicPartition(PAGE_VIEWS, 0): 3})
        left = ["d"]
    else:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, PAGE_VIEWS, {"retention.ms": "1"})])
        wait_for_beginning(settings, 4)
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, PAGE_VIEWS, {"retention.ms": "-1"})])
        left = []
    send(producer, PAGE_VIEWS, "e")
    with pytest.raises(StreamingQueryException, match=r"(?i)data may have been lost"):
        land(spark, settings)
    careless = dataclasses.replace(settings, fail_on_data_loss=False)
    assert land(spark, careless) == ["a", "b", *left, "e"]


def wait_for_beginning(settings: Settings, offset: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while beginnings(settings.bootstrap_servers, [PAGE_VIEWS])[PAGE_VIEWS][0] < offset:
        assert time.monotonic() < deadline


def test_what_is_not_committed_is_not_read(spark: SparkSession, settings: Settings, producer: KafkaProducer) -> None:
    transactional = KafkaProducer(bootstrap_servers=settings.bootstrap_servers, transactional_id="clicks")
    transactional.init_transactions()
    transactional.begin_transaction()
    send(transactional, AD_CLICKS, "aborted")
    transactional.abort_transaction()
    transactional.begin_transaction()
    send(transactional, AD_CLICKS, "committed")
    send(producer, AD_CLICKS, "behind")
    send(producer, PAGE_VIEWS, "view")
    assert land(spark, settings) == ["view"]
    transactional.commit_transaction()
    assert land(spark, settings) == ["behind", "committed", "view"]
    transactional.close()
