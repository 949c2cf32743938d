"""What a share group consists of, as it is stored: each kind of thing is a `SharePart`, kept in one record."""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

from odradek.groups.assignors import Assignment
from odradek.groups.tables import FIRST_EPOCH, NO_TARGET, Change, GroupEpoch, Tables, TargetEpoch, count

__all__ = [
    "NEW_MEMBER",
    "NamedPartitions",
    "ShareChange",
    "ShareCurrent",
    "ShareMember",
    "SharePart",
    "SharePartValue",
    "ShareTables",
    "TopicStates",
]


class SharePart(enum.Enum):
    """What a record of a share group tells of."""

    EPOCH = enum.auto()
    MEMBER = enum.auto()
    TARGET_EPOCH = enum.auto()
    TARGET = enum.auto()
    CURRENT = enum.auto()
    TOPICS = enum.auto()


class ShareMember(NamedTuple):
    """What a member says about itself."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()


class ShareCurrent(NamedTuple):
    """What a member has. A heartbeat with `previous_epoch` is taken too: the reply that told the newer may be lost."""

    epoch: int
    previous_epoch: int
    assigned: Assignment


NEW_MEMBER = ShareCurrent(0, 0, {})
"""What a member has that has just come."""

NamedPartitions = Mapping[bytes, tuple[str, frozenset[int]]]
"""By topic id the topic's name and partitions of it."""


class TopicStates(NamedTuple):
    """Of which partitions the share coordinator keeps the state of the group.

    It has been asked to begin with those in `initializing`, has begun with those in `initialized`, and has been asked
    to forget the topics in `deleting`, of which the names are known.
    """

    initializing: NamedPartitions = MappingProxyType({})
    initialized: NamedPartitions = MappingProxyType({})
    deleting: Mapping[bytes, str] = MappingProxyType({})

    def with_initializing(self, added: NamedPartitions) -> "TopicStates":
        """The share coordinator is asked to begin with these."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in added}
        return TopicStates(_united(self.initializing, added), self.initialized, deleting)

    def without_initializing(self, removed: NamedPartitions) -> "TopicStates":
        """It could not."""
        return TopicStates(_reduced(self.initializing, removed), self.initialized, self.deleting)

    def with_initialized(self, added: NamedPartitions) -> "TopicStates":
        """It has begun with these."""
        return TopicStates(_reduced(self.initializing, added), _united(self.initialized, added), self.deleting)

    def with_deleting(self, topics: Mapping[bytes, str]) -> "TopicStates":
        """It is asked to forget topics with which it has begun."""
        initialized = {topic_id: each for topic_id, each in self.initialized.items() if topic_id not in topics}
        return TopicStates(self.initializing, initialized, {**self.deleting, **topics})

    def without_topics(self, topic_ids: frozenset[bytes]) -> "TopicStates":
        """There is nothing of these topics any more."""
        return TopicStates(
            {topic_id: each for topic_id, each in self.initializing.items() if topic_id not in topic_ids},
            {topic_id: each for topic_id, each in self.initialized.items() if topic_id not in topic_ids},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids},
        )

    def without_deleting(self, topic_ids: frozenset[bytes]) -> "TopicStates":
        """It has forgotten these topics."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids}
        return TopicStates(self.initializing, self.initialized, deleting)

    def mentions(self, topic_id: bytes) -> bool:
        """Whether anything is said of a topic."""
        return topic_id in self.initializing or topic_id in self.initialized or topic_id in self.deleting


def _united(one: NamedPartitions, other: NamedPartitions) -> NamedPartitions:
    united = dict(one)
    for topic_id, (name, partitions) in other.items():
        united[topic_id] = name, partitions | united.get(topic_id, (name, frozenset()))[1]
    return united


def _reduced(one: NamedPartitions, other: NamedPartitions) -> NamedPartitions:
    left = {}
    for topic_id, (name, partitions) in one.items():
        rest = partitions - other.get(topic_id, (name, frozenset()))[1]
        if rest:
            left[topic_id] = name, rest
    return left


NO_TOPICS = TopicStates()

SharePartValue = GroupEpoch | ShareMember | TargetEpoch | Assignment | ShareCurrent | TopicStates

ShareChange = Change[SharePart, SharePartValue]


class ShareTables(Tables[SharePart, SharePartValue]):
    """What is stored of one group."""

    def __init__(self) -> None:
        self.members: dict[str, ShareMember] = {}
        self.currents: dict[str, ShareCurrent] = {}
        self.targets: dict[str, Assignment] = {}
        self.subscribers: dict[str, int] = {}
        """How many members subscribe to each topic."""
        self.revision = 0
        """Grows with each change to anything but what members have."""
        super().__init__(
            SharePart,
            {SharePart.MEMBER: self.members, SharePart.CURRENT: self.currents, SharePart.TARGET: self.targets},
        )

    @property
    def epoch(self) -> GroupEpoch:
        """The epoch of the group."""
        return self.one(SharePart.EPOCH, FIRST_EPOCH)

    @property
    def target_epoch(self) -> TargetEpoch:
        """The epoch of the target assignment."""
        return self.one(SharePart.TARGET_EPOCH, NO_TARGET)

    @property
    def topics(self) -> TopicStates:
        """The partitions of which there is a state."""
        return self.one(SharePart.TOPICS, NO_TOPICS)

    def current(self, member_id: str) -> ShareCurrent:
        """What a member has."""
        return self.currents.get(member_id, NEW_MEMBER)

    def _replaced(
        self, part: SharePart, _: str, before: SharePartValue | None, value: SharePartValue | None, /
    ) -> None:
        if part is SharePart.CURRENT:
            return
        self.revision += 1
        if part is SharePart.MEMBER:
            self._count(cast(ShareMember | None, before), -1)
            self._count(cast(ShareMember | None, value), 1)

    def _count(self, member: ShareMember | None, by: int) -> None:
        for topic in () if member is None else member.topic_names:
            count(self.subscribers, topic, by)
