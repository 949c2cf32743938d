"""The group coordinator: its requests, what is written down, and what time brings.

A group belongs to the partition of __consumer_offsets that its name hashes to; see `sharding`.

Rules:

- The log comes first. An offset is visible when its commit is in the log and replicated; a generation gets its
  assignment, and a static member its place, when that is. What is deleted is gone when its deletion is in the log.
- Between an append and what it makes visible there may be a wait for replicas. The group is looked up again behind it.
- One task sleeps until the earliest deadline of all groups; see `deadlines`.

Public methods raise BrokerError; the codes that clients expect instead of an append's own are in `COMMIT_ERRORS` and
`APPEND_ERRORS`.
"""

from collections.abc import Collection, Coroutine, Iterable, Iterator, Sequence
from typing import Any

import trio

from odradek.groups.commits import NewOffsets
from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.group import Group
from odradek.groups.keeper import COMMIT_ERRORS, logging_failures
from odradek.groups.membership import check_group_id
from odradek.groups.offsets import Commit
from odradek.groups.shard import AnyGroup, GroupShard
from odradek.groups.share_group import ShareGroup
from odradek.groups.streams_group import StreamsGroup
from odradek.groups.streams_membership import StreamsMembership
from odradek.groups.usage import consumed_topics, expired_offsets
from odradek.sharding import Chore, answering, translated
from odradek_protocol.errors import BrokerError, Error

__all__ = ["GroupCoordinator"]

MS_PER_MINUTE = 60_000

FIRST_WITH_GROUP_ID_NOT_FOUND = 9
"""The first version of OffsetCommit in which a group that is not there has a code of its own."""


class GroupCoordinator(StreamsMembership):
    """The groups of this broker: their members, their offsets, and their administration."""

    def _chores(self) -> Iterable[Chore]:
        return self._expire_offsets_regularly, self._watch_deadlines

    # Offsets

    def commit_offsets(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Sequence[NewOffsets],
        *,
        retention_time_ms: int = -1,
        version: int = 8,
    ) -> Coroutine[Any, Any, None] | None:
        """OffsetCommit: done where this gives None; else what it gives has to be awaited, for replicas.

        Then the offsets are in the log, replicated, and visible. `retention_time_ms` is -1 for the broker's; `version`
        is that of the request. A group that is not there is made for a commit without a generation; for one with a
        generation it is ILLEGAL_GENERATION, from version 9 on GROUP_ID_NOT_FOUND. Raises also NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, what the `check_commit` of the group raises, and `COMMIT_ERRORS`.
        """
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if isinstance(group, Group):
            group.check_commit(member_id, instance_id, generation)
            if generation >= 0:
                group.keep_session(member_id, trio.current_time())
                self._schedule(group)
        elif isinstance(group, ShareGroup):
            raise _not_a_consumer_group(group_id)
        elif group is not None:
            group.check_commit(member_id, generation, version, _partitions(offsets))
        elif generation >= 0:
            raise BrokerError(
                Error.GROUP_ID_NOT_FOUND if version >= FIRST_WITH_GROUP_ID_NOT_FOUND else Error.ILLEGAL_GENERATION
            )
        if not offsets:
            return None
        try:
            commits, last_offset = shard.append_commits(group_id, offsets, retention_time_ms)
        except BrokerError as error:
            raise translated(error, COMMIT_ERRORS) from None
        if not shard.is_committed(last_offset):
            doing = f"committing offsets of group {group_id}"
            return self._see_through(doing, self._put_committed, shard, group_id, commits, last_offset)
        shard.put_offsets(group_id, commits)
        return None

    async def _put_committed(
        self, shard: GroupShard, group_id: str, commits: Sequence[Commit], last_offset: int
    ) -> None:
        with answering(COMMIT_ERRORS):
            await shard.wait_committed(last_offset)
        if not self._keeps(shard):
            raise BrokerError(Error.NOT_COORDINATOR)
        shard.put_offsets(group_id, commits)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Decide whether who says to be a member of a group may be told its offsets.

        Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION, and as `find` does.
        """
        group = self.find(group_id)
        if isinstance(group, ShareGroup):
            raise _not_a_consumer_group(group_id)
        if isinstance(group, ConsumerGroup | StreamsGroup):
            group.check_fetch(member_id, epoch)

    async def commit_transactional_offsets(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Sequence[NewOffsets],
        *,
        producer: tuple[int, int],
    ) -> None:
        """TxnOffsetCommit: return when the offsets are in the log and replicated; the marker makes them visible.

        `producer` is the id and epoch of the transaction's producer. Raises INVALID_GROUP_ID, ILLEGAL_GENERATION for a
        group that is not there, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, what the
        `check_transactional_commit` of the group raises, INVALID_PRODUCER_EPOCH, and `COMMIT_ERRORS`.
        """
        check_group_id(group_id)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if isinstance(group, Group):
            group.check_transactional_commit(member_id, instance_id, generation)
        elif isinstance(group, ShareGroup):
            raise _not_a_consumer_group(group_id)
        elif group is not None:
            group.check_transactional_commit(member_id, instance_id, generation, _partitions(offsets))
        elif generation >= 0:
            raise BrokerError(Error.ILLEGAL_GENERATION)
        else:
            shard.create(group_id)
        if offsets:
            with answering(COMMIT_ERRORS):
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
        check_group_id(group_id)
        shard = self._shard(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if isinstance(group, ShareGroup):
            raise _not_a_consumer_group(group_id)
        in_use = consumed_topics(group, {topic for topic, _ in partitions})
        known = [
            (topic, index) for topic, index in partitions if topic not in in_use and group.offsets.get(topic, index)
        ]
        await self._remove_offsets(shard, group, known)
        return [Error.GROUP_SUBSCRIBED_TO_TOPIC if topic in in_use else Error.NONE for topic, _ in partitions]

    async def forget_topic(self, topic: str) -> None:
        """A topic is deleted: forget what was committed for it. A failure is logged; nobody waits for an answer."""
        for shard in self._loaded_shards():
            for group in list(shard.groups.values()):
                if isinstance(group, ShareGroup):
                    self._forget_shared_topic(shard, group, topic)
                found = [(topic, partition) for partition in group.offsets.topics.get(topic, ())]
                with logging_failures(f"forgetting topic {topic} in", group):
                    await self._remove_offsets(shard, group, found)

    # Administration

    def find(self, group_id: str) -> AnyGroup | None:
        """The group, None when there is none. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        return self._shard(group_id).groups.get(group_id)

    def all_groups(self) -> list[AnyGroup]:
        """The groups of this broker. Raises COORDINATOR_LOAD_IN_PROGRESS while they are not all there."""
        return [group for shard in self._all_shards() for group in shard.groups.values()]

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
        if isinstance(group, ShareGroup):
            await self._delete_states(shard, group)
        await self._remove_group(shard, group)

    # Inside

    async def _expire_offsets_regularly(self) -> None:
        while True:
            await trio.sleep(self._config.offsets_retention_check_interval_ms / 1000)
            await self._expire_offsets()

    async def _expire_offsets(self) -> None:
        """Forget offsets that outlived their retention time, and groups that have nothing left."""
        retention_ms = self._config.offsets_retention_minutes * MS_PER_MINUTE
        for shard in self._loaded_shards():
            for group in list(shard.groups.values()):
                if isinstance(group, ShareGroup):
                    continue
                with logging_failures("expiring the offsets of", group):
                    pending = shard.pending.of_group(group.group_id)
                    expired = expired_offsets(group, self._clock.now_ms(), retention_ms)
                    await self._remove_offsets(shard, group, [each for each in expired if each not in pending])
                    if group.is_idle and not group.offsets and not pending:
                        await self._remove_group(shard, group)

    async def _remove_offsets(self, shard: GroupShard, group: AnyGroup, partitions: Sequence[tuple[str, int]]) -> None:
        """Forget offsets, in the log and then here."""
        if partitions:
            with answering(COMMIT_ERRORS):
                await shard.wait_committed(shard.remove_offsets(group, partitions))

    async def _remove_group(self, shard: GroupShard, group: AnyGroup) -> None:
        """Forget a group and its offsets, in the log and then here."""
        with answering(COMMIT_ERRORS):
            last_offset = shard.remove_group(group)
            self._deadlines.forget(group)
            await shard.wait_committed(last_offset)


def _partitions(offsets: Sequence[NewOffsets]) -> Iterator[tuple[str, int]]:
    """The (topic, partition)s of a commit, for who asks."""
    return ((new.topic, partition) for new in offsets for partition in new.partitions)


def _not_a_consumer_group(group_id: str) -> BrokerError:
    return BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
