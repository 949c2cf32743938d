"""What consumer groups of KIP-848 are tested with: limits, topics that come and go, and members that behave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_group import ConsumerGroup, Heartbeat, HeartbeatResult
from odradek.groups.timers import Now

__all__ = ["ConsumerLimits", "FakeTopic", "FakeTopics", "Member", "topic_id"]


@dataclass(slots=True)
class ConsumerLimits:
    """Settings of groups as numbers."""

    assignors: Sequence[str] = ("uniform", "range")
    max_size: int = 1000
    pattern_refresh_interval_ms: int = 600_000
    session_ms: int = 45_000
    assignment_ms: int = 0

    def session_timeout_ms(self, _: str) -> int:
        return self.session_ms

    def heartbeat_interval_ms(self, _: str) -> int:
        return 5000

    def assignment_interval_ms(self, _: str) -> int:
        return self.assignment_ms


def topic_id(name: str) -> bytes:
    """The id of a topic of these tests."""
    return name.encode().ljust(16, b"_")


@dataclass(slots=True)
class FakeTopic:
    """A topic with partitions and nothing else."""

    name: str
    topic_id: bytes
    partitions: range


@dataclass(slots=True)
class FakeTopics:
    """The topics of a cluster."""

    topics: dict[str, FakeTopic] = field(default_factory=dict)
    revision: int = 0

    @property
    def topics_by_id(self) -> Mapping[bytes, FakeTopic]:
        return {topic.topic_id: topic for topic in self.topics.values()}

    def put(self, name: str, partitions: int) -> None:
        self.revision += 1
        self.topics[name] = FakeTopic(name, topic_id(name), range(partitions))

    def remove(self, name: str) -> None:
        self.revision += 1
        del self.topics[name]


class Member:
    """A consumer: it owns what it was told, gives up at once what it is not told any more, and says so."""

    def __init__(self, member_id: str, group: ConsumerGroup, *, instance_id: str | None = None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.group = group
        self.epoch = 0
        self.owned: Assignment = {}

    def beat(self, now: Now, **told: object) -> HeartbeatResult:
        """One heartbeat, which says what the member owns and besides what is `told`."""
        fields: dict[str, object] = {"owned": self.owned, **told}
        if self.epoch == 0:
            fields = {"rebalance_timeout_ms": 60_000, "topic_names": ["t"], **fields}
        request = Heartbeat(self.member_id, self.epoch, "client", "/127.0.0.1", self.instance_id, **fields)  # type: ignore[arg-type]  # each field by its name
        result = self.group.heartbeat(request, now)
        self.epoch = result.member_epoch
        if result.assigned is not None:
            self.owned = {topic: frozenset(partitions) for topic, partitions in result.assigned.items()}
        return result

    def leave(self, epoch: int = -1) -> HeartbeatResult:
        """The last heartbeat."""
        result = self.group.leave(Heartbeat(self.member_id, epoch, "client", "/127.0.0.1", self.instance_id))
        if not self.group.tables.has_changes:
            self.group.fence([self.member_id])
        return result

    @property
    def partitions(self) -> set[tuple[bytes, int]]:
        """What the member owns."""
        return {(topic, partition) for topic, partitions in self.owned.items() for partition in partitions}
