"""The proof: streaming jobs and broker are killed at random points, and every event is in the outputs exactly once.

`--kills N` says how often the jobs are killed; the broker is killed every other time, while the generator goes on. The
seed of the points is printed, and `--seed` repeats them as far as time allows.
"""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pipeline.admin import create_topics
from pipeline.broker import Broker
from pipeline.database import create_tables, sqlite_url
from pipeline.landed import collect, reconcile
from pipeline.produce import read_note
from pipeline.progress import read_progress
from pipeline.settings import Settings
from pipeline.streams import JOBS, start, supervise
from pipeline.tests.running import Running
from pipeline.truth import derive

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(3600)

GENERATOR_S = 150
"""For what the generator sends last, with all the time that its client gives a record."""

RATE = 60
BACKLOG_S = 240
"""What is there before the jobs start. It takes them many micro-batches, over which partitions drift apart."""

WATERMARK_S = 120
"""More than they drift apart, and than the end of a transaction may take when the broker was killed."""

FEW_JOBS = ["landing", "counts", "spend"]
"""One for each way to write exactly once: what a single kill is for."""


def start_generator(settings: Settings, note: Path, seed: int) -> subprocess.Popen[bytes]:
    """Activity that began before now and goes on until SIGTERM."""
    since = datetime.now(UTC) - timedelta(seconds=BACKLOG_S)
    command = [sys.executable, "-m", "pipeline", "generate", "--bootstrap-servers", settings.bootstrap_servers]
    command += ["--rate", f"{RATE}", "--seed", f"{seed}", "--since", since.isoformat(), "--seconds", "inf"]
    return subprocess.Popen([*command, "--note", str(note)])


def test_every_event_is_there_once_whatever_is_killed(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, quick_spark: Mapping[str, str]
) -> None:
    kills, seed = request.config.getoption("kills"), request.config.getoption("seed")
    print(f"--kills {kills} --seed {seed}")
    points = random.Random(seed)
    note = tmp_path / "produced.json"
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(tmp_path))
        url = sqlite_url(str(tmp_path / "warehouse.db"))
        settings = Settings(
            broker.bootstrap_servers, str(tmp_path), url, max_offsets_per_trigger=600, watermark_s=WATERMARK_S
        )
        create_topics(settings.bootstrap_servers)
        generator = start_generator(settings, note, seed)
        stack.callback(generator.kill)
        for number in range(kills):
            jobs = Running(JOBS if kills > 1 else FEW_JOBS, settings, tmp_path, quick_spark)
            stack.callback(jobs.kill)
            jobs.wait_for_batches(points.randint(2, 12))
            if number % 2 == 0:
                time.sleep(points.uniform(0, 1))
                broker.kill()
                time.sleep(points.uniform(0, 2))
                broker.restart()
                jobs.wait_for_batches(points.randint(1, 12))
            time.sleep(points.uniform(0, 2))  # anywhere within a micro-batch
            jobs.kill()
        generator.terminate()
        assert generator.wait(GENERATOR_S) == 0
        records = read_note(note)
        # What is left, to the end.
        last = dataclasses.replace(settings, trigger_s=None, max_offsets_per_trigger=100_000)
        create_tables(spark, url)
        supervise(start(spark, last, JOBS), lambda: False)
        checks = reconcile(derive(records, settings), collect(spark, settings), settings)
    dropped = sum(batch.dropped for batch in read_progress(tmp_path / "progress.jsonl"))
    assert [check for check in checks if not check.holds] == []
    assert all(check.expected > 0 for check in checks if "aborted" not in check.name)
    assert dropped == 0
