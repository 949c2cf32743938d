"""Exactly once, seen from outside: applications, broker and readers are killed, and the counts come out exact.

`--broker-kills N` says how often the broker is killed in each proof, and an instance of the application with it;
`--kill-seed` repeats the moments as far as time allows.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from harness.applications import PARTITIONS, Application, ConfluentLoop, KafkaPythonLoop, Streams
from harness.clients import client_of, python_driver
from harness.environments import python_with
from harness.features import CLIENTS
from harness.process import Child
from harness.spark import spark_environment
from harness.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.agent import Agent
    from harness.target import Target

QUERY_TIMEOUT_S = 300  # the first one starts Spark
READ_COMMITTED = {"kafka.isolation.level": "read_committed"}

pytestmark = pytest.mark.timeout(7200)


@pytest.fixture(scope="module")
def kafka(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """What feeds, and looks on."""
    driver = python_driver("confluent-kafka", "confluent-kafka")
    with client_of(driver, target, tmp_path_factory.mktemp("confluent-kafka")) as agent:
        yield agent
        agent.call("reset")


@pytest.fixture(scope="module")
def kafka_python(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    driver = python_driver("kafka-python-3", "kafka-python")
    with client_of(driver, target, tmp_path_factory.mktemp("kafka-python")) as agent:
        yield agent


@pytest.fixture(scope="module")
def spark(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("spark")
    with client_of(python_driver("pyspark", "pyspark"), target, folder, spark_environment(folder)) as agent:
        yield agent


class SparkStream:
    """A structured stream that writes the committed records of a topic to Parquet, and can be killed."""

    def __init__(self, target: Target, topic: str, folder: Path) -> None:
        self.where = {"topic": topic, "files": str(folder / "files"), "checkpoint": str(folder / "checkpoint")}
        self._bootstrap = target.bootstrap
        self._folder = folder
        self._starts = 0
        self._child = self._start()

    def kill_and_start(self) -> None:
        self._child.kill()
        self._child = self._start()

    def stop(self) -> None:
        self._child.kill()

    def _start(self) -> Child:
        self._starts += 1
        command = [python_with("pyspark"), CLIENTS / "pyspark" / "read_loop.py", self._bootstrap, *self.where.values()]
        return Child(f"spark-{self._starts}", command, self._folder, spark_environment(self._folder))


@pytest.mark.parametrize("kind", [ConfluentLoop, KafkaPythonLoop, Streams])
def test_everything_comes_out_once(
    request: pytest.FixtureRequest,
    target: Target,
    kafka: Agent,
    kafka_python: Agent,
    spark: Agent,
    name: str,
    tmp_path: Path,
    kind: type[Application],
) -> None:
    """Each reader of committed records finds each number once: one that looked on, and two that come afterwards."""
    seed = request.config.getoption("kill_seed")
    print(f"--kill-seed {seed}")
    application = kind(target.bootstrap, kafka, name, tmp_path)
    try:
        trial = Trial(application, target, kafka, random.Random(seed))
        for _ in range(request.config.getoption("broker_kills")):
            trial.round({})
        read = trial.finish()
    finally:
        application.stop()
    print(f"killed: {trial.kills}, started: {application.starts}, stalled: {trial.stalls}")
    trial.check(read)
    outputs = [[application.output, index] for index in range(PARTITIONS)]
    kafka_python.call("open_consumer", name=name, partitions=outputs, isolation="read_committed")
    trial.check(kafka_python.call("poll", names=[name], count=len(read))[name])
    trial.check(spark.call("read_batch", QUERY_TIMEOUT_S, topic=application.output, options=READ_COMMITTED))


def test_a_stream_of_spark_takes_everything_once(
    request: pytest.FixtureRequest, target: Target, kafka: Agent, spark: Agent, name: str, tmp_path: Path
) -> None:
    """A stream that is killed as well has each number in its files once."""
    seed = request.config.getoption("kill_seed")
    print(f"--kill-seed {seed}")
    application = ConfluentLoop(target.bootstrap, kafka, name, tmp_path)
    stream = SparkStream(target, application.output, tmp_path)
    try:
        trial = Trial(application, target, kafka, random.Random(seed))
        for _ in range(request.config.getoption("broker_kills")):
            trial.round({"stream": stream.kill_and_start})
        trial.finish()
    finally:
        application.stop()
        stream.stop()
    print(f"killed: {trial.kills}, started: {application.starts}, stalled: {trial.stalls}")
    options: dict[str, Any] = {"startingOffsets": "earliest", **READ_COMMITTED}
    spark.call("stream_to_files", QUERY_TIMEOUT_S, **stream.where, options=options)
    trial.check(spark.call("read_files", QUERY_TIMEOUT_S, files=stream.where["files"]))
