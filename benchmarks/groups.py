"""The rows of groups: commits of offsets, heartbeats in a large group, and how long a group takes to settle."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.rows import Figures, Row, cost_of, temporary_topic
from odradek_protocol.errors import Error
from odradek_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

__all__ = ["ConsumerRebalance", "GroupHeartbeats", "OffsetCommits"]

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
        with temporary_topic(broker, self.partitions) as topic, Client(broker.port) as client:
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
        with temporary_topic(broker, 10) as topic, Client(broker.port) as client:
            group = made_group(client)
            members = [_Member(group, f"member-{number}", topic) for number in range(size)]
            settle(members, client, 10)
            cpu_s, start_s = broker.cpu_s(), time.perf_counter()
            for member in itertools.islice(itertools.cycle(members), count):
                member.beat(client, plain=True)
            seconds, cpu_s = time.perf_counter() - start_s, broker.cpu_s() - cpu_s
        return cost_of("request", count, seconds, cpu_s)


@dataclass(frozen=True)
class ConsumerRebalance(Row):
    """How long `members` members take to share `partitions` partitions anew once the last of them has come.

    Each sends a heartbeat as soon as it is its turn.
    """

    members: int
    partitions: int

    def run(self, broker: Broker, share: float) -> Figures:
        partitions = max(int(self.partitions * share), self.members)
        with temporary_topic(broker, partitions) as topic, Client(broker.port) as client:
            group = made_group(client)
            members = [_Member(group, f"member-{number}", topic) for number in range(self.members)]
            settle(members[:-1], client, partitions)
            start_s = time.perf_counter()
            settle(members, client, partitions)
            return {"rebalance_ms": (time.perf_counter() - start_s) * 1e3}
