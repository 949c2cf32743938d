"""A share group as a state machine: who is in it, and which partitions each member reads (KIP-932).

    group epoch      grows when members, their topics or the partitions of these change, and asks for a new target
    target epoch     the group epoch that the target assignment was made for
    member epoch     the target that a member was told

Members share partitions, so there is nothing to give up before another gets it: a member goes to a new target with its
next heartbeat. A group is "Empty" without members, else "Stable".

Rules:

- It has no clock, no files and no I/O: `Now` comes in, and `deadline` says when to ask who is `due`.
- What is stored is in `tables`; a request changes them, and the caller takes the changes, writes them, or undoes them.
- Only partitions of which the share coordinator has a state are assigned. `begin_states` tells which are still to get
  one; the caller sees to that, and says how it went. When they have it, the next heartbeat asks for a new target.
- A target is made at most once in `group.share.assignment.interval.ms` (KIP-1263).
"""

import enum
import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from odradek.groups.assignors import Assignment
from odradek.groups.share_assignor import NAME, assign
from odradek.groups.share_state import (
    NamedPartitions,
    ShareChange,
    ShareCurrent,
    ShareMember,
    SharePart,
    ShareTables,
    TopicStates,
)
from odradek.groups.subscriptions import SubscribedTopics, Topics
from odradek.groups.tables import GroupEpoch, TargetEpoch
from odradek.groups.timed_group import TimedGroup
from odradek.groups.timers import Now, Timer
from odradek_protocol.errors import BrokerError, Error

__all__ = ["ShareGroup", "ShareGroupLimits", "ShareGroupState", "ShareHeartbeat", "ShareHeartbeatResult"]


class ShareGroupState(enum.Enum):
    """Where a group is; the value is the name that ShareGroupDescribe tells."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareGroupLimits(Protocol):
    """The settings that a group obeys; read when needed, because they may change. Some may be a group's own."""

    @property
    def share_max_size(self) -> int: ...
    @property
    def share_initialize_retry_interval_ms(self) -> int: ...
    def share_session_timeout_ms(self, group_id: str) -> int: ...
    def share_assignment_interval_ms(self, group_id: str) -> int: ...


class ShareHeartbeat(NamedTuple):
    """A ShareGroupHeartbeat request. What is None is as it was told before."""

    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    topic_names: Iterable[str] | None = None


class ShareHeartbeatResult(NamedTuple):
    """The reply; `assigned` is None where the member knows already."""

    member_id: str
    member_epoch: int
    assigned: Assignment | None = None


class ShareGroup(TimedGroup[ShareMember]):
    """One group. Methods are transitions; attributes are for reading. It commits nothing: `offsets` stay empty."""

    type = "share"
    """What ListGroups calls such groups."""
    protocol_type = "share"
    assignor = NAME

    def __init__(self, group_id: str, limits: ShareGroupLimits, topics: Topics) -> None:
        super().__init__(group_id)
        self.tables = ShareTables()
        self._limits = limits
        self._topics = topics
        self._subscribed = SubscribedTopics(self.tables.subscribers, topics)
        self._assigned_at = -1
        """The revision of the tables at which all partitions with a state were found to be somebody's."""
        self._begun: dict[tuple[bytes, int], float] = {}
        """When the share coordinator was asked to begin with a partition."""

    @property
    def members(self) -> Mapping[str, ShareMember]:
        """The members by id."""
        return self.tables.members

    @property
    def state(self) -> ShareGroupState:
        """Where the group is."""
        if self.is_dead:
            return ShareGroupState.DEAD
        return ShareGroupState.STABLE if self.tables.members else ShareGroupState.EMPTY

    @property
    def is_idle(self) -> bool:
        """Whether nobody is in the group, and time may delete it; a share group stays until somebody deletes it."""
        return False

    # Requests

    def heartbeat(self, request: ShareHeartbeat, now: Now) -> ShareHeartbeatResult:
        """ShareGroupHeartbeat of a member that joins or stays.

        Raises GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID and FENCED_MEMBER_EPOCH; the group is then as it was.
        """
        if len(self.members) >= self._limits.share_max_size and request.member_id not in self.members:
            text = f"The share group has reached its maximum capacity of {self._limits.share_max_size} members."
            raise BrokerError(Error.GROUP_MAX_SIZE_REACHED, text)
        former = self._admit(request)
        before = self.tables.current(request.member_id)
        member = _told(former or ShareMember(request.member_id), request)
        if member != former:
            self.tables.change(SharePart.MEMBER, member.member_id, member)
        bump = former is None or former.topic_names != member.topic_names
        bump = self._refresh(force=bump)
        if self.tables.epoch.epoch > self.tables.target_epoch.epoch:
            self._maybe_assign(now)
        current = self._reconciled(member, before, force=bump)
        if current != before or former is None:
            self.tables.change(SharePart.CURRENT, member.member_id, current)
        self._extend_session(member.member_id, now)
        told = request.member_epoch == 0 or request.topic_names is not None or before.assigned != current.assigned
        return ShareHeartbeatResult(member.member_id, current.epoch, current.assigned if told else None)

    def undo(self, changes: list[ShareChange]) -> None:
        """These changes are not to be: have everything as it was, and look at the topics anew."""
        if changes:
            self.tables.undo(changes)
            self._subscribed.look_anew()

    def leave(self, member_id: str) -> ShareHeartbeatResult:
        """The last ShareGroupHeartbeat of a member. UNKNOWN_MEMBER_ID."""
        self.member(member_id)
        self.fence([member_id])
        return ShareHeartbeatResult(member_id, -1)

    def fence(self, member_ids: Collection[str]) -> None:
        """Take members out."""
        for member_id in member_ids:
            for part in (SharePart.CURRENT, SharePart.TARGET, SharePart.MEMBER):
                self.tables.change(part, member_id, None)
        if member_ids:
            self._raise_epoch(force=True)

    # The states of partitions

    def begin_states(self, now: Now) -> NamedPartitions:
        """The partitions of which the share coordinator is to have a state, and has not, nor has been asked lately."""
        retry_s = self._limits.share_initialize_retry_interval_ms / 1000
        initialized = self.tables.topics.initialized
        missing = {}
        for name in self.tables.subscribers:
            topic = self._topics.topics.get(name)
            if topic is None:
                continue
            known = initialized.get(topic.topic_id, ("", frozenset()))[1]
            if len(known) == len(topic.partitions):
                continue
            partitions = frozenset(
                index
                for index in range(len(topic.partitions))
                if index not in known and now.at - self._begun.get((topic.topic_id, index), -math.inf) >= retry_s
            )
            if partitions:
                missing[topic.topic_id] = name, partitions
                self._begun.update({(topic.topic_id, index): now.at for index in partitions})
        if missing:
            self.change_topics(self.tables.topics.with_initializing(missing))
        return missing

    def end_states(self, partitions: NamedPartitions, *, succeeded: bool) -> None:
        """The share coordinator has begun with these partitions, or could not."""
        topics = self.tables.topics
        for topic_id, (_, indexes) in partitions.items():
            for index in indexes:
                self._begun.pop((topic_id, index), None)
        self.change_topics(
            topics.with_initialized(partitions) if succeeded else topics.without_initializing(partitions)
        )

    def change_topics(self, topics: TopicStates) -> None:
        """Store what there is a state of."""
        if topics != self.tables.topics:
            self.tables.change(SharePart.TOPICS, "", topics)

    # Time

    def resume(self, now: Now) -> None:
        """Start the sessions of a group that was loaded."""
        for member_id in self.members:
            self._extend_session(member_id, now)

    # Inside

    def _extend_session(self, member_id: str, now: Now) -> None:
        self.timers.start(Timer.SESSION, member_id, self._limits.share_session_timeout_ms(self.group_id), now)

    def _admit(self, request: ShareHeartbeat) -> ShareMember | None:
        """The member that sends a heartbeat; None for one that joins and is not known."""
        told = request.member_epoch
        if told == 0:
            return self.members.get(request.member_id)
        member, current = self.member(request.member_id), self.tables.current(request.member_id)
        if told > current.epoch:
            relation = f"a greater member epoch ({told}) than the one known by the group coordinator ({current.epoch})"
        elif told < current.epoch and told != current.previous_epoch:
            relation = (
                f"a smaller member epoch ({told}) than the one known by the group coordinator ({current.epoch}), and "
                f"it does not match the previous member epoch ({current.previous_epoch})"
            )
        else:
            return member
        text = f"The share group member has {relation}. The member must abandon all its partitions and rejoin."
        raise BrokerError(Error.FENCED_MEMBER_EPOCH, text)

    def _refresh(self, *, force: bool) -> bool:
        """Raise the epoch where the subscriptions, their topics, or the partitions with a state are others."""
        tables = self.tables
        force = force or (tables.target_epoch.epoch >= tables.epoch.epoch and self._has_unassigned())
        if self._subscribed.note_topics() or force:
            return self._raise_epoch(force=force)
        return False

    def _raise_epoch(self, *, force: bool) -> bool:
        epoch, metadata_hash = self.tables.epoch, self._subscribed.metadata_hash()
        raised = force or epoch.metadata_hash != metadata_hash
        if raised:
            self.tables.change(SharePart.EPOCH, "", GroupEpoch(epoch.epoch + 1, metadata_hash))
        return raised

    def _has_unassigned(self) -> bool:
        """Whether there are partitions with a state that nobody is to have; looks at all members when that may be."""
        initialized = self.tables.topics.initialized
        if not self.members or not initialized or self._assigned_at == self.tables.revision:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.tables.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        found = any(
            assigned.get(topic_id, set()) != partitions
            for topic_id, (name, partitions) in initialized.items()
            if name in self.tables.subscribers
        )
        if not found:
            self._assigned_at = self.tables.revision
        return found

    def _maybe_assign(self, now: Now) -> None:
        """Make a new target, unless the last one is too young."""
        tables = self.tables
        if tables.target_epoch.was_made_within(self._limits.share_assignment_interval_ms(self.group_id), now.wall_ms):
            return
        subscriptions = {
            member_id: self._subscribed.ids(member.topic_names) for member_id, member in tables.members.items()
        }
        assignable = {topic_id: partitions for topic_id, (_, partitions) in tables.topics.initialized.items()}
        for member_id, target in assign(subscriptions, tables.targets, assignable).items():
            if target != tables.targets.get(member_id):
                tables.change(SharePart.TARGET, member_id, target)
        tables.change(SharePart.TARGET_EPOCH, "", TargetEpoch(tables.epoch.epoch, now.wall_ms))

    def _reconciled(self, member: ShareMember, current: ShareCurrent, *, force: bool) -> ShareCurrent:
        """What the member has from now on: its target, without topics that it does not subscribe to."""
        target_epoch = self.tables.target_epoch.epoch
        if current.epoch == target_epoch and not force:
            return current
        subscribed = self._subscribed.ids(member.topic_names)
        target = self.tables.targets.get(member.member_id, {})
        assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in subscribed}
        if current.epoch == target_epoch:
            return current._replace(assigned=assigned)
        return ShareCurrent(target_epoch, current.epoch, assigned)


def _told(member: ShareMember, request: ShareHeartbeat) -> ShareMember:
    """The member with what it says of itself."""
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=member.topic_names if request.topic_names is None else frozenset(request.topic_names),
    )
