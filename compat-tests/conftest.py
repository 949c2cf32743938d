"""Fixtures of the compatibility tests, and the options that choose which broker they run against.

pytest compat-tests                              against Odradek, started for the run
pytest compat-tests --target kafka-4.3.1         against Apache Kafka (or set ODRADEK_TARGET)
pytest compat-tests --bootstrap 127.0.0.1:9092   against a broker that already runs
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("harness")

from harness.kafka import KraftKafka, ZooKeeperKafka  # noqa: E402 - importable from here on
from harness.odradek import Odradek  # noqa: E402 - likewise
from harness.target import External, Target  # noqa: E402 - likewise
from harness.versions import KAFKA_3, KAFKA_4  # noqa: E402 - likewise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TARGETS: dict[str, Callable[[Path], Target]] = {
    "odradek": Odradek,
    f"kafka-{KAFKA_4}": KraftKafka,
    f"kafka-{KAFKA_3}": ZooKeeperKafka,
}

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=sorted(_TARGETS),
        default=os.environ.get("ODRADEK_TARGET", "odradek"),
        help="the broker that the compatibility tests start and run against",
    )
    parser.addoption("--bootstrap", metavar="HOST:PORT", help="run the compatibility tests against this broker")


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The broker of this run."""
    bootstrap = request.config.getoption("bootstrap")
    if bootstrap:
        yield External(bootstrap)
        return
    broker = _TARGETS[request.config.getoption("target")](tmp_path_factory.mktemp("target"))
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def name() -> str:
    """A name for the topic and the group of one test."""
    return f"compat-{os.getpid()}-{next(_numbers)}"
