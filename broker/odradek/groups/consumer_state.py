"""What a consumer group of KIP-848 consists of, as it is stored: each kind of thing is a `Part`, kept in one record.

Times are wall clock milliseconds, timeouts the protocol's milliseconds.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple

from odradek.groups.assignors import Assignment
from odradek.groups.tables import Change, GroupEpoch, TargetEpoch

__all__ = [
    "LEAVE_EPOCH",
    "LEAVE_STATIC_EPOCH",
    "NEW_MEMBER",
    "ClassicMember",
    "ConsumerChange",
    "CurrentAssignment",
    "MemberInfo",
    "MemberState",
    "Owned",
    "Part",
    "PartValue",
    "ResolvedPattern",
]

LEAVE_EPOCH = -1
"""The member epoch that says that a member leaves."""

LEAVE_STATIC_EPOCH = -2
"""The member epoch of a static member that leaves and will be back."""

Owned = Mapping[bytes, Mapping[int, int]]
"""By topic id the partitions of a member, each with the member epoch in which it was assigned (KIP-1251)."""


class Part(enum.Enum):
    """What a record of a consumer group tells of."""

    EPOCH = enum.auto()
    MEMBER = enum.auto()
    PATTERN = enum.auto()
    TARGET_EPOCH = enum.auto()
    TARGET = enum.auto()
    CURRENT = enum.auto()
    PARTITION_METADATA = enum.auto()
    """What brokers before 4.1 stored of topics; of no use any more, and deleted with the group."""


class MemberState(enum.IntEnum):
    """How far a member has come on its way to its target; the values are stored."""

    STABLE = 1
    """It has what it is to have, in its epoch."""
    UNREVOKED_PARTITIONS = 2
    """It has to give up partitions, and stays in its epoch until it says that it has."""
    UNRELEASED_PARTITIONS = 3
    """It is in the epoch of the target and waits for partitions that others still have."""
    UNKNOWN = 127
    """A state of a newer broker: the member has to start again."""


class ResolvedPattern(NamedTuple):
    """The topics that a pattern stands for, since when, and the revision of the topics that were looked through."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ClassicMember(NamedTuple):
    """What a member that speaks the classic protocol says with JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberInfo(NamedTuple):
    """What a member says about itself; `classic` is None for one that speaks the consumer protocol."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_pattern: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMember | None = None


class CurrentAssignment(NamedTuple):
    """What a member owns: what it may consume, and what it has been asked to give up.

    A heartbeat with `previous_epoch` is taken as well as one with `epoch`: the reply that told the newer may be lost.
    """

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Owned
    revoking: Owned

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether there is nothing to do for this target."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which a partition was assigned to the member; None when the member does not have it."""
        found = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if found is None else found


NEW_MEMBER = CurrentAssignment(0, 0, MemberState.STABLE, {}, {})
"""What a member owns that has just come."""

PartValue = GroupEpoch | MemberInfo | ResolvedPattern | TargetEpoch | Assignment | CurrentAssignment

ConsumerChange = Change[Part, PartValue]
