"""Offline loading: every record once by the manifest, through cut-off steps, compaction and replay."""

from __future__ import annotations

import itertools
import json
import os
import time
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from pipeline.admin import create_topics
from pipeline.offline import Manifest, RecordsGoneError, compact, load, read_loaded
from pipeline.replay import REPLAYED_HEADER, arrived_between, replay
from pipeline.sources import read_between, read_topic
from pipeline.topics import Topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.settings import Settings

pytestmark = pytest.mark.timeout(300)

HOUR_MS = 3_600_000
START_MS = (time.time_ns() // 1_000_000 // HOUR_MS - 1) * HOUR_MS
"""The beginning of an hour, as there is a folder for each."""


@pytest.fixture
def topic(settings: Settings, name: str) -> str:
    create_topics(settings.bootstrap_servers, (Topic(name, 2),))
    return name


@pytest.fixture
def admin(settings: Settings) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    yield client
    client.close()


def fill(settings: Settings, topic: str, first: int, last: int, partitions: int = 2) -> None:
    """Produce the numbers [first, last), one a second, dealt to the partitions in turn."""
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    for number in range(first, last):
        producer.send(
            topic,
            key=b"k",
            value=b"%d" % number,
            partition=number % partitions,
            headers=[("n", b"%d" % number)],
            timestamp_ms=START_MS + number * 1000,
        )
    producer.flush()
    producer.close()


def numbers(records: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in records.select("value").collect())


def test_each_load_goes_on_where_the_last_one_ended(
    spark: SparkSession, settings: Settings, topic: str, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    fill(settings, topic, 0, 100)
    first = load(spark, settings, [topic], target, step_offsets=20)
    assert (first.steps, first.next) == (3, {topic: {0: 50, 1: 50}})
    assert numbers(read_loaded(spark, target)) == list(range(100))
    admin.create_partitions({topic: 3})
    fill(settings, topic, 100, 130, partitions=3)
    second = load(spark, settings, [topic], target)
    assert second.steps == 4
    assert set(second.next[topic]) == {0, 1, 2}
    assert load(spark, settings, [topic], target) == second == Manifest.read(target)
    assert numbers(read_loaded(spark, target)) == list(range(130))
    ranges = sorted((place, *ends) for file in first.files for place, ends in file.offsets.items())
    assert ranges[0] == (f"{topic}/0", 0, 19)


def test_a_load_that_was_cut_off_is_done_again(
    spark: SparkSession, settings: Settings, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    fill(settings, topic, 0, 60)
    writes = itertools.count(1)
    write = Manifest.write

    def cut_off(manifest: Manifest, where: Path) -> None:
        if next(writes) == 2:
            raise KeyboardInterrupt
        write(manifest, where)

    monkeypatch.setattr(Manifest, "write", cut_off)
    with pytest.raises(KeyboardInterrupt):
        load(spark, settings, [topic], target, step_offsets=20)
    monkeypatch.undo()
    assert (target / "000002").exists()
    assert numbers(read_loaded(spark, target)) == list(range(40))
    load(spark, settings, [topic], target)
    assert numbers(read_loaded(spark, target)) == list(range(60))


def test_small_files_are_joined(spark: SparkSession, settings: Settings, topic: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    fill(settings, topic, 0, 100)
    before = load(spark, settings, [topic], target, step_offsets=10)
    after = compact(spark, target)
    assert len(after.files) < len(before.files)
    assert (after.rows, after.next) == (100, before.next)
    assert numbers(read_loaded(spark, target)) == list(range(100))
    on_disk = {str(path.relative_to(target)) for path in target.rglob("*.parquet")}
    assert on_disk == {file.path for file in after.files}
    large = compact(spark, target, small_bytes=0)
    assert large == after
    fill(settings, topic, 100, 110)
    load(spark, settings, [topic], target)
    assert numbers(read_loaded(spark, target)) == list(range(110))


def test_a_load_from_a_time(spark: SparkSession, settings: Settings, topic: str, tmp_path: Path) -> None:
    fill(settings, topic, 0, 100)
    load(spark, settings, [topic], tmp_path / "target", since_ms=START_MS + 70_000)
    assert numbers(read_loaded(spark, tmp_path / "target")) == list(range(70, 100))
    assert load(spark, settings, [topic], tmp_path / "none", since_ms=START_MS + 10**9).files == []


def test_records_that_are_gone_end_a_load_unless_it_may_lose_them(
    spark: SparkSession, settings: Settings, topic: str, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    fill(settings, topic, 0, 20)
    load(spark, settings, [topic], target)
    fill(settings, topic, 20, 60)
    admin.delete_records({TopicPartition(topic, 0): 20})
    with pytest.raises(RecordsGoneError, match=f"{topic}/0: the next offset to load is 10, the first that is left 20"):
        load(spark, settings, [topic], target)
    careless = type(settings)(**{**settings.__dict__, "fail_on_data_loss": False})
    load(spark, careless, [topic], target)
    assert numbers(read_loaded(spark, target)) == [*range(20), *range(21, 40, 2), *range(40, 60)]


def test_a_replay_keeps_what_a_record_was(spark: SparkSession, settings: Settings, topic: str, tmp_path: Path) -> None:
    target, copy, again = tmp_path / "target", f"{topic}-copy", f"{topic}-again"
    create_topics(settings.bootstrap_servers, (Topic(copy, 2), Topic(again, 1)))
    fill(settings, topic, 0, 50)
    load(spark, settings, [topic], target)
    replay(arrived_between(read_loaded(spark, target), START_MS + 10_000, START_MS + 30_000), settings, copy)
    assert numbers(read_topic(spark, settings, copy)) == list(range(10, 30))

    starts, ends = {copy: {0: 0, 1: 0}}, {copy: {0: 20, 1: 0}}
    places = {row.partition for row in read_topic(spark, settings, copy).select("partition").collect()}
    (place,) = places  # all have one key
    starts, ends = {copy: {place: 5}}, {copy: {place: 15}}
    replay(read_between(spark, settings, starts, ends), settings, again)
    rows = read_topic(spark, settings, again).orderBy("offset").collect()
    assert len(rows) == 10
    for row in rows:
        headers = [(header.key, bytes(header.value)) for header in row.headers]
        number = int(row.value)
        assert headers[:2] == [("n", b"%d" % number), ("arrived-ms", b"%d" % (START_MS + number * 1000))]
        assert headers[2] == (REPLAYED_HEADER, f"{topic}/{number % 2}/{number // 2}".encode())
        assert headers[3][0] == REPLAYED_HEADER
        assert len(headers) == 4


def test_the_manifest_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Manifest(steps=1, next={"t": {0: 5}}).write(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        Manifest(steps=2).write(tmp_path)
    assert Manifest.read(tmp_path) == Manifest(steps=1, next={"t": {0: 5}})
    assert json.loads((tmp_path / "manifest.json").read_text())["next"] == {"t": {"0": 5}}
