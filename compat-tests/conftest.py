"""Fixtures of the compatibility tests, and the options that choose which broker they run against.

pytest compat-tests                              against Odradek, started for the run
pytest compat-tests --target kafka-4.3.1         against Apache Kafka (or set ODRADEK_TARGET)
pytest compat-tests --bootstrap 127.0.0.1:9092   against a broker that already runs
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("harness")

from harness.differences import expect_differences, without_unasked  # noqa: E402 - importable from here on
from harness.features import skip_what_is_missing  # noqa: E402 - likewise
from harness.kafka import KraftKafka, ZooKeeperKafka  # noqa: E402 - likewise
from harness.odradek import Odradek  # noqa: E402 - likewise
from harness.results import Results, tell_places  # noqa: E402 - likewise
from harness.target import External, Target  # noqa: E402 - likewise
from harness.versions import KAFKA_3, KAFKA_4  # noqa: E402 - likewise
from wire.comparison import Comparison  # noqa: E402 - likewise
from wire.schemas import apis  # noqa: E402 - likewise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TARGETS: dict[str, Callable[[Path], Target]] = {
    "odradek": Odradek,
    f"kafka-{KAFKA_4}": KraftKafka,
    f"kafka-{KAFKA_3}": ZooKeeperKafka,
}

# The first test that needs a client or a broker also downloads and compiles it, on the first run on a machine.
_TIMEOUT_S = 900

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=sorted(_TARGETS),
        default=os.environ.get("ODRADEK_TARGET", "odradek"),
        help="the broker that the compatibility tests start and run against",
    )
    parser.addoption("--bootstrap", metavar="HOST:PORT", help="run the compatibility tests against this broker")
    parser.addoption("--results", metavar="FILE", help="write what each client can do to this JSON file")
    parser.addoption("--broker-kills", type=int, default=1, help="how often each proof kills the broker")
    parser.addoption("--kill-seed", type=int, default=time.time_ns() % 10**6, help="of the moments when proofs kill")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "feature(name): the row of the report card that the test belongs to")
    if (results := config.getoption("results")) and not _is_worker(config):
        config.pluginmanager.register(Results(_broker(config), Path(results)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
    skip_what_is_missing(items)
    items[:], unasked = without_unasked(items, _broker(config))
    config.hook.pytest_deselected(items=unasked)
    expect_differences(items, _broker(config))
    tell_places(items)


def _is_worker(config: pytest.Config) -> bool:
    """Tell whether this process runs tests for another one, which gets its reports (pytest-xdist)."""
    return hasattr(config, "workerinput")


def _broker(config: pytest.Config) -> str:
    return str(config.getoption("bootstrap") or config.getoption("target"))


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


@pytest.fixture(scope="session")
def beside_kafka_4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    """An Odradek and a Kafka 4 of their own, to compare."""
    with _beside(KraftKafka, KAFKA_4, tmp_path_factory.mktemp("beside-4")) as comparison:
        yield comparison


@pytest.fixture(scope="session")
def beside_kafka_3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    """An Odradek and a Kafka 3 of their own, to compare what Kafka 4 does not serve any more."""
    with _beside(ZooKeeperKafka, KAFKA_3, tmp_path_factory.mktemp("beside-3")) as comparison:
        yield comparison


@contextmanager
def _beside(kafka_of: Callable[[Path], Target], release: str, folder: Path) -> Iterator[Comparison]:
    for name in ("odradek", "kafka"):
        (folder / name).mkdir()
    kafka = kafka_of(folder / "kafka")
    try:
        odradek = Odradek(folder / "odradek")
        try:
            yield Comparison(odradek.bootstrap, kafka.bootstrap, apis(release))
        finally:
            odradek.stop()
    finally:
        kafka.stop()


@pytest.fixture
def name() -> str:
    """A name for the topic and the group of one test."""
    return f"compat-{os.getpid()}-{next(_numbers)}"
