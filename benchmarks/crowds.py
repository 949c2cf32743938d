"""Rows of very many clients: what a connection costs, and a consumer. Each has a broker of its own, which is empty."""

import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers import Broker, Settings
from benchmarks.client import Client
from benchmarks.members import Member, settle
from benchmarks.rows import Figures, RowAtOnce, cost_of

FILES_BESIDE = 500
"""What this process and a broker have open besides connections, at most."""

ALL_AT_ONCE = {"group.initial.rebalance.delay.ms": "1000"}
"""Kafka's default is 3 s: the first generation of a group has all that come meanwhile."""


@contextmanager
def _broker_of_its_own(broker: Broker, settings: Settings) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="odradek-benchmark-") as folder:
        started = broker.another(Path(folder), settings)
        try:
            yield started
        finally:
            started.stop()


@dataclass(frozen=True)
class Connections(RowAtOnce):
    """Connections that ask for Metadata once, and then stay."""

    connections: int
    idle_s: float = 2.0

    def run(self, broker: Broker, share: float) -> Figures:  # noqa: ARG002 - fewer would be another row
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed < self.connections + FILES_BESIDE:
            raise RuntimeError(f"a process may have {allowed} files open here, which is too few")
        with _broker_of_its_own(broker, {}) as started, ExitStack() as stack:
            memory_mb, cpu_s = started.memory_mb(), started.cpu_s()
            for _ in range(self.connections):
                stack.enter_context(Client(started.port)).metadata()
            cpu_s = started.cpu_s() - cpu_s
            memory_mb = started.memory_mb() - memory_mb
            idle_cpu_s = started.cpu_s()
            time.sleep(self.idle_s)
            idle_cpu_s = started.cpu_s() - idle_cpu_s
        return {
            "cpu_us_per_connection": cpu_s / self.connections * 1e6,
            "memory_kb_per_connection": memory_mb / self.connections * 1e3,
            "cpu_ms_per_s": idle_cpu_s / self.idle_s * 1e3,
        }


@dataclass(frozen=True)
class Consumers(RowAtOnce):
    """Groups of consumers, each with a connection: all join, then send heartbeats and commits a few times."""

    groups: int
    members: int
    beats: int = 5

    def run(self, broker: Broker, share: float) -> Figures:  # noqa: ARG002 - fewer would be another row
        count = self.groups * self.members
        with _broker_of_its_own(broker, ALL_AT_ONCE) as started, ExitStack() as stack:
            with Client(started.port) as client:
                client.create_topic("benchmark", 1, {})
                Member(client, "the first group waits for __consumer_offsets").prepare()
            memory_mb, cpu_s = started.memory_mb(), started.cpu_s()
            members = [
                Member(stack.enter_context(Client(started.port)), f"group-{number % self.groups}")
                for number in range(count)
            ]
            for member in members:
                member.prepare()
            settle(members)
            joined_cpu_s = started.cpu_s()
            memory_mb = started.memory_mb() - memory_mb
            began = time.perf_counter()
            for number in range(self.beats):
                _beat(members, number)
            seconds = time.perf_counter() - began
            beating_cpu_s = started.cpu_s() - joined_cpu_s
        return {
            "cpu_us_per_consumer": (joined_cpu_s - cpu_s) / count * 1e6,
            "memory_kb_per_consumer": memory_mb / count * 1e3,
            **cost_of("request", 2 * self.beats * count, seconds, beating_cpu_s),
        }


def _beat(members: list[Member], offset: int) -> None:
    """A heartbeat and a commit of every member."""
    for member in members:
        member.heartbeat()
    for member in members:
        member.take()
    for member in members:
        member.commit("benchmark", offset)
    for member in members:
        member.take_commit()
