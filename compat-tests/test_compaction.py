"""Compaction beside a real Kafka: the same history leaves the same records, in files that Kafka's own tool reads."""

from __future__ import annotations

import re
import time
import zlib
from typing import TYPE_CHECKING, NamedTuple

import pytest
from harness.java import Tools
from harness.kafka import KraftKafka
from harness.odradek import Odradek
from harness.versions import KAFKA_4
from wire.client import Wire
from wire.records import HEADER_BYTES, NOW_MS, batch, whole_batches
from wire.schemas import apis

from odradek_protocol.records.read import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.target import Target

CLEANED_WITHIN_S = 90
"""Both look for dirty logs every 15 s."""
GZIP = 1
DELETE_HORIZON = 0x40
CONFIGS = {
    "cleanup_policy": "compact",
    "segment_bytes": str(1 << 20),
    "min_cleanable_dirty_ratio": "0.01",
    "min_compaction_lag_ms": "1",
}


class Left(NamedTuple):
    """A record after cleaning, and whether its batch has a delete horizon."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    has_horizon: bool


def history() -> Iterator[bytes]:
    """Batches with repeated keys, tombstones, a codec and a producer; large enough for a few segments."""
    for number in range(12):
        keys = [b"key %d" % (number % 5), b"filler %d" % number, b"key %d" % (number * 3 % 7)]
        values = [b"value %d" % number, bytes([number]) * 250_000, None if number % 4 == 1 else b"other %d" % number]
        times = [NOW_MS + 10 * number, NOW_MS + 10 * number - 3, NOW_MS + 10 * number + 1]
        producer = {"producer_id": 4000, "producer_epoch": 0, "base_sequence": 3 * number} if number > 5 else {}
        plain = batch(*values, keys=keys, timestamps=times, **producer)
        if number % 3:
            yield plain
            continue
        compressor = zlib.compressobj(wbits=31)
        packed = compressor.compress(plain[HEADER_BYTES:]) + compressor.flush()
        yield batch(*values, keys=keys, timestamps=times, body=packed, attributes=GZIP, **producer)


def clean(target: Target, name: str) -> Path:
    """Write the history to a topic, wait until all but the active segment is clean, and return its folder."""
    with Wire(target.bootstrap, apis(KAFKA_4)) as wire:
        wire.create_topic(name, **CONFIGS)
        for data in history():
            wire.produce(name, data)
    folder = target.log_folder() / f"{name}-0"
    checkpoint = target.log_folder() / "cleaner-offset-checkpoint"
    active = max(int(path.stem) for path in folder.glob("*.log"))
    deadline = time.monotonic() + CLEANED_WITHIN_S
    while not (checkpoint.exists() and f"{name} 0 {active}" in checkpoint.read_text().splitlines()):
        assert time.monotonic() < deadline, f"{target.name} has not cleaned up to {active}"
        time.sleep(0.1)
    return folder


def left_in(folder: Path) -> list[Left]:
    """The records in the segments of a folder."""
    return [
        Left(record.offset, record.key, record.value, record.timestamp_ms, bool(header["attributes"] & DELETE_HORIZON))
        for path in sorted(folder.glob("*.log"))
        for header, data in whole_batches(path.read_bytes())
        for record in read_records(data)
    ]


@pytest.fixture
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odradek]:
    broker = Odradek(tmp_path_factory.mktemp("odradek"))
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftKafka]:
    broker = KraftKafka(tmp_path_factory.mktemp("kafka"))
    try:
        yield broker
    finally:
        broker.stop()


@pytest.mark.timeout(300)
def test_the_same_history_leaves_the_same_records(
    odradek: Odradek, kafka: KraftKafka, name: str, tmp_path: Path
) -> None:
    ours, theirs = clean(odradek, name), clean(kafka, name)
    assert left_in(ours) == left_in(theirs)
    assert 0 < len(left_in(ours)) < 36

    tools = Tools(KAFKA_4, odradek.bootstrap, tmp_path)
    try:
        for log in sorted(ours.glob("*.log"))[:-1]:
            dumped = tools.run("dump-log", "--deep-iteration", "--files", log)
            assert dumped.status == 0
            # Holes are what compaction is for; the tool tells them all the same.
            expected = re.compile(r"SLF4J: .*|Non-consecutive offsets in .*|  -?\d+ is followed by \d+")
            assert [line for line in dumped.err.splitlines() if not expected.fullmatch(line)] == []
            assert "isvalid: false" not in dumped.out
            for suffix in (".index", ".timeindex"):
                index = log.with_suffix(suffix)
                dumped = tools.run("dump-log", "--index-sanity-check", "--files", index)
                assert (dumped.status, dumped.err) == (0, "")
                assert f"{index} passed sanity check." in dumped.lines
    finally:
        tools.close()
