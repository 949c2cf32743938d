"""A classic consumer group as a state machine: who is in it, which generation it is in, who waits for what.

              first join               all joined, or time is up
    EMPTY ----------------> PREPARING_REBALANCE --------------------> COMPLETING_REBALANCE
      ^                      |   ^      ^                               |            |
      +----------------------+   |      +-------------------------------+            | the leader's
        nobody is left           |        a member comes, goes or changes            | assignment is stored
                                 |                                                   v
                                 +----------------------------------------------- STABLE

    DEAD: from every state, when the group is deleted or its partition moves to another broker; final.

Rules:

- Everything that changes membership is in this module. It has no clock, no files and no I/O: `now` comes in, in seconds
  of a monotonic clock, and `deadline` says when `expire` has to be called.
- A reply that has to wait is a `Ticket`. Every ticket that is handed out is resolved: by progress, by a deadline, or
  by `kill`.
- What has to be in the log before the group may go on is put into `unstored`. The caller writes it and tells `stored`.
- A heartbeat costs the same in a group of five thousand as in a group of two: it moves only the member's own deadline.
  `deadline` is a lower bound, made exact by the scan in `expire`.

Sources: Kafka protocol guide (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), KIP-62, KIP-134 (initial delay), KIP-345
(static members), KIP-389 (size limit), KIP-394 (known member ids), KIP-559 (protocol in the reply), KIP-814 (skipped
assignment).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

from odradek.groups.member import JoinRequest, JoinResult, Member, Store, SyncResult, Ticket
from odradek.groups.offsets import GroupOffsets
from odradek.groups.roster import Roster
from odradek.groups.states import VALID_PREVIOUS_STATES, GroupState
from odradek_protocol.errors import BrokerError, Error

__all__ = ["Group", "GroupLimits", "GroupState"]

NEW_MEMBER_JOIN_TIMEOUT = 5 * 60.0
"""Seconds that a new member may wait for its first generation; Kafka's constant, longer than any client waits."""

S = GroupState


class GroupLimits(Protocol):
    """The settings that a group obeys; read when needed, because they may change."""

    @property
    def group_initial_rebalance_delay_ms(self) -> int: ...
    @property
    def group_max_size(self) -> int: ...


class Group:
    """One group. Methods are transitions; attributes are for reading."""

    type = "classic"
    """What ListGroups calls such groups."""

    def __init__(self, group_id: str, limits: GroupLimits) -> None:
        self.group_id = group_id
        self.state = S.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.offsets = GroupOffsets()
        self.state_timestamp_ms = -1
        """When the group was stored last, in wall clock milliseconds; -1: never. Written by who stores it."""
        self.deadline = math.inf
        """When `expire` is to be called; nothing is due before."""
        self.unstored: list[Store] = []
        """What the caller is to write to the log, in order, and then to tell `stored`."""
        self._limits = limits
        self._roster = Roster()
        self._pending: dict[str, float] = {}
        self._pending_sync: set[str] = set()
        self._join_deadline = math.inf
        self._sync_deadline = math.inf
        self._initial = False
        self._initial_remaining = 0.0
        self._newcomer = False

    @classmethod
    def restored(cls, group_id: str, limits: GroupLimits, stored: Store) -> "Group":
        """The group that the log describes: stable with its members, empty without. `resume` starts its sessions."""
        group = cls(group_id, limits)
        group.generation = stored.generation
        group.protocol_type = stored.protocol_type
        group.protocol_name = stored.protocol_name
        for member, _, assignment in stored.members:
            member.assignment = assignment
            group._roster.add(member)
        if group.members:
            group._roster.leader = stored.leader
            group.state = S.STABLE
        return group

    # What may be asked

    @property
    def members(self) -> Mapping[str, Member]:
        """The members by id, longest there first."""
        return self._roster.members

    @property
    def leader(self) -> str | None:
        """The member that makes the assignment."""
        return self._roster.leader

    @property
    def is_idle(self) -> bool:
        """Whether nobody is in the group or about to join it."""
        return self.state is S.EMPTY and not self._pending

    # Requests

    def join(self, request: JoinRequest, now: float) -> Ticket[JoinResult]:
        """JoinGroup: the ticket is resolved when the next generation is known, or at once where nothing waits.

        Checked in this order: size, dead, protocols, identity.
        """
        if not self._accepts(request.member_id):
            self._pending.pop(request.member_id, None)
            self._remove(request.member_id, Error.GROUP_MAX_SIZE_REACHED)
            self._maybe_complete_join(now)
            return Ticket(JoinResult(Error.GROUP_MAX_SIZE_REACHED, ""))
        if self.state is S.DEAD:
            return Ticket(JoinResult(Error.COORDINATOR_NOT_AVAILABLE, request.member_id))
        if not self._supports(request):
            return Ticket(JoinResult(Error.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        if not request.member_id:
            return self._join_new(request, now)
        if request.instance_id is None and self._pending.pop(request.member_id, None) is not None:
            return self._add(request, request.member_id, now)
        error = self._roster.identity_error(request.member_id, request.instance_id)
        if error is not Error.NONE:
            return Ticket(JoinResult(error, request.member_id))
        return self._rejoin(self.members[request.member_id], request, now)

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        protocol_type: str | None,
        protocol_name: str | None,
        assignments: Mapping[str, bytes],
    ) -> Ticket[SyncResult]:
        """SyncGroup: followers wait for the leader, the leader waits until its assignment is stored.

        `assignments` counts only from the leader. `protocol_type` and `protocol_name` are compared where given
        (KIP-559). Checked in this order: dead, identity, generation, protocol, state.
        """
        error = self._member_error(member_id, instance_id, generation)
        if error is Error.NONE and not (
            protocol_type in (None, self.protocol_type) and protocol_name in (None, self.protocol_name)
        ):
            error = Error.INCONSISTENT_GROUP_PROTOCOL
        if error is Error.NONE and self.state is S.PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
        if error is not Error.NONE:
            return Ticket(SyncResult(error))
        member = self.members[member_id]
        self._pending_sync.discard(member_id)
        if self.state is S.STABLE:
            return Ticket(self._sync_result(member))
        if member.sync_ticket is None:
            member.sync_ticket = Ticket()
        if member_id == self.leader:
            self.unstored.append(self._snapshot(assignments))
        return member.sync_ticket

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> None:
        """Heartbeat: keep the member's session.

        Raises BrokerError: COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, or
        REBALANCE_IN_PROGRESS, with which the session is kept too.
        """
        error = self._member_error(member_id, instance_id, generation)
        if error is not Error.NONE:
            raise BrokerError(error)
        self._extend_session(self.members[member_id], now)
        if self.state is S.PREPARING_REBALANCE:
            raise BrokerError(Error.REBALANCE_IN_PROGRESS)

    def leave(self, members: Iterable[tuple[str, str | None]], now: float) -> list[Error]:
        """LeaveGroup for several (member id, instance id): an error for each, in order.

        An administrator removes a static member by its instance id and an empty member id. Raises BrokerError
        COORDINATOR_NOT_AVAILABLE when the group is dead.
        """
        if self.state is S.DEAD:
            raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE)
        size, errors = len(self.members), []
        for given_id, instance_id in members:
            if self._pending.pop(given_id, None) is not None:
                errors.append(Error.NONE)
                continue
            member_id = given_id or self._roster.static_ids.get(instance_id or "", "")
            error = self._roster.identity_error(member_id, instance_id)
            if error is Error.NONE:
                self._remove(member_id, Error.UNKNOWN_MEMBER_ID)
            errors.append(error)
        if len(self.members) < size:
            self._maybe_rebalance(now)
        else:
            self._maybe_complete_join(now)
        return errors

    def check_commit(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Decide whether offsets may be committed; whoever tells a generation is a member then.

        Without a generation (-1) an empty group takes commits from anybody: administrators, and consumers that assign
        partitions to themselves. Raises BrokerError as `heartbeat` does, except that REBALANCE_IN_PROGRESS is told
        only while a generation waits for its assignment: its members have yet to learn what they own.
        """
        if generation < 0 and self.state is S.EMPTY:
            return
        error = self._member_error(member_id, instance_id, generation)
        if error is Error.NONE and self.state is S.COMPLETING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
        if error is not Error.NONE:
            raise BrokerError(error)

    def keep_session(self, member_id: str, now: float) -> None:
        """A member has committed offsets, and is alive as if by a heartbeat."""
        self._extend_session(self.members[member_id], now)

    def check_transactional_commit(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Decide whether a transaction may commit offsets; its producer need not be a member.

        Only who says to be a member has to be one, of this generation (KIP-447). Raises as `heartbeat` does, but never
        REBALANCE_IN_PROGRESS.
        """
        if generation < 0 and (self.state is S.EMPTY or not (member_id or instance_id)):
            return
        error = self._member_error(member_id, instance_id, generation)
        if error is not Error.NONE:
            raise BrokerError(error)

    # What the caller tells

    def stored(self, store: Store, error: Error, now: float) -> None:
        """The log has taken `store`; or has not, and `error` is what the members that wait are told.

        An assignment whose generation is over meanwhile is of no effect.
        """
        if store.replacement is not None:
            self._replacement_stored(store, error, now)
        elif store.members and self.state is S.COMPLETING_REBALANCE and store.generation == self.generation:
            if error is not Error.NONE:
                self._fail_sync(error, now)
                self._prepare_rebalance(now)
                return
            for member, _, assignment in store.members:
                member.assignment = assignment
            self._transition(S.STABLE)
            for member in self.members.values():
                if member.resolve_sync(self._sync_result(member)):
                    self._extend_session(member, now)

    def expire(self, now: float) -> None:
        """Do what is due at `now`: end sessions, join phases and sync phases. Makes `deadline` exact."""
        self._expire_members(now)
        if now >= self._join_deadline:
            self._end_join_phase(now)
        if now >= self._sync_deadline:
            self._end_sync_phase(now)
        times = [self._join_deadline, self._sync_deadline, *self._pending.values()]
        times.extend(member.deadline for member in self.members.values())
        self.deadline = min(times)

    def resume(self, now: float) -> None:
        """Start the sessions of a restored group, and a rebalance if the size limit is below its size by now."""
        for member in self.members.values():
            self._extend_session(member, now)
        if len(self.members) > self._limits.group_max_size:
            self._prepare_rebalance(now)

    def begin_rebalance(self, now: float) -> None:
        """Have all members join again."""
        self._prepare_rebalance(now)

    def kill(self, error: Error) -> None:
        """The group is deleted or moves away: all who wait are told `error`."""
        self._transition(S.DEAD)
        for store in self.unstored:
            if store.ticket is not None:
                store.ticket.resolve(JoinResult(error, ""))
        self.unstored.clear()
        for member_id in list(self.members):
            self._remove(member_id, error)
        self._pending.clear()
        self.deadline = self._join_deadline = self._sync_deadline = math.inf

    # Joining

    def _accepts(self, member_id: str) -> bool:
        """Whether the size limit leaves a place. During a rebalance places go to those who join first (KIP-389)."""
        if self.state is S.EMPTY or self.state is S.DEAD:
            return True
        member = self.members.get(member_id)
        if self.state is S.PREPARING_REBALANCE:
            waits = member is not None and member.join_ticket is not None
            return waits or self._roster.joining < self._limits.group_max_size
        return member is not None or len(self.members) < self._limits.group_max_size

    def _supports(self, request: JoinRequest) -> bool:
        if self.state is S.EMPTY:
            return bool(request.protocol_type and request.protocols)
        return request.protocol_type == self.protocol_type and self._roster.supports(
            name for name, _ in request.protocols
        )

    def _join_new(self, request: JoinRequest, now: float) -> Ticket[JoinResult]:
        """Someone without a member id. A static member is known by its instance id; others may have to come again."""
        if request.instance_id is not None:
            if request.instance_id in self._roster.static_ids:
                return self._replace(request, now)
        elif request.requires_known_member_id:
            deadline = self._pending[request.new_member_id] = now + request.session_timeout_ms / 1000
            self._wake_at(deadline)
            return Ticket(JoinResult(Error.MEMBER_ID_REQUIRED, request.new_member_id))
        return self._add(request, request.new_member_id, now)

    def _add(self, request: JoinRequest, member_id: str, now: float) -> Ticket[JoinResult]:
        member = Member.joining(request, member_id)
        if not self.members:
            self.protocol_type = request.protocol_type
        self._newcomer = self._initial
        self._roster.add(member)
        self._set_session_end(member, now + NEW_MEMBER_JOIN_TIMEOUT)
        ticket = self._roster.await_join(member)
        self._maybe_rebalance(now)
        return ticket

    def _rejoin(self, member: Member, request: JoinRequest, now: float) -> Ticket[JoinResult]:
        """A member that is known. Where its generation stands and it says nothing new, it is told that again."""
        if member.protocols == request.protocols and (
            self.state is S.COMPLETING_REBALANCE or (self.state is S.STABLE and member.member_id != self.leader)
        ):
            return Ticket(self._join_result(member))
        self._roster.update(member, request.protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        ticket = self._roster.await_join(member)
        self._maybe_rebalance(now)
        return ticket

    def _maybe_rebalance(self, now: float) -> None:
        """Membership changed: start a rebalance, or end its join phase if this was all it waited for."""
        if self.state is S.PREPARING_REBALANCE:
            self._maybe_complete_join(now)
        elif self.members or self.state is not S.EMPTY:
            self._prepare_rebalance(now)

    def _prepare_rebalance(self, now: float) -> None:
        if self.state is S.COMPLETING_REBALANCE:
            self._fail_sync(Error.REBALANCE_IN_PROGRESS, now)
        self._pending_sync.clear()
        self._sync_deadline = math.inf
        self._initial = self.state is S.EMPTY
        self._transition(S.PREPARING_REBALANCE)
        timeout = self._roster.rebalance_timeout()
        if not self._initial:
            self._set_join_deadline(now + timeout)
            self._maybe_complete_join(now)
            return
        delay = self._limits.group_initial_rebalance_delay_ms / 1000
        self._newcomer = False
        self._initial_remaining = max(timeout - delay, 0.0)
        self._set_join_deadline(now + delay)
        if delay <= 0:
            self._complete_join(now)

    def _maybe_complete_join(self, now: float) -> None:
        """End the join phase when everybody is there. A group's first one ends only by time."""
        complete = self._roster.joining == len(self.members) and not self._pending
        if complete and self.state is S.PREPARING_REBALANCE and not self._initial:
            self._complete_join(now)

    def _end_join_phase(self, now: float) -> None:
        """Time is up. The first generation waits on while members come, up to the rebalance timeout (KIP-134)."""
        if self._initial and self._newcomer and self._initial_remaining > 0:
            delay = self._limits.group_initial_rebalance_delay_ms / 1000
            self._newcomer = False
            self._set_join_deadline(now + min(delay, self._initial_remaining))
            self._initial_remaining = max(self._initial_remaining - delay, 0.0)
        else:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Name the next generation, of those who joined. Static members stay in it even if they did not."""
        for member in list(self.members.values()):
            if member.join_ticket is None and member.instance_id is None:
                self._remove(member.member_id, Error.UNKNOWN_MEMBER_ID)
        if self.members and not self._roster.elect_leader():
            self._set_join_deadline(now + self._roster.rebalance_timeout())
            return
        self._join_deadline = math.inf
        self._initial = False
        self.generation += 1
        if not self.members:
            self.protocol_name = None
            self._transition(S.EMPTY)
            self.unstored.append(self._snapshot({}))
            return
        self.protocol_name = self._roster.vote()
        self._transition(S.COMPLETING_REBALANCE)
        self._pending_sync = set(self.members)
        self._sync_deadline = now + self._roster.rebalance_timeout()
        self._wake_at(self._sync_deadline)
        for member in self.members.values():
            member.new = False
            self._roster.resolve_join(member, self._join_result(member))
            self._extend_session(member, now)

    # Static members that come back without their member id (KIP-345)

    def _replace(self, request: JoinRequest, now: float) -> Ticket[JoinResult]:
        """A new process takes a static member's place; without a rebalance where that changes nothing."""
        if self._replaces_silently(request):
            ticket: Ticket[JoinResult] = Ticket()
            self.unstored.append(self._snapshot({}, replacement=request, ticket=ticket))
            return ticket
        member = self._put_in_place(request, now)
        ticket = self._roster.await_join(member)
        if self.state is S.PREPARING_REBALANCE:
            self._maybe_complete_join(now)
        else:
            self._prepare_rebalance(now)
        return ticket

    def _replaces_silently(self, request: JoinRequest) -> bool:
        """Whether the group is stable and its protocol stays what it is with the new member."""
        former = self._roster.static_member(request.instance_id)
        return (
            self.state is S.STABLE
            and former is not None
            and self._roster.vote(instead=(former, request.protocols)) == self.protocol_name
        )

    def _replacement_stored(self, store: Store, error: Error, now: float) -> None:
        """Let the stored replacement take effect, or go the long way when the group has moved on meanwhile."""
        request, ticket = store.replacement, store.ticket
        assert request is not None
        assert ticket is not None
        if ticket.result is not None:
            return
        if error is Error.NONE and request.instance_id not in self._roster.static_ids:
            error = Error.UNKNOWN_MEMBER_ID
        if error is not Error.NONE:
            ticket.resolve(JoinResult(error, ""))
        elif not self._replaces_silently(request):
            self._replace(request, now).forward(ticket)
        else:
            former_leader = self.leader
            member = self._put_in_place(request, now)
            if request.can_skip_assignment:
                ticket.resolve(self._join_result(member, skip_assignment=member.member_id == self.leader))
            else:
                # An older client that is told it leads would assign anew, and a stable group takes no assignment.
                ticket.resolve(self._join_result(member, leader=former_leader))

    def _put_in_place(self, request: JoinRequest, now: float) -> Member:
        former = self._roster.static_member(request.instance_id)
        assert former is not None
        leads = former.member_id == self.leader
        self._roster.resolve_join(former, JoinResult(Error.FENCED_INSTANCE_ID, former.member_id))
        self._remove(former.member_id, Error.FENCED_INSTANCE_ID)
        member = former.successor(request)
        self._roster.add(member)
        if leads:
            self._roster.leader = member.member_id
        self._extend_session(member, now)
        return member

    # Time

    def _expire_members(self, now: float) -> None:
        """End the sessions that are over, of members and of those who were given an id and did not come back."""
        for member_id in [member_id for member_id, deadline in self._pending.items() if deadline <= now]:
            del self._pending[member_id]
        size = len(self.members)
        for member in [member for member in self.members.values() if member.deadline <= now]:
            if member.waits and not member.new:
                member.deadline = math.inf
            else:
                self._remove(member.member_id, Error.UNKNOWN_MEMBER_ID)
        if len(self.members) < size:
            self._maybe_rebalance(now)
        else:
            self._maybe_complete_join(now)

    def _end_sync_phase(self, now: float) -> None:
        """Members that joined and never asked for their assignment are no members."""
        self._sync_deadline = math.inf
        late = list(self._pending_sync)
        for member_id in late:
            self._remove(member_id, Error.UNKNOWN_MEMBER_ID)
        if late:
            self._prepare_rebalance(now)

    def _extend_session(self, member: Member, now: float) -> None:
        self._set_session_end(member, now + member.session_timeout_ms / 1000)

    def _set_session_end(self, member: Member, deadline: float) -> None:
        member.deadline = deadline
        self._wake_at(deadline)

    def _set_join_deadline(self, deadline: float) -> None:
        self._join_deadline = deadline
        self._wake_at(deadline)

    def _wake_at(self, deadline: float) -> None:
        self.deadline = min(self.deadline, deadline)

    # Parts

    def _transition(self, state: GroupState) -> None:
        assert self.state in VALID_PREVIOUS_STATES[state], f"{self.group_id}: {self.state} to {state}"
        self.state = state

    def _member_error(self, member_id: str, instance_id: str | None, generation: int) -> Error:
        if self.state is S.DEAD:
            return Error.COORDINATOR_NOT_AVAILABLE
        error = self._roster.identity_error(member_id, instance_id)
        if error is Error.NONE and generation != self.generation:
            return Error.ILLEGAL_GENERATION
        return error

    def _remove(self, member_id: str, error: Error) -> None:
        """Take a member out, if it is there, and tell it why if it waits."""
        member = self._roster.remove(member_id)
        if member is None:
            return
        self._pending_sync.discard(member_id)
        self._roster.resolve_join(member, JoinResult(error, ""))
        member.resolve_sync(SyncResult(error))

    def _fail_sync(self, error: Error, now: float) -> None:
        """The generation gets no assignment: those who wait for it are told why."""
        for member in self.members.values():
            member.assignment = b""
            if member.resolve_sync(SyncResult(error)):
                self._extend_session(member, now)

    def _join_result(self, member: Member, *, leader: str | None = None, skip_assignment: bool = False) -> JoinResult:
        """The generation as the member is told it; the leader is told who is in it."""
        members: list[tuple[str, str | None, bytes]] = []
        if leader is None and member.member_id == self.leader:
            members = [(m.member_id, m.instance_id, m.metadata(self.protocol_name)) for m in self.members.values()]
        return JoinResult(
            error=Error.NONE,
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader or self.leader or "",
            members=members,
            skip_assignment=skip_assignment,
        )

    def _sync_result(self, member: Member) -> SyncResult:
        return SyncResult(Error.NONE, member.assignment, self.protocol_type, self.protocol_name)

    def _snapshot(
        self,
        assignments: Mapping[str, bytes],
        *,
        replacement: JoinRequest | None = None,
        ticket: Ticket[JoinResult] | None = None,
    ) -> Store:
        """The group as it is to be stored: with the leader's assignments, or with a replacement in place."""
        leader, rows = self.leader, []
        former = None if replacement is None else self._roster.static_member(replacement.instance_id)
        for current in self.members.values():
            member = current
            if replacement is not None and current is former:
                member = current.successor(replacement)
                leader = member.member_id if leader == current.member_id else leader
            assignment = current.assignment if replacement is not None else assignments.get(current.member_id, b"")
            rows.append((member, member.metadata(self.protocol_name), assignment))
        return Store(self.generation, self.protocol_type, self.protocol_name, leader, rows, replacement, ticket)
