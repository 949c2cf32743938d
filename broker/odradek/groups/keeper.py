"""How the changes of groups get into the log, and what time brings them: what all requests build on.

A group belongs to the partition of __consumer_offsets that its name hashes to; see `sharding`.

One task sleeps until the earliest deadline of all groups; see `deadlines`. Classic groups tell what they want stored
(`Group.unstored`), and go on when it is; of consumer groups the changes are stored at once, or undone.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.deadlines import Alarms
from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.group import Group
from odradek.groups.limits import GroupSettings
from odradek.groups.member import Store
from odradek.groups.migration import downgraded, may_downgrade
from odradek.groups.shard import AnyGroup, AssignedGroup, GroupShard
from odradek.groups.streams_group import StreamsGroup
from odradek.groups.timers import Now
from odradek.sharding import APPEND_ERRORS, Coordinator, Written, answering, translated
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["COMMIT_ERRORS", "GroupKeeper", "logging_failures"]

log = logging.getLogger(__name__)

COMMIT_ERRORS: Mapping[Error, Error] = {
    **APPEND_ERRORS,
    Error.MESSAGE_TOO_LARGE: Error.INVALID_COMMIT_OFFSET_SIZE,
    Error.RECORD_LIST_TOO_LARGE: Error.INVALID_COMMIT_OFFSET_SIZE,
}
"""What a commit answers for the error of its append: of what is too large its client knows the size."""


class GroupKeeper(Coordinator[GroupShard]):
    """The groups of the partitions of __consumer_offsets that this broker leads."""

    TOPIC = CONSUMER_OFFSETS
    KEEPS = "groups"

    def __init__(self, config: "BrokerConfig", clock: "Clock", view: "ClusterView") -> None:
        super().__init__(config, clock, view)
        self._limits = GroupSettings(config, view)
        self._deadlines: Alarms[AnyGroup] = Alarms()

    @property
    def _planned_partitions(self) -> int:
        return self._config.offsets_topic_num_partitions

    def _make_shard(self, partition: "Partition") -> GroupShard:
        return GroupShard(partition, self._config, self._clock, self._limits, self._view)

    # Inside

    def _member_group(self, group_id: str) -> tuple[GroupShard, Group | ConsumerGroup]:
        """The group of a request that only members send; share and streams groups have none of the classic protocol."""
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if isinstance(group, Group | ConsumerGroup):
            return shard, group
        raise BrokerError(Error.UNKNOWN_MEMBER_ID)

    def _settle(self, shard: GroupShard, group: Group) -> None:
        """Write what the group wants written, tell it the outcome, and heed its new deadline."""
        while group.unstored:
            store = group.unstored.pop(0)
            try:
                last_offset = shard.append_group(group, store)
            except BrokerError as error:
                self._stored(group, store, error)
                continue
            if shard.is_committed(last_offset):
                self._stored(group, store, None)
            else:
                self._start(self._settle_later, shard, group, store, last_offset)
        self._schedule(group)

    async def _settle_later(self, shard: GroupShard, group: Group, store: Store, last_offset: int) -> None:
        try:
            await shard.wait_committed(last_offset)
        except BrokerError as error:
            self._stored(group, store, error)
        else:
            self._stored(group, store, None)
        self._settle(shard, group)

    def _stored(self, group: Group, store: Store, error: BrokerError | None) -> None:
        if error is None:
            group.stored(store, Error.NONE, trio.current_time())
            return
        log.warning("generation %d of group %s was not stored: %s", store.generation, group.group_id, error)
        group.stored(store, translated(error, APPEND_ERRORS).error, trio.current_time())

    def _schedule(self, group: AnyGroup) -> None:
        self._deadlines.schedule(group, group.deadline)

    async def _watch_deadlines(self) -> None:
        while True:
            for group in await self._deadlines.due():
                shard = self._shards.get(self.partition_for(group.group_id))
                if shard is not None and shard.groups.get(group.group_id) is group:
                    with logging_failures("expiring members of", group):
                        self._expire(shard, group)

    def _expire(self, shard: GroupShard, group: AnyGroup) -> None:
        if isinstance(group, Group):
            group.expire(trio.current_time())
            self._settle(shard, group)
            return
        try:
            if isinstance(group, StreamsGroup):
                group.maybe_assign_delayed(self._now())
                self._store(shard, group)
            overdue = group.due(self._now())
            if overdue:
                log.info("group %s: the time of members %s is up", group.group_id, overdue)
                self._take_out(shard, group, overdue)
        except BrokerError:
            # They are looked at again when the next session ends; nobody gets their partitions meanwhile.
            group.resume(self._now())
            self._schedule(group)
            raise
        if not group.is_dead:
            self._schedule(group)

    # Consumer groups of KIP-848, and share groups

    def _now(self) -> Now:
        return Now(trio.current_time(), self._clock.now_ms())

    def _store(self, shard: GroupShard, group: AssignedGroup) -> Written | None:
        """Write the changes of a group to whose members the broker assigns; what is to be waited for, if anything.

        Raises `APPEND_ERRORS`, and the group is then as it was before.
        """
        changes: list[Any] = group.tables.take_changes()
        if not changes:
            return None
        try:
            last_offset = shard.append_changes(group, changes)
        except BrokerError as error:
            group.undo(changes)
            raise translated(error, APPEND_ERRORS) from None
        return shard.written(last_offset)

    def _take_out(self, shard: GroupShard, group: AssignedGroup, member_ids: Collection[str]) -> Written | None:
        """Have members of a group leave.

        When only members of the classic protocol stay in a consumer group, it becomes theirs.
        """
        if not isinstance(group, ConsumerGroup) or not may_downgrade(
            group, member_ids, self._limits.migration_policy, self._config
        ):
            group.fence(member_ids)
            return self._store(shard, group)
        classic, store = downgraded(group, member_ids, self._config, self._view)
        return self._downgrade(shard, group, classic, store, rebalance=True)

    def _downgrade(
        self, shard: GroupShard, group: ConsumerGroup, classic: Group, store: Store, *, rebalance: bool
    ) -> Written | None:
        with answering(APPEND_ERRORS):
            last_offset = shard.replace_by_classic(group, classic, store)
        log.info("group %s speaks the classic protocol now", group.group_id)
        self._deadlines.forget(group)
        now = trio.current_time()
        classic.resume(now)
        if rebalance:
            classic.begin_rebalance(now)
        self._settle(shard, classic)
        return shard.written(last_offset)

    def _begin(self, shard: GroupShard) -> None:
        now = self._now()
        for group in shard.groups.values():
            if isinstance(group, Group):
                group.resume(now.at)
                self._settle(shard, group)
            else:
                group.resume(now)
                self._schedule(group)

    def _drop(self, shard: GroupShard) -> None:
        """Stop serving the groups of a partition: who waits is told NOT_COORDINATOR."""
        super()._drop(shard)
        for group in shard.groups.values() if shard.loaded else ():
            if isinstance(group, Group):
                group.kill(Error.NOT_COORDINATOR)
            else:
                group.kill()
            self._deadlines.forget(group)


@contextmanager
def logging_failures(doing: str, group: AnyGroup) -> Iterator[None]:
    """For what nobody waits for: a failure is logged, and concerns this group only."""
    try:
        yield
    except BrokerError as error:
        log.warning("%s group %s failed: %s", doing, group.group_id, error)
    except Exception:
        log.exception("%s group %s failed", doing, group.group_id)
