"""The jobs as spark-submit runs them, on a master and two workers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.admin import create_topics
from pipeline.broker import Broker
from pipeline.cluster import Cluster
from pipeline.database import sqlite_url
from pipeline.generator import Plan
from pipeline.landed import collect, reconcile
from pipeline.produce import produce, read_note
from pipeline.session import DEFAULTS
from pipeline.settings import Settings
from pipeline.truth import derive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1200)

SECONDS = 100
RATE = 30
SUBMIT_S = 900
SUBMIT = Path(sys.executable).with_name("spark-submit")


@pytest.fixture
def settings(spark: SparkSession, tmp_path: Path) -> Iterator[Settings]:
    """A broker of its own, as all that is in its topics is compared."""
    with Broker(tmp_path) as broker:
        create_topics(broker.bootstrap_servers)
        yield Settings(broker.bootstrap_servers, str(tmp_path), sqlite_url(str(tmp_path / "warehouse.db")))


def test_the_jobs_run_unchanged_on_a_cluster(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    note = tmp_path / "produced.json"
    plan = Plan(seed=6, start_ms=int((time.time() - SECONDS) * 1000), rate=RATE)
    produce(settings.bootstrap_servers, plan, SECONDS, note, threading.Event())
    with Cluster(tmp_path / "cluster") as cluster:
        command = [SUBMIT, "--master", cluster.url, "--properties-file", DEFAULTS]
        command += ["--conf", "spark.executor.memory=512m", DEFAULTS.with_name("__main__.py"), "stream"]
        command += ["--available-now", "--bootstrap-servers", settings.bootstrap_servers, "--folder", settings.folder]
        environment = {
            **os.environ,
            "PYTHONPATH": os.getcwd(),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        submitted = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SUBMIT_S, check=False
        )
        assert submitted.returncode == 0, submitted.stderr[-4000:]
        workers = {path.parent.name for path in (tmp_path / "cluster").glob("worker-*/app-*")}
    assert workers == {"worker-1", "worker-2"}
    checks = reconcile(derive(read_note(note), settings), collect(spark, settings), settings)
    assert [check for check in checks if not check.holds] == []
