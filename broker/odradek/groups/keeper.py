"""Which broker keeps a group, how its changes get into the log, and what time brings: what all requests build on.

A group belongs to the partition of __consumer_offsets that its name hashes to, and is kept by that partition's leader.
Everybody else answers NOT_COORDINATOR; the leader answers COORDINATOR_LOAD_IN_PROGRESS until it has read the partition.

One task sleeps until the earliest deadline of all groups; see `deadlines`. Classic groups tell what they want stored
(`Group.unstored`), and go on when it is; of consumer groups the changes are stored at once, or undone.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import trio

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.groups.consumer_group import ConsumerGroup, Now
from odradek.groups.deadlines import Deadlines
from odradek.groups.group import Group
from odradek.groups.limits import GroupSettings
from odradek.groups.member import Store
from odradek.groups.migration import downgraded, may_downgrade
from odradek.groups.shard import AnyGroup, Shard
from odradek.groups.share_group import ShareGroup
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["COMMIT_ERRORS", "STORE_ERRORS", "GroupKeeper", "Written", "java_hash", "logging_failures", "translated"]

log = logging.getLogger(__name__)

LOADS_AT_ONCE = 2
"""Partitions that are read at a time: reading is mostly decoding, which threads do not make faster."""

COMMIT_ERRORS: Mapping[Error, Error] = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.INVALID_COMMIT_OFFSET_SIZE,
    Error.RECORD_LIST_TOO_LARGE: Error.INVALID_COMMIT_OFFSET_SIZE,
    Error.INVALID_FETCH_SIZE: Error.INVALID_COMMIT_OFFSET_SIZE,
}
"""What a commit answers for the error of its append."""

STORE_ERRORS: Mapping[Error, Error] = {
    **COMMIT_ERRORS,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
}
"""What members are told for the error of the append of their group."""


@lru_cache(maxsize=8192)
def java_hash(text: str) -> int:
    """Java's `String.hashCode`, which decides where a group is kept: over UTF-16 code units, in 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


class Written:
    """Records in the log that are not replicated yet."""

    __slots__ = ("_last_offset", "_shard")

    def __init__(self, shard: Shard, last_offset: int) -> None:
        self._shard = shard
        self._last_offset = last_offset

    async def wait(self, errors: Mapping[Error, Error]) -> None:
        """Wait until they are. Raises what `errors` has for the error of the append."""
        try:
            await self._shard.wait_committed(self._last_offset)
        except BrokerError as error:
            raise translated(error, errors) from None


class GroupKeeper:
    """The groups of the partitions of __consumer_offsets that this broker leads.

    `on_leader` and `on_resign` follow the leadership of partitions; those of other topics are not looked at.
    """

    def __init__(self, config: "BrokerConfig", clock: "Clock", view: "ClusterView") -> None:
        self._config = config
        self._clock = clock
        self._view = view
        self._limits = GroupSettings(config, view)
        self._shards: dict[int, Shard] = {}
        self._deadlines: Deadlines[AnyGroup] = Deadlines()
        self._nursery: trio.Nursery | None = None
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)
        self._sooner = trio.Event()
        self._sleeps_until = 0.0

    def stop(self) -> None:
        """Give up every group: who waits is told NOT_COORDINATOR, and so is everyone who asks later."""
        for shard in list(self._shards.values()):
            self._drop(shard)

    def on_leader(self, partition: "Partition") -> None:
        """This broker leads `partition` now: its groups are loaded, at once if it is empty."""
        if partition.topic != CONSUMER_OFFSETS:
            return
        shard = self._shards[partition.index] = Shard(partition, self._config, self._clock, self._limits, self._view)
        if not shard.loaded and self._nursery is not None:
            self._nursery.start_soon(self._load, shard)

    def on_resign(self, partition: "Partition") -> None:
        """This broker does not lead `partition` any more: its groups are another's."""
        if partition.topic == CONSUMER_OFFSETS and partition.index in self._shards:
            self._drop(self._shards[partition.index])

    def partition_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that keeps a group."""
        topic = self._view.topics.get(CONSUMER_OFFSETS)
        count = self._config.offsets_topic_num_partitions if topic is None else len(topic.partitions)
        # The mask makes Java's one number without an absolute value 0, as Kafka does.
        return (abs(java_hash(group_id)) & 0x7FFFFFFF) % count

    # Inside

    def _shard(self, group_id: str) -> Shard:
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            raise BrokerError(Error.NOT_COORDINATOR)
        if not shard.loaded:
            raise BrokerError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _member_group(self, group_id: str) -> tuple[Shard, Group | ConsumerGroup]:
        """The group of a request that only members send; share groups have none of the classic protocol."""
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None or isinstance(group, ShareGroup):
            raise BrokerError(Error.UNKNOWN_MEMBER_ID)
        return shard, group

    def _settle(self, shard: Shard, group: Group) -> None:
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
                assert self._nursery is not None, "requests are served only while `run` does"
                self._nursery.start_soon(self._settle_later, shard, group, store, last_offset)
        self._schedule(group)

    async def _settle_later(self, shard: Shard, group: Group, store: Store, last_offset: int) -> None:
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
        group.stored(store, translated(error, STORE_ERRORS).error, trio.current_time())

    def _schedule(self, group: AnyGroup) -> None:
        self._deadlines.schedule(group, group.deadline)
        if group.deadline < self._sleeps_until:
            self._sooner.set()

    async def _watch_deadlines(self) -> None:
        while True:
            self._sleeps_until = self._deadlines.next
            self._sooner = trio.Event()
            with trio.move_on_at(self._sleeps_until):
                await self._sooner.wait()
            now = trio.current_time()
            for group in self._deadlines.pop_due(now):
                shard = self._shards.get(self.partition_for(group.group_id))
                if shard is not None and shard.groups.get(group.group_id) is group:
                    with logging_failures("expiring members of", group):
                        self._expire(shard, group, now)

    def _expire(self, shard: Shard, group: AnyGroup, now: float) -> None:
        if isinstance(group, Group):
            group.expire(now)
            self._settle(shard, group)
            return
        overdue = group.due(self._now())
        if overdue:
            log.info("group %s: the time of members %s is up", group.group_id, overdue)
            try:
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

    def _store(self, shard: Shard, group: ConsumerGroup) -> Written | None:
        """Write the changes of a consumer group; what is to be waited for, if anything.

        Raises `STORE_ERRORS`, and the group is then as it was before.
        """
        changes = group.tables.take_changes()
        if not changes:
            return None
        try:
            last_offset = shard.append_changes(group, changes)
        except BrokerError as error:
            group.undo(changes)
            raise translated(error, STORE_ERRORS) from None
        return None if shard.is_committed(last_offset) else Written(shard, last_offset)

    def _store_share_group(self, shard: Shard, group: ShareGroup) -> Written | None:
        """Write the changes of a share group, as `_store` does those of a consumer group."""
        changes = group.tables.take_changes()
        if not changes:
            return None
        try:
            last_offset = shard.append_share_changes(group, changes)
        except BrokerError as error:
            group.undo(changes)
            raise translated(error, STORE_ERRORS) from None
        return None if shard.is_committed(last_offset) else Written(shard, last_offset)

    def _take_out(self, shard: Shard, group: ConsumerGroup | ShareGroup, member_ids: Collection[str]) -> Written | None:
        """Have members of a group leave.

        When only members of the classic protocol stay in a consumer group, it becomes theirs.
        """
        if isinstance(group, ShareGroup):
            group.fence(member_ids)
            return self._store_share_group(shard, group)
        if not may_downgrade(group, member_ids, self._limits.migration_policy, self._config):
            group.fence(member_ids)
            return self._store(shard, group)
        classic, store = downgraded(group, member_ids, self._config, self._view)
        return self._downgrade(shard, group, classic, store, rebalance=True)

    def _downgrade(
        self, shard: Shard, group: ConsumerGroup, classic: Group, store: Store, *, rebalance: bool
    ) -> Written | None:
        try:
            last_offset = shard.replace_by_classic(group, classic, store)
        except BrokerError as error:
            raise translated(error, STORE_ERRORS) from None
        log.info("group %s speaks the classic protocol now", group.group_id)
        self._deadlines.forget(group)
        now = trio.current_time()
        classic.resume(now)
        if rebalance:
            classic.begin_rebalance(now)
        self._settle(shard, classic)
        return None if shard.is_committed(last_offset) else Written(shard, last_offset)

    async def _load(self, shard: Shard) -> None:
        """Read a partition; give it up, so that clients look elsewhere, when it cannot be read."""
        index = shard.partition.index
        try:
            while not shard.loaded:
                await trio.to_thread.run_sync(shard.load_some, limiter=self._loads)
                if self._shards.get(index) is not shard:
                    return
        except Exception:
            log.exception("%s-%d cannot be loaded, its groups are not served", CONSUMER_OFFSETS, index)
            self._drop(shard)
            return
        log.info("loaded %d groups of %s-%d", len(shard.groups), CONSUMER_OFFSETS, index)
        self._activate(shard)

    def _activate(self, shard: Shard) -> None:
        now = self._now()
        for group in shard.groups.values():
            if isinstance(group, Group):
                group.resume(now.at)
                self._settle(shard, group)
            else:
                group.resume(now)
                self._schedule(group)

    def _drop(self, shard: Shard) -> None:
        """Stop serving the groups of a partition."""
        if self._shards.get(shard.partition.index) is shard:
            del self._shards[shard.partition.index]
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


def translated(error: BrokerError, errors: Mapping[Error, Error]) -> BrokerError:
    return BrokerError(errors.get(error.error, error.error), error.message)
