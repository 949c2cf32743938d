"""A Kafka Streams application: repartition and changelog topics, its group, and its state after restarts."""

from __future__ import annotations

import shutil
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from harness.java_clients import streams_driver
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from pathlib import Path

    from harness.agent import Agent, Driver
    from harness.target import Target

PARTITIONS = 3
# Those of orders, orders by customer, customers, and sales by city.
PROCESSED_PARTITIONS = 4 * PARTITIONS
CITIES = ("Praha", "Brno", "Ostrava", "Liberec")
CUSTOMERS = {f"customer-{number}": CITIES[number % len(CITIES)] for number in range(20)}
GUARANTEES = ("at_least_once", "exactly_once_v2")


@pytest.fixture(scope="module", params=[f"kafka-streams-{version}" for version in (KAFKA_4, KAFKA_3)])
def driver(request: pytest.FixtureRequest) -> Driver:
    return streams_driver(request.param)


class Shop:
    """The topics of one application, its instances, and what must come out of it."""

    def __init__(self, client: Agent, name: str, folder: Path, guarantee: str) -> None:
        self._client = client
        self._name = name
        self._folder = folder
        self._guarantee = guarantee
        self._sales: dict[str, list[int]] = {city: [] for city in CITIES}
        for topic in ("customers", "orders", "totals"):
            client.call("create_topic", topic=f"{name}-{topic}", partitions=PARTITIONS)
        # Older than any order: an order is joined with what its customer was at the order's time.
        born_ms = int(time.time() * 1000) - 60_000
        customers = [{"key": customer, "value": city, "timestamp": born_ms} for customer, city in CUSTOMERS.items()]
        client.call("produce", topic=f"{name}-customers", records=customers)
        output = [[f"{name}-totals", partition] for partition in range(PARTITIONS)]
        client.call("open_consumer", name="output", partitions=output)
        self._seen = 0

    def start(self, instance: str) -> None:
        self._client.call(
            "start_instance",
            name=instance,
            application=self._name,
            guarantee=self._guarantee,
            folder=str(self._folder / instance),
            prefix=self._name,
        )

    def settle(self, *instances: str) -> dict[str, int]:
        """Wait until the instances have shared out the work; return how many partitions each has."""
        held: dict[str, int] = self._client.call(
            "settle_instances", timeout_s=90, names=instances, partitions=PROCESSED_PARTITIONS
        )
        return held

    def stop(self, instance: str, *, and_forget: bool = False) -> None:
        """Stop an instance as a user does; `and_forget` takes its stores too, as when a container ends."""
        self._client.call("stop_instance", timeout_s=60, name=instance)
        if and_forget:
            shutil.rmtree(self._folder / instance)

    def sell(self, count: int) -> None:
        orders = []
        for number in range(count):
            customer, amount = f"customer-{number % len(CUSTOMERS)}", number + 1
            orders.append({"key": f"order-{number}", "value": f"{customer} {amount}"})
            self._sales[CUSTOMERS[customer]].append(amount)
        self._client.call("produce", topic=f"{self._name}-orders", records=orders)

    def check_stores(self, *instances: str) -> None:
        """Wait until the stores of the instances hold the sums, and nothing else."""
        totals = {city: sum(sales) for city, sales in self._sales.items()}
        assert self._client.call("await_totals", timeout_s=90, names=instances, totals=totals) == totals

    def check_output(self) -> None:
        """Wait until the output is complete: each sale has changed its city's sum once, in whatever order."""
        count = sum(map(len, self._sales.values()))
        self._client.call("poll", names=["output"], count=count - self._seen)
        self._seen = count
        output = self._client.call("read_all", topic=f"{self._name}-totals")
        assert len(output) == count
        for city, sales in self._sales.items():
            sums = [int(record["value"]) for record in output if record["key"] == city]
            assert sorted(after - before for before, after in pairwise([0, *sums])) == sorted(sales)


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
