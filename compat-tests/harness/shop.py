"""A shop whose sales a Kafka Streams application adds up: its topics, its instances, and what must come out."""

from __future__ import annotations

import shutil
import time
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from harness.agent import Agent

PARTITIONS = 3
# Those of orders, orders by customer, customers, and sales by city.
PROCESSED_PARTITIONS = 4 * PARTITIONS
CITIES = ("Praha", "Brno", "Ostrava", "Liberec")
CUSTOMERS = {f"customer-{number}": CITIES[number % len(CITIES)] for number in range(20)}


class Shop:
    """The topics of one application, its instances, and what must come out of it."""

    def __init__(self, client: Agent, name: str, folder: Path, guarantee: str, protocol: str = "classic") -> None:
        self._client = client
        self._protocol = protocol
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

    def start(self, instance: str, *, on: Agent | None = None) -> None:
        """Start an instance, in the process of another agent if one is given."""
        (on or self._client).call(
            "start_instance",
            name=instance,
            application=self._name,
            guarantee=self._guarantee,
            folder=str(self._folder / instance),
            prefix=self._name,
            protocol=self._protocol,
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
