"""The relational sink: a micro-batch changes the database once, however often and however far it runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError

from pipeline.database import BATCHES, COUNTS, SPEND, Table, create_tables, read_table, sqlite_url, upsert
from pipeline.tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)

SPENT = "country string, segment string, clicks bigint, cost_cents bigint"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """PostgreSQL with its data in a temporary folder, where it is installed."""
    programs = [Path(found).resolve().parent for found in (shutil.which("initdb"),) if found]
    programs += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("PostgreSQL is not installed")
    with Postgres(programs[0]) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    made: str
    if request.param == "sqlite":
        made = sqlite_url(str(tmp_path / "warehouse.db"))
    else:
        made = request.getfixturevalue("server").new_database()
    create_tables(spark, made)
    return made


@pytest.fixture
def query_id(spark: SparkSession) -> Iterator[str]:
    """What Spark says of the query while it runs `foreachBatch`."""
    query = str(uuid4())
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", query)
    yield query
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)  # type: ignore[arg-type]


def spent(spark: SparkSession, url: str) -> dict[str, int]:
    return {row.country: row.cost_cents for row in read_table(spark, url, SPEND.name).collect()}


def test_a_batch_that_runs_again_changes_nothing(spark: SparkSession, url: str, query_id: str) -> None:
    write = upsert(url, SPEND)
    first = spark.createDataFrame([("DE", "free", 1, 10), ("FR", "free", 1, 5)], SPENT)
    second = spark.createDataFrame([("DE", "free", 2, 7)], SPENT)
    write(first, 0)
    write(first, 0)
    assert spent(spark, url) == {"DE": 10, "FR": 5}
    write(second, 1)
    write(second, 1)
    assert spent(spark, url) == {"DE": 17, "FR": 5}
    batches = read_table(spark, url, BATCHES.name).collect()
    assert sorted((row.query_id, row.batch_id) for row in batches) == [(query_id, 0), (query_id, 1)]


def test_a_new_checkpoint_begins_with_batches_of_its_own(spark: SparkSession, url: str, query_id: str) -> None:
    batch = spark.createDataFrame([("DE", "free", 1, 10)], SPENT)
    upsert(url, SPEND)(batch, 0)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", str(uuid4()))
    upsert(url, SPEND)(batch, 0)
    assert spent(spark, url) == {"DE": 20}


def test_a_batch_that_fails_leaves_nothing_behind(spark: SparkSession, url: str, query_id: str) -> None:
    batch = spark.createDataFrame([("DE", "free", 1, 10)], SPENT)
    wrong = Table(SPEND.name, SPEND.key, {**SPEND.values, "no_such_column": "BIGINT"}, adds=True)
    with pytest.raises(Py4JJavaError, match="no_such_column"):
        upsert(url, wrong)(batch, 0)
    assert read_table(spark, url, BATCHES.name).count() == 0
    upsert(url, SPEND)(batch, 0)
    assert spent(spark, url) == {"DE": 10}


def test_new_counts_replace_old_ones(spark: SparkSession, url: str, query_id: str) -> None:
    def batch(views: int) -> object:
        return spark.createDataFrame(
            [(0, "page", "/a", views)], "window_start_ms bigint, dimension string, value string, views bigint"
        )

    for number, views in enumerate((3, 8)):
        upsert(url, COUNTS)(batch(views), number)  # type: ignore[arg-type]
    assert [row.views for row in read_table(spark, url, COUNTS.name).collect()] == [8]


def test_a_database_without_a_driver_is_refused() -> None:
    with pytest.raises(ValueError, match="expected jdbc:sqlite or jdbc:postgresql"):
        upsert("jdbc:oracle:thin", SPEND)
