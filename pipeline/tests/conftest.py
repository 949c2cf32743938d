"""One Spark session and one broker for all tests of a run; and a way through a stream that takes no broker."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.admin import create_topics
from pipeline.broker import Broker
from pipeline.database import create_tables, sqlite_url
from pipeline.session import local_session
from pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

# Code that lives for seconds is not worth optimising, neither by the JVM nor by Spark.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUICK_SPARK = {
    "spark.driver.memory": "768m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=1, help="how often the pipeline's jobs are killed")
    parser.addoption("--seed", type=int, default=time.time_ns() % 10**6, help="of the points where they are")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let PySpark leave the sockets to its JVM to the garbage collector, as it does."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two threads, that keeps what it leaves in a temporary folder."""
    if shutil.which("java") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("java is not installed", pytrace=False)
        pytest.skip("java is not installed")
    folder = tmp_path_factory.mktemp("spark")
    before = os.getcwd()
    os.environ["JDK_JAVA_OPTIONS"] = _QUICK_JVM
    os.chdir(folder)  # Spark leaves an `artifacts` folder where it starts
    try:
        session = local_session("tests", "local[2]", more={**_QUICK_SPARK, "spark.local.dir": str(folder)})
    finally:
        os.chdir(before)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quick_spark() -> dict[str, str]:
    """The environment of a process whose session is to be as quick to start as this one."""
    settings = " ".join(f"--conf {key}={value}" for key, value in _QUICK_SPARK.items())
    return {"JDK_JAVA_OPTIONS": _QUICK_JVM, "PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell"}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that looks for what retention deletes each second."""
    overrides = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "0"}
    with Broker(tmp_path_factory.mktemp("broker"), overrides) as running:
        yield running


@pytest.fixture
def settings(spark: SparkSession, broker: Broker, tmp_path: Path) -> Settings:
    """Settings with folders and tables of one test; queries end when all is read."""
    create_topics(broker.bootstrap_servers)
    made = Settings(broker.bootstrap_servers, str(tmp_path), sqlite_url(str(tmp_path / "warehouse.db")), trigger_s=None)
    create_tables(spark, made.database_url)
    return made


@pytest.fixture
def name() -> str:
    """A name for one test's topic."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def through_stream(spark: SparkSession, tmp_path: Path) -> Callable[..., list[Row]]:
    """A function that sends frames through a stream, one in each micro-batch, and gives the rows that come out."""

    def run(
        arrivals: Sequence[DataFrame], transform: Callable[..., DataFrame], *arguments: Any, mode: str = "append"
    ) -> list[Row]:
        number = next(_numbers)
        name = f"out_{number}"
        folder = tmp_path / f"in-{number}"
        for place, frame in enumerate(arrivals):
            frame.coalesce(1).write.parquet(str(folder / f"{place}"))
            for file in (folder / f"{place}").glob("*.parquet"):
                os.utime(file, (place, place))  # the source reads the oldest first
        source = spark.readStream.schema(arrivals[0].schema).option("maxFilesPerTrigger", 1)
        query = (
            transform(source.parquet(f"{folder}/*"), *arguments)
            .writeStream.format("memory")
            .queryName(name)
            .outputMode(mode)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)
        return spark.table(name).collect()

    return run
