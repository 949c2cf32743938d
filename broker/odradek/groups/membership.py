"""Requests of members, by either protocol, to groups of either kind; what they change is in the log before it holds.

Classic groups answer through tickets, since a generation waits for its members. Consumer groups answer at once; where
the log has replicas, when those have what was written.

Public methods raise BrokerError.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence

import trio

from odradek.groups import classic_members
from odradek.groups.consumer_group import ConsumerGroup, Heartbeat, HeartbeatResult
from odradek.groups.consumer_state import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from odradek.groups.group import Group
from odradek.groups.keeper import GroupKeeper
from odradek.groups.member import JoinRequest, JoinResult, SyncResult, Ticket
from odradek.groups.migration import MigrationPolicy, downgraded, may_downgrade, upgraded
from odradek.groups.shard import AssignedGroup, GroupShard
from odradek.groups.share_group import ShareGroup
from odradek.groups.streams_group import StreamsGroup
from odradek.sharding import APPEND_ERRORS, Written, answering
from odradek_protocol.errors import BrokerError, Error

__all__ = ["Membership", "check_group_id"]


class Membership(GroupKeeper):
    """What members ask of their coordinator."""

    def join(
        self,
        group_id: str,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocol_type: str,
        protocols: Iterable[tuple[str, bytes]],
        requires_known_member_id: bool,
        can_skip_assignment: bool,
    ) -> Ticket[JoinResult]:
        """JoinGroup: a place in the next generation; in a consumer group with members, nobody is waited for.

        Raises INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, checked in this
        order; UNKNOWN_MEMBER_ID for a member of a group that is not there; and as `classic_members.join` does. Other
        errors are in the result.
        """
        check_group_id(group_id)
        config = self._config
        if not config.group_min_session_timeout_ms <= session_timeout_ms <= config.group_max_session_timeout_ms:
            raise BrokerError(Error.INVALID_SESSION_TIMEOUT)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            if member_id:
                raise BrokerError(Error.UNKNOWN_MEMBER_ID)
            group = shard.create(group_id)
        request = JoinRequest(
            member_id=member_id,
            new_member_id="" if member_id else f"{client_id if instance_id is None else instance_id}-{uuid.uuid4()}",
            instance_id=instance_id,
            client_id=client_id,
            client_host=client_host,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=protocol_type,
            protocols=tuple(dict(protocols).items()),
            requires_known_member_id=requires_known_member_id,
            can_skip_assignment=can_skip_assignment,
        )
        if not isinstance(group, Group):
            if isinstance(group, ConsumerGroup) and not group.is_idle:
                return self._join_consumer_group(shard, group, request)
            group = self._make_classic(shard, group)
        ticket = group.join(request, trio.current_time())
        self._settle(shard, group)
        return ticket

    def _make_classic(self, shard: GroupShard, group: AssignedGroup) -> Group:
        """A classic group in the place of one without members. INCONSISTENT_GROUP_PROTOCOL where it has to stay."""
        if isinstance(group, ShareGroup) or not group.is_idle:
            raise BrokerError(Error.INCONSISTENT_GROUP_PROTOCOL)
        classic = Group(group.group_id, self._config)
        classic.offsets = group.offsets
        with answering(APPEND_ERRORS):
            shard.replace_by_classic(group, classic, None)
        self._deadlines.forget(group)
        return classic

    def _join_consumer_group(self, shard: GroupShard, group: ConsumerGroup, request: JoinRequest) -> Ticket[JoinResult]:
        """A member of the classic protocol comes to a consumer group, or goes on in it.

        Where it takes the place of the last member of the consumer protocol, the group becomes a classic one.
        """
        policy = self._limits.migration_policy
        if policy is MigrationPolicy.DISABLED:
            text = (
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration"
            )
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"{text} is disabled.")
        epoch = group.tables.epoch
        former_id = group.tables.static_ids.get(request.instance_id or "")
        replaces_last = former_id is not None and group.members[former_id].classic is None
        try:
            result = classic_members.join(group, request, self._view, self._now())
        except BrokerError:
            group.undo(group.tables.take_changes())
            raise
        if result.error is not Error.NONE:
            return Ticket(result)
        self._schedule(group)
        written = self._store(shard, group)
        if replaces_last and may_downgrade(group, (), policy, self._config):
            changed = group.tables.epoch is not epoch
            classic, store = downgraded(group, (), self._config, self._view)
            written = self._downgrade(shard, group, classic, store, rebalance=changed)
        if written is None:
            return Ticket(result)
        ticket: Ticket[JoinResult] = Ticket()
        self._start(self._resolve_join, ticket, result, request.member_id, written)
        return ticket

    @staticmethod
    async def _resolve_join(ticket: Ticket[JoinResult], result: JoinResult, member_id: str, written: Written) -> None:
        """Resolve a ticket when what it tells of is replicated, or could not be."""
        try:
            await written.wait()
        except BrokerError as error:
            result = JoinResult(error.error, member_id)
        ticket.resolve(result)

    def sync(
        self,
        group_id: str,
        *,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        assignments: Mapping[str, bytes],
    ) -> Ticket[SyncResult]:
        """SyncGroup: the assignment, when it is known. Raises as `join` does; other errors are in the result."""
        check_group_id(group_id)
        shard, group = self._member_group(group_id)
        if isinstance(group, ConsumerGroup):
            result = classic_members.sync(
                group,
                member_id,
                instance_id,
                generation,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                topics=self._view,
                now=self._now(),
            )
            self._schedule(group)
            return Ticket(result)
        ticket = group.sync(
            member_id,
            instance_id,
            generation,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments,
        )
        self._settle(shard, group)
        return ticket

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Heartbeat. Raises INVALID_GROUP_ID, NOT_COORDINATOR, and as `Group.heartbeat` does.

        While the group is loaded nothing is wrong with it: its sessions start when it is.
        """
        check_group_id(group_id)
        try:
            _, group = self._member_group(group_id)
        except BrokerError as error:
            if error.error is Error.COORDINATOR_LOAD_IN_PROGRESS:
                return
            raise
        try:
            if isinstance(group, ConsumerGroup):
                classic_members.heartbeat(group, member_id, instance_id, generation, self._now())
            else:
                group.heartbeat(member_id, instance_id, generation, trio.current_time())
        finally:
            self._schedule(group)

    def leave(self, group_id: str, members: Sequence[tuple[str, str | None]]) -> list[Error]:
        """LeaveGroup for several (member id, instance id): an error for each. Raises as `join` does."""
        check_group_id(group_id)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None or isinstance(group, ShareGroup | StreamsGroup):
            return [Error.UNKNOWN_MEMBER_ID] * len(members)
        if isinstance(group, ConsumerGroup):
            member_ids, errors = classic_members.leaving(group, members)
            if member_ids:
                self._take_out(shard, group, member_ids)
                self._schedule(group)
            return errors
        errors = group.leave(members, trio.current_time())
        self._settle(shard, group)
        return errors

    def consumer_heartbeat(self, group_id: str, request: Heartbeat) -> tuple[HeartbeatResult, Written | None]:
        """ConsumerGroupHeartbeat: the reply, and what has to be replicated before it may leave.

        A first heartbeat makes the group where it is not there, and turns a classic one into a consumer group.
        Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND, what `ConsumerGroup.heartbeat` raises,
        and `APPEND_ERRORS`.
        """
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if isinstance(group, ShareGroup | StreamsGroup):
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if not isinstance(group, ConsumerGroup):
            return self._first_heartbeat(shard, group_id, group, request)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave_consumer_group(shard, group, request)
        result = group.heartbeat(request, self._now())
        self._schedule(group)
        return result, self._store(shard, group)

    def keep_alive(self, group_id: str, member_id: str, epoch: int, client_id: str, client_host: str) -> bool:
        """A ConsumerGroupHeartbeat that says nothing new: whether nothing is new for the member either.

        Where that is not so nothing is done, and `consumer_heartbeat` is to be asked. Raises as it does.
        """
        group = self._shard(group_id).groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return False
        if not group.keep_alive(member_id, epoch, client_id, client_host, self._now()):
            return False
        self._schedule(group)
        return True

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often the members of a consumer group are told to send a heartbeat."""
        return self._limits.heartbeat_interval_ms(group_id)

    def _leave_consumer_group(
        self, shard: GroupShard, group: ConsumerGroup, request: Heartbeat
    ) -> tuple[HeartbeatResult, Written | None]:
        result = group.leave(request)
        if group.tables.has_changes:
            written = self._store(shard, group)
        else:
            written = self._take_out(shard, group, (result.member_id,))
            if not group.is_dead:
                self._schedule(group)
        return result, written

    def _first_heartbeat(
        self, shard: GroupShard, group_id: str, classic: Group | None, request: Heartbeat
    ) -> tuple[HeartbeatResult, Written | None]:
        """A member comes to a group that is not there, or that speaks the classic protocol so far."""
        if request.member_epoch != 0:
            text = (
                f"Consumer group {group_id} not found."
                if classic is None
                else f"Group {group_id} is not a consumer group."
            )
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, text)
        if classic is None:
            group = shard.new(ConsumerGroup, group_id)
        else:
            group = upgraded(classic, self._limits.migration_policy, self._limits, self._view)
        result = group.heartbeat(request, self._now())
        changes = group.tables.take_changes()
        with answering(APPEND_ERRORS):
            last_offset = shard.append_changes(group, changes, replaced=classic)
        if classic is not None:
            self._deadlines.forget(classic)
            classic.kill(Error.REBALANCE_IN_PROGRESS)
        group.resume(self._now())
        self._schedule(group)
        return result, shard.written(last_offset)


def check_group_id(group_id: str) -> None:
    if not group_id:
        raise BrokerError(Error.INVALID_GROUP_ID)
