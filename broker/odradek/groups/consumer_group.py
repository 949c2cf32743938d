"""A consumer group of KIP-848 as a state machine: the broker makes assignments, and members go to them one by one.

    group epoch      grows when members or topics change, and asks for a new target
    target epoch     the group epoch that the target assignment was made for
    member epoch     the target that a member has come to; see `reconciliation`

             nobody is in it
    EMPTY <------------------- any
             group epoch > target epoch           some member is not at the target       all are
    ASSIGNING                          RECONCILING                                STABLE

Rules:

- Everything that changes membership is in this module and in `classic_members`. It has no clock, no files and no I/O:
  `Now` comes in, and `deadline` says when to ask who is `due`.
- What is stored is in `tables`; a request changes them, and the caller takes the changes, writes them, or undoes them.
  Deadlines are not stored: they start anew where the group is loaded.
- A heartbeat that says nothing new costs the same in a group of five thousand as in a group of two: it looks at one
  member, and moves that member's own deadline; see `timers`.
- A target is made at most once in `group.consumer.assignment.interval.ms`; meanwhile members go by the last one, and
  one that has just come has nothing (KIP-1263).

Sources: KIP-848, KIP-1082 (member ids), KIP-1101 (no racks), KIP-1251 (assignment epochs), KIP-1263.
"""

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from odradek.groups.assignors import ASSIGNORS, Assignment, AssignorMember
from odradek.groups.consumer_state import (
    LEAVE_STATIC_EPOCH,
    ConsumerChange,
    CurrentAssignment,
    MemberInfo,
    MemberState,
    Owned,
    Part,
)
from odradek.groups.consumer_tables import ConsumerTables
from odradek.groups.reconciliation import reconcile
from odradek.groups.subscriptions import PatternLimits, Subscriptions, Topics
from odradek.groups.tables import GroupEpoch, TargetEpoch
from odradek.groups.timed_group import FIRST_COMMIT_WITH_MEMBER_EPOCH, CommittingGroup
from odradek.groups.timers import Now, Timer
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.internal.consumer_protocol import CONSUMER_PROTOCOL_TYPE

__all__ = [
    "ConsumerGroup",
    "ConsumerGroupState",
    "ConsumerLimits",
    "Heartbeat",
    "HeartbeatResult",
]


class ConsumerGroupState(enum.Enum):
    """Where a group is; the value is the name that ConsumerGroupDescribe tells."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerLimits(PatternLimits, Protocol):
    """The settings that a group obeys; read when needed, because they may change. Some may be a group's own."""

    @property
    def assignors(self) -> Sequence[str]: ...
    @property
    def max_size(self) -> int: ...
    def session_timeout_ms(self, group_id: str, /) -> int: ...
    def heartbeat_interval_ms(self, group_id: str, /) -> int: ...
    def assignment_interval_ms(self, group_id: str, /) -> int: ...


@dataclass(slots=True)
class Heartbeat:
    """A ConsumerGroupHeartbeat request. What is None, or -1 for the timeout, is as it was told before.

    It is not frozen, though nobody changes it: to make a frozen one takes 2.6 us in place of 1.0, at each heartbeat.
    """

    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topic_names: Iterable[str] | None = None
    topic_pattern: str | None = None
    server_assignor: str | None = None
    owned: Assignment | None = None

    @property
    def is_full(self) -> bool:
        """Whether the member says all there is to say, as it does after an error, and wants its assignment told."""
        subscribes = self.topic_names is not None or self.topic_pattern is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None


class HeartbeatResult(NamedTuple):
    """The reply; `assigned` is None where the member knows already."""

    member_id: str
    member_epoch: int
    assigned: Owned | None = None


class ConsumerGroup(CommittingGroup[MemberInfo]):
    """One group. Methods are transitions; attributes are for reading."""

    type = "consumer"
    """What ListGroups calls such groups."""
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str, limits: ConsumerLimits, topics: Topics) -> None:
        super().__init__(group_id)
        self.tables = ConsumerTables()
        self._limits = limits
        self._topics = topics
        self._subscriptions = Subscriptions(self.tables, topics, limits)

    # What may be asked

    @property
    def members(self) -> Mapping[str, MemberInfo]:
        """The members by id."""
        return self.tables.members

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group is; looks at every member."""
        tables = self.tables
        if self.is_dead:
            return ConsumerGroupState.DEAD
        if not tables.members:
            return ConsumerGroupState.EMPTY
        target_epoch = tables.target_epoch.epoch
        if tables.epoch.epoch > target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(tables.current(member_id).is_reconciled_to(target_epoch) for member_id in tables.members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for; the first of the broker's where none does."""
        counts = self.tables.assignors
        return max(counts, key=counts.__getitem__) if counts else self._limits.assignors[0]

    def consumes(self, topic: str) -> bool:
        """Whether a member subscribes to a topic."""
        return topic in self.tables.subscribers

    # Requests

    def heartbeat(self, request: Heartbeat, now: Now) -> HeartbeatResult:
        """ConsumerGroupHeartbeat of a member that joins or stays.

        Raises GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
        FENCED_MEMBER_EPOCH and INVALID_REGULAR_EXPRESSION; the group is then as it was.
        """
        try:
            return self._stay(request, now)
        except BrokerError:
            self.undo(self.tables.take_changes())
            raise

    def keep_alive(self, member_id: str, epoch: int, client_id: str, client_host: str, now: Now) -> bool:
        """A heartbeat that says nothing but that a member is there: keep its session, where nothing is to be done.

        That is most of all heartbeats. False where the member is not what it says or is on its way, or the topics may
        have changed: nothing is done then, and `heartbeat` tells what follows.
        """
        tables = self.tables
        current, target_epoch = tables.currents.get(member_id), tables.target_epoch.epoch
        if (
            current is None
            or current.epoch != epoch
            or tables.epoch.epoch != target_epoch
            or not current.is_reconciled_to(target_epoch)
            or not self._subscriptions.are_noted(now.wall_ms)
        ):
            return False
        member = tables.members[member_id]
        if member.client_id != client_id or member.client_host != client_host or member.classic is not None:
            return False
        self.timers.start(Timer.SESSION, member_id, self._limits.session_timeout_ms(self.group_id), now)
        return True

    def undo(self, changes: list[ConsumerChange]) -> None:
        """These changes are not to be: have everything as it was, and look at the topics anew."""
        if changes:
            self.tables.undo(changes)
            self._subscriptions.look_anew()

    def _stay(self, request: Heartbeat, now: Now) -> HeartbeatResult:
        self.check_size(request.member_id)
        member = self._admit(request)
        before = self.tables.current(member.member_id)
        current = self.update(self._told(member, request), now, request.owned)
        self.timers.start(Timer.SESSION, member.member_id, self._limits.session_timeout_ms(self.group_id), now)
        told = request.member_epoch == 0 or request.is_full or before.assigned != current.assigned
        return HeartbeatResult(member.member_id, current.epoch, current.assigned if told else None)

    def check_size(self, member_id: str) -> None:
        """Raise GROUP_MAX_SIZE_REACHED where there is no place for a new member."""
        if len(self.members) >= self._limits.max_size and member_id not in self.members:
            text = f"The consumer group has reached its maximum capacity of {self._limits.max_size} members."
            raise BrokerError(Error.GROUP_MAX_SIZE_REACHED, text)

    def _admit(self, request: Heartbeat) -> MemberInfo:
        """The member that sends a heartbeat; a new one where it joins."""
        member_id, instance_id = request.member_id, request.instance_id
        joins = request.member_epoch == 0
        if instance_id is None:
            member = self.members.get(member_id)
            if member is None and joins:
                return MemberInfo(member_id)
            member = self.member(member_id)
        elif joins:
            return self.claim(member_id, instance_id, only_released=True)
        else:
            member = self.static_member(member_id, instance_id)
        self._check_epoch(member, request)
        return member

    def static_member(self, member_id: str, instance_id: str) -> MemberInfo:
        """The member of that instance id. UNKNOWN_MEMBER_ID for none, FENCED_INSTANCE_ID where it is another."""
        current_id = self.tables.static_ids.get(instance_id)
        if current_id is None:
            raise BrokerError(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if current_id != member_id:
            text = f"Static member {member_id} with instance id {instance_id} was fenced by member {current_id}."
            raise BrokerError(Error.FENCED_INSTANCE_ID, text)
        return self.members[member_id]

    def identified(self, member_id: str, instance_id: str | None) -> MemberInfo:
        """The member that is who it says it is. Raises as `member` or `static_member` does."""
        if instance_id is None:
            return self.member(member_id)
        return self.static_member(member_id, instance_id)

    def claim(self, member_id: str, instance_id: str, *, only_released: bool) -> MemberInfo:
        """The member that joins with an instance id: new, or with the place and the partitions of the one before.

        Raises UNRELEASED_INSTANCE_ID where only one that has left may be replaced, and that one has not.
        """
        former_id = self.tables.static_ids.get(instance_id)
        if former_id is None:
            return MemberInfo(member_id, instance_id=instance_id)
        former, held = self.members[former_id], self.tables.current(former_id)
        if only_released and former.classic is None and held.epoch != LEAVE_STATIC_EPOCH:
            raise BrokerError(
                Error.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {former_id} member.",
            )
        target = self.tables.targets.get(former_id, {})
        self._remove(former_id)
        member = former._replace(member_id=member_id)
        self.tables.change(Part.MEMBER, member_id, member)
        self.tables.change(Part.TARGET, member_id, target)
        self.tables.change(Part.CURRENT, member_id, held._replace(epoch=0, previous_epoch=0))
        return member

    def _check_epoch(self, member: MemberInfo, request: Heartbeat) -> None:
        """FENCED_MEMBER_EPOCH unless the member is where it says it is, or one step behind a reply that was lost."""
        current, told = self.tables.current(member.member_id), request.member_epoch
        if told in (0, current.epoch):
            return
        if told > current.epoch:
            relation = "greater"
        elif told != current.previous_epoch or not _is_part(request.owned, current.assigned):
            relation = "smaller"
        else:
            return
        raise BrokerError(
            Error.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {relation} member epoch ({told}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )

    @staticmethod
    def _told(member: MemberInfo, request: Heartbeat) -> MemberInfo:
        """The member with what it says of itself."""
        told: dict[str, object] = {}
        if request.instance_id is not None:
            told["instance_id"] = request.instance_id
        if request.rack_id is not None:
            told["rack_id"] = request.rack_id
        if request.rebalance_timeout_ms != -1:
            told["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.topic_names is not None:
            told["topic_names"] = frozenset(request.topic_names)
        if request.topic_pattern is not None:
            told["topic_pattern"] = request.topic_pattern
        if request.server_assignor is not None:
            told["server_assignor"] = request.server_assignor
        if member.client_id != request.client_id or member.client_host != request.client_host:
            told["client_id"], told["client_host"] = request.client_id, request.client_host
        if member.classic is not None:
            told["classic"] = None
        return member._replace(**told) if told else member  # type: ignore[arg-type]  # each name with its own type

    # The way of a member, of either protocol

    def update(self, member: MemberInfo, now: Now, owned: Assignment | None) -> CurrentAssignment:
        """Take what a member says of itself, make what follows from it, and bring the member a step nearer to it."""
        former = self.members.get(member.member_id)
        subscription_changed = self._subscribe(former, member, now)
        self._refresh(now, bump=subscription_changed)
        tables = self.tables
        if tables.epoch.epoch > tables.target_epoch.epoch:
            self._maybe_assign(now)
        current = tables.current(member.member_id)
        target_epoch = tables.target_epoch.epoch
        if not subscription_changed and current.is_reconciled_to(target_epoch):
            return current
        following = reconcile(
            current,
            target_epoch,
            tables.targets.get(member.member_id, {}),
            subscribed=self._subscriptions.topic_ids(member),
            is_free=lambda topic_id, partition: tables.owner(topic_id, partition) is None,
            owned=owned,
            subscription_changed=subscription_changed,
        )
        if following is not current or member.member_id not in tables.currents:
            tables.change(Part.CURRENT, member.member_id, following)
            self._await_revocation(member, following, now)
        return following

    def _await_revocation(self, member: MemberInfo, current: CurrentAssignment, now: Now) -> None:
        """Have a member fenced that does not give up in time what it was asked to."""
        if current.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            self.timers.start(Timer.REVOCATION, member.member_id, member.rebalance_timeout_ms, now)
        else:
            self.timers.end(Timer.REVOCATION, member.member_id)

    def _subscribe(self, former: MemberInfo | None, member: MemberInfo, now: Now) -> bool:
        """Store what a member says; whether it subscribes to something else than before."""
        if member is former or member == former:
            return False
        tables = self.tables
        pattern = member.topic_pattern
        former_pattern = "" if former is None else former.topic_pattern
        if pattern and pattern != former_pattern and pattern not in tables.pattern_members:
            resolved = self._subscriptions.resolve(pattern, now.wall_ms)
            tables.change(Part.MEMBER, member.member_id, member)
            tables.change(Part.PATTERN, pattern, resolved)
        else:
            tables.change(Part.MEMBER, member.member_id, member)
        self._subscriptions.forget_patterns([former_pattern])
        former_names = frozenset() if former is None else former.topic_names
        return former_names != member.topic_names or former_pattern != pattern

    def _refresh(self, now: Now, *, bump: bool) -> None:
        """Raise the epoch where the subscriptions, or their topics, are not what they were."""
        bump = self._subscriptions.refresh_patterns(now.wall_ms) or bump
        if self._subscriptions.note_topics() or bump:
            self.raise_epoch(force=bump)

    def raise_epoch(self, *, force: bool) -> None:
        """Ask for a new target: if the topics are not what the last was made for, or in any case (`force`)."""
        epoch, metadata_hash = self.tables.epoch, self._subscriptions.metadata_hash()
        if force or epoch.metadata_hash != metadata_hash:
            self.tables.change(Part.EPOCH, "", GroupEpoch(epoch.epoch + 1, metadata_hash))

    def _maybe_assign(self, now: Now) -> None:
        """Make a new target, unless the last one is too young."""
        tables = self.tables
        if tables.target_epoch.was_made_within(self._limits.assignment_interval_ms(self.group_id), now.wall_ms):
            return
        by_subscription: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
        members = {}
        for member_id, member in tables.members.items():
            subscription = (member.topic_names, member.topic_pattern)
            topic_ids = by_subscription.get(subscription)
            if topic_ids is None:
                topic_ids = by_subscription[subscription] = self._subscriptions.topic_ids(member)
            members[member_id] = AssignorMember(member.instance_id, topic_ids, tables.targets.get(member_id, {}))
        sizes = {
            topic_id: len(self._topics.topics_by_id[topic_id].partitions)
            for topic_ids in by_subscription.values()
            for topic_id in topic_ids
        }
        for member_id, target in ASSIGNORS[self.assignor](members, sizes).items():
            if target != tables.targets.get(member_id):
                tables.change(Part.TARGET, member_id, target)
        tables.change(Part.TARGET_EPOCH, "", TargetEpoch(tables.epoch.epoch, now.wall_ms))

    # Leaving

    def leave(self, request: Heartbeat) -> HeartbeatResult:
        """The last ConsumerGroupHeartbeat of a member: it has to be fenced, unless it is static and will be back.

        Raises UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID.
        """
        member = self.identified(request.member_id, request.instance_id)
        if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
            away = self.tables.current(member.member_id)._replace(epoch=LEAVE_STATIC_EPOCH, revoking={})
            self.tables.change(Part.CURRENT, member.member_id, away)
        return HeartbeatResult(member.member_id, request.member_epoch)

    def fence(self, member_ids: Collection[str]) -> None:
        """Take members out, and have the others share what they had."""
        patterns = [self.members[member_id].topic_pattern for member_id in member_ids]
        for member_id in member_ids:
            self._remove(member_id)
        if patterns:
            self._subscriptions.forget_patterns(patterns)
            self.raise_epoch(force=True)

    def _remove(self, member_id: str) -> None:
        for part in (Part.CURRENT, Part.TARGET, Part.MEMBER):
            self.tables.change(part, member_id, None)

    # Offsets

    def check_commit(self, member_id: str, epoch: int, version: int, partitions: Iterable[tuple[str, int]]) -> None:
        """Decide whether the offsets of these (topic, partition)s may be committed, all or none.

        Without an epoch (-1) an empty group takes commits from anybody. In an epoch that is over a member may still
        commit what it has had since then (KIP-1251). Raises UNKNOWN_MEMBER_ID; UNSUPPORTED_VERSION where a member of
        the consumer protocol cannot tell its epoch; STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION to a member of the
        classic protocol, for any other epoch.
        """
        if epoch < 0 and not self.members:
            return
        member, current = self.member(member_id), self.tables.current(member_id)
        if member.classic is None and version < FIRST_COMMIT_WITH_MEMBER_EPOCH:
            text = "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            raise BrokerError(Error.UNSUPPORTED_VERSION, text)
        if epoch == current.epoch:
            return
        for topic, partition in partitions if epoch < current.epoch else ():
            known = self._topics.topics.get(topic)
            assigned = None if known is None else current.assignment_epoch(known.topic_id, partition)
            if assigned is None or epoch < assigned:
                break
        else:
            if epoch < current.epoch:
                return
        raise BrokerError(_stale_error(member))

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Decide whether a member may be told offsets: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.

        Who says nothing of itself is told.
        """
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        if epoch != self.tables.current(member.member_id).epoch:
            raise BrokerError(_stale_error(member))

    # Time

    def resume(self, now: Now) -> None:
        """Start the deadlines of a group that was loaded."""
        for member_id, member in self.members.items():
            timeout_ms = self._limits.session_timeout_ms(self.group_id)
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
            self.timers.start(Timer.SESSION, member_id, timeout_ms, now)
            self._await_revocation(member, self.tables.current(member_id), now)


def _stale_error(member: MemberInfo) -> Error:
    return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION


def _is_part(owned: Assignment | None, assigned: Owned) -> bool:
    return owned is not None and all(
        partitions <= assigned.get(topic_id, {}).keys() for topic_id, partitions in owned.items()
    )
