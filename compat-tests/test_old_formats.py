"""Clients that know record formats 0 and 1 only, unmodified: they read what they and newer ones wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness.clients import client_of, python_driver
from harness.java_clients import java_program
from harness.versions import OLD_JAVA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

# Which release of Kafka a client is told that it talks to: formats 0, 0 and 1.
BROKERS = [(0, 8, 2), (0, 9, 0), (0, 10, 2)]
OLD_DRIVER = "old_formats_driver.py"
OLD_CLIENT = Path(__file__).parent / "harness" / "OldClient.java"
CODECS = [None, "gzip", "snappy", "lz4"]

RECORDS = [{"key": f"k{number}", "value": f"value {number} " + "again and " * 30} for number in range(50)]
RECORDS += [{"key": "tombstone", "value": None}, {"key": None, "value": ""}]


def numbered(records: list[dict[str, Any]], start: int = 0) -> list[dict[str, Any]]:
    """Records as they are read, from their offset on."""
    return [{"offset": offset, **record} for offset, record in enumerate(records, start)][start:]


@pytest.fixture(scope="module")
def modern(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    driver = python_driver("kafka-python-3", "kafka-python")
    with client_of(driver, target, tmp_path_factory.mktemp("modern")) as agent:
        yield agent


@pytest.fixture(scope="module", params=["kafka-python-1.4", "confluent-kafka"])
def old(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    driver = python_driver(request.param, request.param.removesuffix("-1.4"), OLD_DRIVER)
    with client_of(driver, target, tmp_path_factory.mktemp("old")) as agent:
        yield agent


def read_by_modern(modern: Agent, topic: str) -> list[dict[str, Any]]:
    """What a consumer of today reads."""
    return [{field: one[field] for field in ("offset", "key", "value")} for one in modern.call("read_all", topic=topic)]


@pytest.mark.parametrize("broker", BROKERS, ids=str)
@pytest.mark.parametrize("codec", CODECS)
def test_t29_what_an_old_client_writes_all_read(
    old: Agent, modern: Agent, name: str, broker: tuple[int, ...], codec: str | None
) -> None:
    modern.call("create_topic", topic=name)
    offsets = old.call("produce", topic=name, records=RECORDS, codec=codec, broker=broker)
    assert offsets == list(range(len(RECORDS)))
    assert read_by_modern(modern, name) == numbered(RECORDS)
    assert old.call("read", topic=name, count=len(RECORDS), broker=broker) == numbered(RECORDS)


@pytest.mark.parametrize("broker", BROKERS, ids=str)
@pytest.mark.parametrize("codec", CODECS)
def test_what_a_new_client_writes_an_old_one_reads(
    old: Agent, modern: Agent, name: str, broker: tuple[int, ...], codec: str | None
) -> None:
    modern.call("create_topic", topic=name)
    records = [{**record, "headers": [["h", "x"]]} for record in RECORDS]
    modern.call("produce", topic=name, records=records, compression=codec)
    assert old.call("read", topic=name, count=len(RECORDS), broker=broker) == numbered(RECORDS)
    rest = old.call("read", topic=name, count=len(RECORDS) - 7, broker=broker, offset=7)
    assert rest == numbered(RECORDS)[7:]


@pytest.mark.parametrize("broker", [(0, 9, 0), (0, 10, 2)], ids=str)
def test_groups_of_old_clients(
    target: Target, modern: Agent, name: str, broker: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    modern.call("create_topic", topic=name)
    modern.call("produce", topic=name, records=RECORDS)
    folder = tmp_path_factory.mktemp("group")
    with client_of(python_driver("kafka-python-1.4", "kafka-python", OLD_DRIVER), target, folder) as old:
        committed = old.call("read_in_group", topic=name, group=name, count=len(RECORDS), broker=broker, timeout_s=90)
    assert committed == len(RECORDS)


@pytest.mark.parametrize("release", OLD_JAVA)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_java_clients_of_long_ago(target: Target, modern: Agent, name: str, release: str, codec: str) -> None:
    program = java_program(f"kafka-clients-{release}", [OLD_CLIENT], "OldClient")

    def run(*arguments: str) -> list[str]:
        done = subprocess.run([*program.command, *arguments], check=True, capture_output=True, text=True, timeout=120)
        return done.stdout.splitlines()

    modern.call("create_topic", topic=name)
    values = [f"{number}-" + "again" * 50 for number in range(20)] + ["-"]
    assert run("produce", target.bootstrap, name, codec, *values) == [str(offset) for offset in range(len(values))]
    compression = None if codec == "none" else codec
    modern.call("produce", topic=name, records=[{"key": "n", "value": "new"}], compression=compression)
    expected = [f"{offset} {value[0]} {'null' if value == '-' else value}" for offset, value in enumerate(values)]
    expected.append(f"{len(values)} n new")
    assert run("read", target.bootstrap, name, "0", str(len(expected))) == expected
    assert run("read", target.bootstrap, name, "5", str(len(expected) - 5)) == expected[5:]
    assert read_by_modern(modern, name)[:2] == [
        {"offset": offset, "key": value[0], "value": value} for offset, value in enumerate(values[:2])
    ]
