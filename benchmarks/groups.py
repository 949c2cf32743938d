"""The rows of groups that are settled: commits of offsets, and heartbeats. How groups settle is in `rebalances`."""

import itertools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks import frames
from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.load import Requests, drive, heartbeat_check, offset_commit_check
from benchmarks.rows import TURNS, Figures, Meter, Row, RowAtOnce, Steps, cost_of, temporary_topic
from odradek_protocol.errors import Error
from odradek_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

__all__ = ["GroupHeartbeats", "GroupMember", "OffsetCommits", "made_group", "settle"]

RETRY_S = 0.01
TIMEOUT_MS = 60_000
SETTLE_S = 60.0
NOT_YET = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR})

ASSIGNMENT_INTERVAL_S = 1.1
"""A little more than `group.consumer.assignment.interval.ms`: when it is over, those who came last change the epoch."""

HEARTBEAT_VERSION = 1

_numbers = itertools.count(1)


def made_group(client: Client) -> str:
    """The name of a group whose coordinator serves. The names are all of one length."""
    group = f"benchmark-{next(_numbers):06}"
    find = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
    while client.call(find, 4).coordinators[0].error_code in NOT_YET:
        time.sleep(RETRY_S)
    ask = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    while client.call(ask, 8).groups[0].error_code in NOT_YET:
        time.sleep(RETRY_S)
    return group


@dataclass(frozen=True)
class OffsetCommits(Row):
    """Consumers, each with a group name of its own, that commit the offsets of `partitions` partitions one commit at a
    time, again and again.
    """

    commits: int
    partitions: int = 1
    consumers: int = 10

    def steps(self, broker: Broker, share: float) -> Steps:
        each = max(int(self.commits * share) // self.consumers // TURNS, 1)
        meter = Meter(broker)
        with temporary_topic(broker, self.partitions) as topic, Client(broker.port) as client:
            check = offset_commit_check(topic)
            made = [frames.offset_commit(made_group(client), topic, self.partitions) for _ in range(self.consumers)]
            for _ in range(TURNS):
                yield
                exchanges = [Requests(broker.port, itertools.repeat(frame, each), 1, check) for frame in made]
                meter.measure(partial(drive, exchanges))
        return meter.cost_of("request", each * TURNS * self.consumers)


@dataclass(slots=True)
class GroupMember:
    """A member of a consumer group: it owns what it was told, and gives up at once what it was not."""

    group: str
    member_id: str
    topic: str
    client: Client
    epoch: int = 0
    owned: Sequence[TopicPartitions] = field(default_factory=list)
    _is_new: bool = True
    """Whether the group does not know yet what the member owns."""

    def send(self) -> None:
        """Send a heartbeat, and take the reply with `take`."""
        joins = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=TIMEOUT_MS if joins else -1,
            subscribed_topic_names=[self.topic] if joins else None,
            topic_partitions=self.owned if self._is_new else None,
        )
        self.client.send(request, HEARTBEAT_VERSION)

    def take(self) -> None:
        """Take the reply, and what it assigns. RuntimeError when the member is refused."""
        reply: Any = self.client.receive()
        if reply.error_code:
            raise RuntimeError(f"a heartbeat: {Error(reply.error_code).name}")
        self.epoch = reply.member_epoch
        self._is_new = reply.assignment is not None
        if reply.assignment is not None:
            self.owned = reply.assignment.topic_partitions

    def count(self) -> int:
        return sum(len(each.partitions) for each in self.owned)


def settle(members: Sequence[GroupMember], partitions: int) -> None:
    """Have members send heartbeats, all at a time, until they own all partitions in one epoch, each its share."""
    deadline = time.monotonic() + SETTLE_S
    most = -(-partitions // len(members))
    while True:
        for member in members:
            member.send()
        for member in members:
            member.take()
        shares = [member.count() for member in members]
        if len({member.epoch for member in members}) == 1 and sum(shares) == partitions and max(shares) == most:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(members)} members do not settle")


@dataclass(frozen=True)
class GroupHeartbeats(RowAtOnce):
    """Heartbeats that say nothing new, of a settled group of `members` members, which share some connections."""

    members: int
    heartbeats: int
    connections: int = 10

    def run(self, broker: Broker, share: float) -> Figures:
        size = max(int(self.members * share), self.connections)
        each = max(int(self.heartbeats * share) // self.connections, 1)
        with temporary_topic(broker, 10) as topic, ExitStack() as stack:
            clients = [stack.enter_context(Client(broker.port)) for _ in range(self.connections)]
            group = made_group(clients[0])
            members = [
                GroupMember(group, f"member-{number:04}", topic, clients[number % self.connections])
                for number in range(size)
            ]
            settle(members, 10)
            time.sleep(ASSIGNMENT_INTERVAL_S)
            settle(members, 10)
            made = [frames.heartbeat(group, member.member_id, member.epoch) for member in members]
            exchanges = [
                Requests(
                    broker.port,
                    itertools.islice(itertools.cycle(made[number :: self.connections]), each),
                    1,
                    heartbeat_check(),
                )
                for number in range(self.connections)
            ]
            cpu_s = broker.cpu_s()
            seconds = drive(exchanges)
            cpu_s = broker.cpu_s() - cpu_s
        return cost_of("request", each * self.connections, seconds, cpu_s)
