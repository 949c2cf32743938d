"""The lake in Delta's format, whose package Spark fetches when it is asked for."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pipeline.admin import create_topics
from pipeline.broker import Broker
from pipeline.database import sqlite_url
from pipeline.generator import Plan
from pipeline.produce import produce, read_note
from pipeline.settings import LakeFormat, Settings
from pipeline.tests.running import WAIT_S, Running
from pipeline.truth import derive

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.timeout(1200)

SECONDS = 100
RATE = 30

# A session that knows Delta is one of another process: the jars of a JVM are those it started with.
READ = """
import json, sys
from pipeline.landed import read_lake
from pipeline.session import local_session
from pipeline.settings import LakeFormat, Settings

spark = local_session("read", "local[2]", LakeFormat.DELTA)
if len(sys.argv) > 1:
    settings = Settings("", sys.argv[1], "", lake_format=LakeFormat.DELTA)
    print(json.dumps(sorted(row.event_id for row in read_lake(spark, settings).select("event_id").collect())))
"""


def in_delta_session(folder: Path, quick_spark: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **quick_spark, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", READ, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False
    )


@pytest.fixture
def delta(tmp_path: Path, quick_spark: Mapping[str, str]) -> None:
    """Delta's package, where it can be had."""
    tried = in_delta_session(tmp_path, quick_spark)
    if tried.returncode and "unresolved dependency: io.delta" in tried.stderr + tried.stdout:
        if os.environ.get("CI") == "true":
            pytest.fail("delta-spark cannot be fetched", pytrace=False)
        pytest.skip("delta-spark cannot be fetched")
    assert tried.returncode == 0, tried.stderr


@pytest.mark.usefixtures("delta")
def test_every_event_is_in_the_delta_lake_once_though_the_job_is_killed(
    tmp_path: Path, quick_spark: Mapping[str, str]
) -> None:
    note = tmp_path / "produced.json"
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(tmp_path))
        create_topics(broker.bootstrap_servers)
        plan = Plan(seed=5, start_ms=int((time.time() - SECONDS) * 1000), rate=RATE)
        produce(broker.bootstrap_servers, plan, SECONDS, note, threading.Event())
        settings = Settings(
            broker.bootstrap_servers,
            str(tmp_path),
            sqlite_url(str(tmp_path / "warehouse.db")),
            max_offsets_per_trigger=200,
            watermark_s=SECONDS,
            lake_format=LakeFormat.DELTA,
        )
        for _ in range(2):
            job = Running(["landing"], settings, tmp_path, quick_spark)
            stack.callback(job.kill)
            job.wait_for_batches(2)
            job.kill()
        rest = dataclasses.replace(settings, trigger_s=None, max_offsets_per_trigger=100_000)
        job = Running(["landing"], rest, tmp_path, quick_spark)
        stack.callback(job.kill)
        job.wait()
    read = in_delta_session(tmp_path, quick_spark, str(tmp_path))
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout.splitlines()[-1]) == sorted(derive(read_note(note), settings).landed)
