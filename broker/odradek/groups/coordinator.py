"""The group coordinator: which broker keeps a group, its requests, what is written down, and what time brings.

A group belongs to the partition of __consumer_offsets that its name hashes to, and is kept by that partition's leader.
Everybody else answers NOT_COORDINATOR; the leader answers COORDINATOR_LOAD_IN_PROGRESS until it has read the partition.

Rules:

- The log comes first. An offset is visible when its commit is in the log and replicated; a generation gets its
  assignment, and a static member its place, when that is. What is deleted is gone when its deletion is in the log.
- Between an append and what it makes visible there may be a wait for replicas. The group is looked up again behind it.
- One task sleeps until the earliest deadline of all groups; see `deadlines`.

Public methods raise BrokerError; the codes that clients expect instead of an append's own are in `COMMIT_ERRORS` and
`STORE_ERRORS`.
"""

import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import trio

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.groups.deadlines import Deadlines
from odradek.groups.group import Group
from odradek.groups.member import JoinRequest, JoinResult, Store, SyncResult, Ticket
from odradek.groups.shard import NewOffset, Shard
from odradek.groups.usage import consumed_topics, expired_offsets
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["GroupCoordinator", "java_hash"]

R = TypeVar("R")

log = logging.getLogger(__name__)

LOADS_AT_ONCE = 2
"""Partitions that are read at a time: reading is mostly decoding, which threads do not make faster."""

MS_PER_MINUTE = 60_000

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


class GroupCoordinator:
    """The groups of the partitions of __consumer_offsets that this broker leads.

    `run` has to run while requests are served. `on_leader` and `on_resign` follow the leadership of partitions; those
    of other topics are not looked at.
    """

    def __init__(self, config: "BrokerConfig", clock: "Clock", view: "ClusterView") -> None:
        self._config = config
        self._clock = clock
        self._view = view
        self._shards: dict[int, Shard] = {}
        self._deadlines: Deadlines[Group] = Deadlines()
        self._nursery: trio.Nursery | None = None
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)
        self._sooner = trio.Event()
        self._sleeps_until = 0.0

    # Start, stop, and the partitions of this broker

    async def run(self) -> None:
        """Load partitions, and do what time brings, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                for shard in self._shards.values():
                    if not shard.loaded:
                        nursery.start_soon(self._load, shard)
                nursery.start_soon(self._expire_offsets_regularly)
                await self._watch_deadlines()
            finally:
                self._nursery = None

    def stop(self) -> None:
        """Give up every group: who waits is told NOT_COORDINATOR, and so is everyone who asks later."""
        for shard in list(self._shards.values()):
            self._drop(shard)

    def on_leader(self, partition: "Partition") -> None:
        """This broker leads `partition` now: its groups are loaded, at once if it is empty."""
        if partition.topic != CONSUMER_OFFSETS:
            return
        shard = self._shards[partition.index] = Shard(partition, self._config, self._clock)
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

    # Membership

    async def join(
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
    ) -> JoinResult:
        """JoinGroup: wait for the next generation.

        Raises INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, checked in this
        order; UNKNOWN_MEMBER_ID for a member of a group that is not there. Other errors are in the result.
        """
        _check_group_id(group_id)
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
        ticket = group.join(request, trio.current_time())
        self._settle(shard, group)
        return await _result(ticket)

    async def sync(
        self,
        group_id: str,
        *,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        assignments: Mapping[str, bytes],
    ) -> SyncResult:
        """SyncGroup: wait for the assignment. Raises as `join` does; other errors are in the result."""
        _check_group_id(group_id)
        shard, group = self._member_group(group_id)
        ticket = group.sync(
            member_id,
            instance_id,
            generation,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments,
        )
        self._settle(shard, group)
        return await _result(ticket)

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Heartbeat. Raises INVALID_GROUP_ID, NOT_COORDINATOR, and as `Group.heartbeat` does.

        While the group is loaded nothing is wrong with it: its sessions start when it is.
        """
        _check_group_id(group_id)
        try:
            _, group = self._member_group(group_id)
        except BrokerError as error:
            if error.error is Error.COORDINATOR_LOAD_IN_PROGRESS:
                return
            raise
        group.heartbeat(member_id, instance_id, generation, trio.current_time())
        self._schedule(group)

    def leave(self, group_id: str, members: Sequence[tuple[str, str | None]]) -> list[Error]:
        """LeaveGroup for several (member id, instance id): an error for each. Raises as `join` does."""
        _check_group_id(group_id)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            return [Error.UNKNOWN_MEMBER_ID] * len(members)
        errors = group.leave(members, trio.current_time())
        self._settle(shard, group)
        return errors

    # Offsets

    async def commit_offsets(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Sequence[NewOffset],
        *,
        retention_time_ms: int = -1,
        unknown_group: Error = Error.ILLEGAL_GENERATION,
    ) -> None:
        """OffsetCommit: return when the offsets are in the log, replicated, and visible.

        `retention_time_ms` is -1 for the broker's. A group that is not there is made for a commit without a generation,
        and `unknown_group` is raised for one with. Raises also NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, what
        `Group.check_commit` raises, and `COMMIT_ERRORS`.
        """
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is not None:
            group.check_commit(member_id, instance_id, generation, trio.current_time())
            self._schedule(group)
        elif generation >= 0:
            raise BrokerError(unknown_group)
        if not offsets:
            return
        try:
            commits, last_offset = shard.append_commits(group_id, offsets, retention_time_ms)
            if not shard.is_committed(last_offset):
                await shard.wait_committed(last_offset)
        except BrokerError as error:
            raise _translated(error, COMMIT_ERRORS) from None
        if self._shards.get(shard.partition.index) is not shard:
            raise BrokerError(Error.NOT_COORDINATOR)
        shard.put_offsets(group_id, commits)

    async def commit_transactional_offsets(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Sequence[NewOffset],
        *,
        producer: tuple[int, int],
    ) -> None:
        """TxnOffsetCommit: return when the offsets are in the log and replicated; the marker makes them visible.

        `producer` is the id and epoch of the transaction's producer. Raises INVALID_GROUP_ID, ILLEGAL_GENERATION for a
        group that is not there, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, what `Group.check_transactional_commit`
        raises, INVALID_PRODUCER_EPOCH, and `COMMIT_ERRORS`.
        """
        _check_group_id(group_id)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is not None:
            group.check_transactional_commit(member_id, instance_id, generation)
        elif generation >= 0:
            raise BrokerError(Error.ILLEGAL_GENERATION)
        else:
            shard.create(group_id)
        if offsets:
            with _answering(COMMIT_ERRORS):
                _, last_offset = shard.append_commits(group_id, offsets, producer=producer)
                if not shard.is_committed(last_offset):
                    await shard.wait_committed(last_offset)

    def check_loaded(self, index: int) -> None:
        """Raise NOT_LEADER_OR_FOLLOWER unless the groups of a partition are kept here, and in memory."""
        shard = self._shards.get(index)
        if shard is None or not shard.loaded:
            raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER)

    def end_transaction(self, index: int, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer is in a partition of __consumer_offsets, for good."""
        shard = self._shards.get(index)
        if shard is not None:
            shard.end_transaction(producer_id, committed=committed)

    def unstable_offsets(self, group_id: str) -> Collection[tuple[str, int]]:
        """The (topic, partition)s whose offset an open transaction may change. Raises as `find` does."""
        return self._shard(group_id).pending.of_group(group_id)

    async def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> list[Error]:
        """OffsetDelete: an error for each (topic, partition), GROUP_SUBSCRIBED_TO_TOPIC where it is consumed (KIP-496).

        Raises INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for a group with members that are no consumers,
        and as `commit_offsets` does.
        """
        _check_group_id(group_id)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        in_use = consumed_topics(group, {topic for topic, _ in partitions})
        known = [
            (topic, index) for topic, index in partitions if topic not in in_use and group.offsets.get(topic, index)
        ]
        await self._remove_offsets(shard, group, known)
        return [Error.GROUP_SUBSCRIBED_TO_TOPIC if topic in in_use else Error.NONE for topic, _ in partitions]

    async def forget_topic(self, topic: str) -> None:
        """A topic is deleted: forget what was committed for it. A failure is logged; nobody waits for an answer."""
        for shard in list(self._shards.values()):
            for group in list(shard.groups.values()) if shard.loaded else ():
                found = [(topic, partition) for partition in group.offsets.topics.get(topic, ())]
                with _logging(f"forgetting topic {topic} in", group):
                    await self._remove_offsets(shard, group, found)

    # Administration

    def find(self, group_id: str) -> Group | None:
        """The group, None when there is none. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        return self._shard(group_id).groups.get(group_id)

    def all_groups(self) -> list[Group]:
        """The groups of this broker. Raises COORDINATOR_LOAD_IN_PROGRESS while they are not all there."""
        if not all(shard.loaded for shard in self._shards.values()):
            raise BrokerError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return [group for shard in self._shards.values() for group in shard.groups.values()]

    async def delete_group(self, group_id: str) -> None:
        """DeleteGroups: delete a group without members, and its offsets.

        Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, and as `commit_offsets` does.
        """
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if group.members:
            raise BrokerError(Error.NON_EMPTY_GROUP)
        await self._remove_group(shard, group)

    # Inside

    def _shard(self, group_id: str) -> Shard:
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            raise BrokerError(Error.NOT_COORDINATOR)
        if not shard.loaded:
            raise BrokerError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _member_group(self, group_id: str) -> tuple[Shard, Group]:
        """The group of a request that only members send."""
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None:
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
        group.stored(store, _translated(error, STORE_ERRORS).error, trio.current_time())

    def _schedule(self, group: Group) -> None:
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
                    with _logging("expiring members of", group):
                        group.expire(now)
                        self._settle(shard, group)

    async def _expire_offsets_regularly(self) -> None:
        while True:
            await trio.sleep(self._config.offsets_retention_check_interval_ms / 1000)
            await self._expire_offsets()

    async def _expire_offsets(self) -> None:
        """Forget offsets that outlived their retention time, and groups that have nothing left."""
        retention_ms = self._config.offsets_retention_minutes * MS_PER_MINUTE
        for shard in list(self._shards.values()):
            for group in list(shard.groups.values()) if shard.loaded else ():
                with _logging("expiring the offsets of", group):
                    pending = shard.pending.of_group(group.group_id)
                    expired = expired_offsets(group, self._clock.now_ms(), retention_ms)
                    await self._remove_offsets(shard, group, [each for each in expired if each not in pending])
                    if group.is_idle and not group.offsets and not pending:
                        await self._remove_group(shard, group)

    async def _remove_offsets(self, shard: Shard, group: Group, partitions: Sequence[tuple[str, int]]) -> None:
        """Forget offsets, in the log and then here."""
        if partitions:
            with _answering(COMMIT_ERRORS):
                await shard.wait_committed(shard.remove_offsets(group, partitions))

    async def _remove_group(self, shard: Shard, group: Group) -> None:
        """Forget a group and its offsets, in the log and then here."""
        with _answering(COMMIT_ERRORS):
            last_offset = shard.remove_group(group)
            self._deadlines.forget(group)
            await shard.wait_committed(last_offset)

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
        now = trio.current_time()
        for group in shard.groups.values():
            group.resume(now)
            self._settle(shard, group)

    def _drop(self, shard: Shard) -> None:
        """Stop serving the groups of a partition."""
        if self._shards.get(shard.partition.index) is shard:
            del self._shards[shard.partition.index]
        for group in shard.groups.values() if shard.loaded else ():
            group.kill(Error.NOT_COORDINATOR)
            self._deadlines.forget(group)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise BrokerError(Error.INVALID_GROUP_ID)


@contextmanager
def _answering(errors: Mapping[Error, Error]) -> Iterator[None]:
    """Raise, for the error of an append, the one that clients of a coordinator expect."""
    try:
        yield
    except BrokerError as error:
        raise _translated(error, errors) from None


@contextmanager
def _logging(doing: str, group: Group) -> Iterator[None]:
    """For what nobody waits for: a failure is logged, and concerns this group only."""
    try:
        yield
    except BrokerError as error:
        log.warning("%s group %s failed: %s", doing, group.group_id, error)
    except Exception:
        log.exception("%s group %s failed", doing, group.group_id)


def _translated(error: BrokerError, errors: Mapping[Error, Error]) -> BrokerError:
    return BrokerError(errors.get(error.error, error.error), error.message)


async def _result(ticket: Ticket[R]) -> R:
    """What a ticket is resolved with. The group has a deadline for everything that it owes."""
    if ticket.result is None:
        resolved = trio.Event()
        ticket.on_resolved(resolved.set)
        await resolved.wait()
    assert ticket.result is not None
    return ticket.result
