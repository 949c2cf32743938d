"""The examples of the README, run as they stand there but for the address, and for where Spark takes its jars from."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness.environments import python_with
from harness.jars import jars
from harness.versions import SPARK

from odradek.handlers.registry import load_all, served

if TYPE_CHECKING:
    from harness.target import Target

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)

RUN_TIMEOUT_S = 600


def example(containing: str) -> str:
    [text] = [one for one in EXAMPLES if containing in one]
    return text


def run(python: Path, text: str, folder: Path) -> str:
    """Run an example in an interpreter; what it printed."""
    script = folder / "example.py"
    script.write_text(text)
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(python)}
    ended = subprocess.run(
        [python, script],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def events(target: Target, tmp_path: Path, name: str) -> str:
    """What the kafka-python example printed; its topic is `name` instead of "events"."""
    text = example("KafkaProducer").replace("127.0.0.1:9092", target.bootstrap).replace('"events"', f'"{name}"')
    return run(python_with("kafka-python-3"), text, tmp_path)


def test_kafka_python_example(events: str) -> None:
    expected = [f"{number} b'k{number % 3}' b'event {number}'" for number in range(10)]
    assert events.splitlines() == expected


def test_pyspark_example(target: Target, tmp_path: Path, name: str, events: str) -> None:
    assert len(events.splitlines()) == 10
    text = example("SparkSession").replace("127.0.0.1:9092", target.bootstrap).replace('"events"', f'"{name}"')
    packages = f'"spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}"'
    assert packages in text
    text = text.replace(packages, f'"spark.driver.extraClassPath", "{jars(f"spark-{SPARK}")}/*"')
    rows = re.findall(
        r"^\|\s*(\d+)\|\s*(k\d)\|\s*(event \d)\|", run(python_with("pyspark"), text, tmp_path), re.MULTILINE
    )
    assert rows == [(str(number), f"k{number % 3}", f"event {number}") for number in range(10)]


def test_broker_in_a_test(capsys: pytest.CaptureFixture[str]) -> None:
    exec(example("odradek.testing"), {})
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", capsys.readouterr().out)


def test_the_table_of_apis_says_what_is_served() -> None:
    load_all()
    text = README.read_text()
    told = dict(re.findall(r"\| ([A-Z][A-Za-z]+) \| (\d+(?:-\d+)?) (?=\|)", text))
    assert told == {api.name: f"{api.first}-{api.last}" if api.last > api.first else f"{api.first}" for api in served()}
    assert f"{len(told)} API keys" in text
