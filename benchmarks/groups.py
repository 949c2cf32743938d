"""The rows of groups: commits of offsets, heartbeats in a large group, and how long a group takes to settle."""

import itertools
import time
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.rows import Figures, Row, cost_of, made_topic
from odradek_protocol.errors import Error
from odradek_protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from odradek_protocol.internal.versioned import encode_versioned
from odradek_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

__all__ = ["ClassicRebalance", "ConsumerRebalance", "GroupHeartbeats", "OffsetCommits"]

RETRY_S = 0.01
TIMEOUT_MS = 60_000
SETTLE_S = 60.0
NOT_YET = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR})

_numbers = itertools.count(1)


def made_group(client: Client) -> str:
    """The name of a group whose coordinator is found."""
    group = f"benchmark-{next(_numbers):06}"
    find = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
    while client.call(find, 4).coordinators[0].error_code in NOT_YET:
        time.sleep(RETRY_S)
    return group


def call(client: Client, body: object, version: int) -> Any:
    """A request of a member, again while the coordinator is not there yet. RuntimeError when it is refused."""
    while (reply := client.call(body, version)).error_code in NOT_YET:
        time.sleep(RETRY_S)
    if reply.error_code not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
        raise RuntimeError(f"{type(body).__name__}: {Error(reply.error_code).name}")
    return reply


@dataclass(frozen=True)
class OffsetCommits(Row):
    """A consumer of no group that commits the offsets of `partitions` partitions, again and again."""

    commits: int
    partitions: int = 1

    def run(self, broker: Broker, share: float) -> Figures:
        count = max(int(self.commits * share), 1)
        with made_topic(broker, self.partitions) as topic, Client(broker.port) as client:
            rows = [
                OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
                for index in range(self.partitions)
            ]
            topics = [OffsetCommitRequestTopic(name=topic, partitions=rows)]
            request = OffsetCommitRequest(group_id=made_group(client), topics=topics)
            while client.call(request, 8).topics[0].partitions[0].error_code in NOT_YET:
                time.sleep(RETRY_S)
            cpu_s, start_s = broker.cpu_s(), time.perf_counter()
            for _ in range(count):
                code = client.call(request, 8).topics[0].partitions[0].error_code
                if code:
                    raise RuntimeError(f"committing: {Error(code).name}")
            seconds, cpu_s = time.perf_counter() - start_s, broker.cpu_s() - cpu_s
        return cost_of("request", count, seconds, cpu_s)


@dataclass(slots=True)
class _Member:
    """A member of a consumer group: it owns what it was told, and gives up at once what it was not."""

    group: str
    member_id: str
    topic: str
    epoch: int = 0
    owned: Sequence[TopicPartitions] = field(default_factory=list)

    def beat(self, client: Client, *, plain: bool = False) -> None:
        joins = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=TIMEOUT_MS if joins else -1,
            subscribed_topic_names=[self.topic] if joins else None,
            topic_partitions=None if plain else self.owned,
        )
        reply = call(client, request, 1)
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.owned = reply.assignment.topic_partitions

    def count(self) -> int:
        return sum(len(each.partitions) for each in self.owned)


def settle(members: Sequence[_Member], client: Client, partitions: int) -> None:
    """Have members send heartbeats, in turn, until they own all partitions in one epoch, each its share."""
    deadline = time.monotonic() + SETTLE_S
    most = -(-partitions // len(members))
    while True:
        for member in members:
            member.beat(client)
        shares = [member.count() for member in members]
        if len({member.epoch for member in members}) == 1 and sum(shares) == partitions and max(shares) == most:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(members)} members do not settle")


@dataclass(frozen=True)
class GroupHeartbeats(Row):
    """Heartbeats that say nothing new, of a settled group of `members` members."""

    members: int
    heartbeats: int

    def run(self, broker: Broker, share: float) -> Figures:
        count = max(int(self.heartbeats * share), 1)
        size = max(int(self.members * share), 2)
        with made_topic(broker, 10) as topic, Client(broker.port) as client:
            group = made_group(client)
            members = [_Member(group, f"member-{number}", topic) for number in range(size)]
            settle(members, client, 10)
            cpu_s, start_s = broker.cpu_s(), time.perf_counter()
            for member in itertools.islice(itertools.cycle(members), count):
                member.beat(client, plain=True)
            seconds, cpu_s = time.perf_counter() - start_s, broker.cpu_s() - cpu_s
        return cost_of("request", count, seconds, cpu_s)


@dataclass(frozen=True)
class _Rebalance(Row):
    """How long `members` members take to share `partitions` partitions anew once the last of them has come."""

    members: int
    partitions: int

    def run(self, broker: Broker, share: float) -> Figures:
        partitions = max(int(self.partitions * share), self.members)
        with made_topic(broker, partitions) as topic:
            return {"rebalance_ms": self.measure(broker, topic, partitions) * 1e3}

    @abstractmethod
    def measure(self, broker: Broker, topic: str, partitions: int) -> float:
        """The seconds from when the last member comes until every member has its share."""


class ConsumerRebalance(_Rebalance):
    """By KIP-848, with members that send a heartbeat as soon as it is their turn."""

    def measure(self, broker: Broker, topic: str, partitions: int) -> float:
        with Client(broker.port) as client:
            group = made_group(client)
            members = [_Member(group, f"member-{number}", topic) for number in range(self.members)]
            settle(members[:-1], client, partitions)
            start_s = time.perf_counter()
            settle(members, client, partitions)
            return time.perf_counter() - start_s


class ClassicRebalance(_Rebalance):
    """By the classic protocol: every member joins, and the leader assigns."""

    def measure(self, broker: Broker, topic: str, partitions: int) -> float:
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=[topic]), 0)
        with ExitStack() as stack, ThreadPoolExecutor(self.members) as threads:
            clients = [stack.enter_context(Client(broker.port)) for _ in range(self.members)]
            group = made_group(clients[0])

            def join(client: Client, member_id: str) -> Any:
                request = JoinGroupRequest(
                    group_id=group,
                    session_timeout_ms=TIMEOUT_MS,
                    rebalance_timeout_ms=TIMEOUT_MS,
                    member_id=member_id,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
                )
                return call(client, request, 5)

            def sync(client: Client, joined: Any) -> Any:
                request = SyncGroupRequest(
                    group_id=group,
                    generation_id=joined.generation_id,
                    member_id=joined.member_id,
                    assignments=_assignments(topic, joined.members, partitions),
                )
                return call(client, request, 3)

            ids = [join(client, "").member_id for client in clients]
            list(threads.map(join, clients, ids))  # the first generation waits for members by itself
            start_s = time.perf_counter()
            joined = list(threads.map(join, clients, ids))
            list(threads.map(sync, clients, joined))
            return time.perf_counter() - start_s


def _assignments(topic: str, members: Sequence[Any], partitions: int) -> list[SyncGroupRequestAssignment]:
    """What the leader, who alone is told the members, gives each of them."""
    return [
        SyncGroupRequestAssignment(
            member_id=member.member_id,
            assignment=encode_versioned(
                ConsumerProtocolAssignment(
                    assigned_partitions=[
                        TopicPartition(topic=topic, partitions=range(number, partitions, len(members)))
                    ]
                ),
                0,
            ),
        )
        for number, member in enumerate(members)
    ]
