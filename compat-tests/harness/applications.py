"""Applications that read a topic and write another exactly once, each in instances that can be killed.

An application is fed numbers, one record each, and the numbers can be told from its output: each is there once if, and
only if, each was processed once.
"""

from __future__ import annotations

import signal
import time
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from harness.environments import python_with
from harness.features import CLIENTS
from harness.java_clients import streams_loop
from harness.process import Child
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from harness.agent import Agent

PARTITIONS = 3
_PRODUCE_TIMEOUT_S = 90
_DUMP_S = 5

Record = dict[str, Any]


class Application(ABC):
    """Some instances of one program, which share the partitions of `source` and write to `output`."""

    INSTANCES: ClassVar[int] = 2
    DUMPS_ON: ClassVar[signal.Signals]
    """What makes the program write to its output where its threads are."""

    def __init__(self, bootstrap: str, kafka: Agent, name: str, folder: Path) -> None:
        self.source = f"{name}-{self.SOURCE}"
        self.output = f"{name}-{self.OUTPUT}"
        self.name = name
        self.starts = 0
        self._bootstrap = bootstrap
        self._kafka = kafka
        self._folder = folder
        self._instances: dict[int, Child] = {}
        for topic in (self.source, self.output):
            kafka.call("create_topic", topic=topic, partitions=PARTITIONS)

    SOURCE: ClassVar[str]
    OUTPUT: ClassVar[str]

    @abstractmethod
    def command(self, instance: int) -> Sequence[str | Path]:
        """Return the command of an instance."""

    @abstractmethod
    def record_of(self, number: int) -> Record:
        """Return the record that stands for a number."""

    @abstractmethod
    def numbers_in(self, output: Iterable[Record]) -> list[int]:
        """Return the numbers that the output was made of, as often as they are in it."""

    def feed(self, numbers: Iterable[int]) -> None:
        """Write the numbers to the source, each once."""
        records = [{"partition": number % PARTITIONS, **self.record_of(number)} for number in numbers]
        self._kafka.call("produce", _PRODUCE_TIMEOUT_S, topic=self.source, records=records, idempotent=True)

    def start(self) -> None:
        """Start the instances that do not run: those that were killed, and those that have ended by themselves."""
        for instance in range(self.INSTANCES):
            child = self._instances.get(instance)
            if child is None or child.ended(0):
                self.starts += 1
                name = f"{self.name}-{instance}-start-{self.starts}"
                self._instances[instance] = Child(name, self.command(instance), self._folder)

    def kill(self, instance: int) -> None:
        """End an instance by SIGKILL."""
        self._instances[instance].kill()

    def dump_and_kill(self) -> None:
        """Have each instance say where it stands, and end it."""
        for child in self._instances.values():
            child.signal(self.DUMPS_ON)
        for child in self._instances.values():
            child.ended(_DUMP_S)
            child.kill()

    def stop(self) -> None:
        """End all instances."""
        for child in self._instances.values():
            child.kill()


class CopyLoop(Application):
    """A loop of a client library in Python: consume, transform, produce and commit the offsets in one transaction."""

    SOURCE = "source"
    OUTPUT = "copy"
    DUMPS_ON = signal.SIGABRT
    ENVIRONMENT: ClassVar[str]
    LIBRARY: ClassVar[str]

    def command(self, instance: int) -> Sequence[str | Path]:
        loop = CLIENTS / self.LIBRARY / "copy_loop.py"
        python = python_with(self.ENVIRONMENT)
        where = [self._bootstrap, self.source, self.output, self.name, str(instance)]
        return [python, "-X", "faulthandler", loop, *where]

    def record_of(self, number: int) -> Record:
        return {"key": f"key {number % 20}", "value": f"{number}"}

    def numbers_in(self, output: Iterable[Record]) -> list[int]:
        return [int(record["value"].removeprefix("copy of ")) for record in output]


class ConfluentLoop(CopyLoop):
    """The loop with confluent-kafka."""

    ENVIRONMENT = LIBRARY = "confluent-kafka"


class KafkaPythonLoop(CopyLoop):
    """The loop with kafka-python."""

    ENVIRONMENT = "kafka-python-3"
    LIBRARY = "kafka-python"


class Streams(Application):
    """The application of `clients/kafka-streams` with `exactly_once_v2`: sums of orders, by their customers' cities.

    A number is the amount of an order, so that the sums of a city tell which orders were added, in whatever order.
    """

    SOURCE = "orders"
    OUTPUT = "totals"
    DUMPS_ON = signal.SIGQUIT
    CUSTOMERS: ClassVar[int] = 20
    CITIES: ClassVar[int] = 4

    def __init__(self, bootstrap: str, kafka: Agent, name: str, folder: Path) -> None:
        super().__init__(bootstrap, kafka, name, folder)
        kafka.call("create_topic", topic=f"{name}-customers", partitions=PARTITIONS)
        # Older than any order: an order is joined with what its customer was at the order's time. They lie in each
        # partition, as the application's partitioner is not that of the client that feeds it.
        born_ms = int(time.time() * 1000) - 60_000
        cities = [
            {
                "partition": index,
                "key": f"customer-{number}",
                "value": f"city-{number % self.CITIES}",
                "timestamp": born_ms,
            }
            for index in range(PARTITIONS)
            for number in range(self.CUSTOMERS)
        ]
        kafka.call("produce", topic=f"{name}-customers", records=cities)

    def command(self, instance: int) -> Sequence[str | Path]:
        driver = streams_loop(f"kafka-streams-{KAFKA_4}")
        return [*driver.command, self._bootstrap, self.name, self._folder / f"state-{instance}", self.name]

    def record_of(self, number: int) -> Record:
        return {"key": f"order-{number}", "value": f"customer-{number % self.CUSTOMERS} {number}"}

    def numbers_in(self, output: Iterable[Record]) -> list[int]:
        sums: dict[str, list[int]] = {}
        for record in output:
            sums.setdefault(record["key"], [0]).append(int(record["value"]))
        return [after - before for of_city in sums.values() for before, after in pairwise(of_city)]
