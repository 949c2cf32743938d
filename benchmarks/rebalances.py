"""The rows of groups that settle anew: members come one after another, by either protocol, each on its connection.

The clients do not wait for the time of their next heartbeat, so what is measured is work. It begins when a member asks
to join, and ends when all members have what they are to have.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks import groups, members
from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.groups import GroupMember, made_group
from benchmarks.members import Member
from benchmarks.rows import Figures, RowAtOnce, temporary_topic

__all__ = ["ClassicRebalance", "ConsumerRebalance"]

ASSIGNMENT_BYTES = 50
"""What the assignment of a consumer of the classic protocol takes without its partitions, about."""
PARTITION_BYTES = 4

AT_ONCE = ("consumer.assignment.interval.ms", "0")
"""How long a group of KIP-848 goes by an assignment before it makes another: a wait that is no work."""


@dataclass(frozen=True)
class ConsumerRebalance(RowAtOnce):
    """How long `members` members of a group of KIP-848 take to share `partitions` partitions anew when one more comes,
    on the average of the last `newcomers` ones.
    """

    members: int
    partitions: int
    newcomers: int = 10

    def run(self, broker: Broker, share: float) -> Figures:
        newcomers = max(int(self.newcomers * share), 1)
        with temporary_topic(broker, self.partitions) as topic, ExitStack() as stack:
            clients = [stack.enter_context(Client(broker.port)) for _ in range(self.members)]
            group = made_group(clients[0])
            clients[0].alter_group(group, *AT_ONCE)
            everybody = [GroupMember(group, f"member-{number}", topic, client) for number, client in enumerate(clients)]
            groups.settle(everybody[:-newcomers], self.partitions)

            def come(number: int) -> None:
                groups.settle(everybody[: self.members - newcomers + number + 1], self.partitions)

            return _cost(broker, newcomers, come)


@dataclass(frozen=True)
class ClassicRebalance(RowAtOnce):
    """The same by the classic protocol, where all members join again, and the first one makes the assignments."""

    members: int
    partitions: int
    newcomers: int = 10

    def run(self, broker: Broker, share: float) -> Figures:
        newcomers = max(int(self.newcomers * share), 1)
        size = ASSIGNMENT_BYTES + PARTITION_BYTES * self.partitions // self.members
        with ExitStack() as stack:
            clients = [stack.enter_context(Client(broker.port)) for _ in range(self.members)]
            group = made_group(clients[0])
            everybody = [Member(client, group, size) for client in clients]
            present = everybody[:-newcomers]
            for member in present:
                member.prepare()
            members.settle(present)

            def come(number: int) -> None:
                newcomer = everybody[self.members - newcomers + number]
                newcomer.prepare()
                newcomer.join()
                while not present[0].has_to_join():
                    """The broker has not looked at the newcomer yet."""
                present.append(newcomer)
                members.settle(present)

            return _cost(broker, newcomers, come)


def _cost(broker: Broker, count: int, come: Callable[[int], None]) -> Figures:
    """What it takes until a newcomer is in, `come(0)` and so on."""
    cpu_s, start_s = broker.cpu_s(), time.perf_counter()
    for number in range(count):
        come(number)
    seconds, cpu_s = time.perf_counter() - start_s, broker.cpu_s() - cpu_s
    return {"rebalance_ms": seconds / count * 1e3, "cpu_ms_per_rebalance": cpu_s / count * 1e3}
