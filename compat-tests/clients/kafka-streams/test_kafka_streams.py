"""A Kafka Streams application: repartition and changelog topics, its group, and its state after restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.java_clients import streams_driver
from harness.shop import CUSTOMERS, PARTITIONS, Shop
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from pathlib import Path

    from harness.agent import Agent, Driver
    from harness.target import Target

GUARANTEES = ("at_least_once", "exactly_once_v2")


@pytest.fixture(scope="module", params=[f"kafka-streams-{version}" for version in (KAFKA_4, KAFKA_3)])
def driver(request: pytest.FixtureRequest) -> Driver:
    return streams_driver(request.param)


@pytest.mark.feature("streams: join and aggregate")
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_state_comes_back_from_the_changelog(client: Agent, name: str, tmp_path: Path, guarantee: str) -> None:
    shop = Shop(client, name, tmp_path, guarantee)
    shop.sell(200)
    shop.start("first")
    shop.settle("first")
    shop.check_stores("first")
    shop.check_output()

    internal = {topic.removeprefix(f"{name}-") for topic in client.call("list_topics") if topic.startswith(f"{name}-")}
    internal -= {"customers", "orders", "totals"}
    assert sorted(topic.rpartition("-")[2] for topic in internal) == 2 * ["changelog"] + 2 * ["repartition"]
    for topic in internal:
        cleanup = client.call("topic_config", topic=f"{name}-{topic}", key="cleanup.policy")
        assert cleanup == ("compact" if topic.endswith("changelog") else "delete")
        assert client.call("count_partitions", topic=f"{name}-{topic}") == PARTITIONS

    shop.stop("first", and_forget=True)
    shop.start("second")
    shop.settle("second")
    assert client.call("restored", name="second") == {"customers": len(CUSTOMERS), "totals": 200}
    shop.check_stores("second")
    shop.sell(100)
    shop.check_stores("second")
    shop.check_output()


@pytest.mark.feature("streams: instances share the work")
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_instances_come_and_go(client: Agent, name: str, tmp_path: Path, guarantee: str) -> None:
    shop = Shop(client, name, tmp_path, guarantee)
    shop.start("one")
    shop.settle("one")
    shop.sell(50)
    shop.check_stores("one")
    shop.start("two")
    shop.settle("one", "two")
    shop.sell(50)
    shop.check_stores("one", "two")
    shop.stop("one")
    shop.settle("two")
    shop.sell(50)
    shop.check_stores("two")
    shop.check_output()


@pytest.mark.feature("streams: restart of the broker")
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_restart_of_the_broker(client: Agent, target: Target, name: str, tmp_path: Path, guarantee: str) -> None:
    shop = Shop(client, name, tmp_path, guarantee)
    shop.start("only")
    shop.settle("only")
    shop.sell(100)
    shop.check_stores("only")
    target.restart_abruptly()
    shop.sell(100)
    shop.check_stores("only")
    shop.check_output()
