"""Requests to share groups: of members, and of administrators for the offsets at which a group is.

The group coordinator keeps members and their partitions, the share coordinator how far a group has come in each
partition (`ShareStates`). What the latter has a state of, the group remembers; only that is assigned. Between asking
the share coordinator and its answer the group says that it is asked, so that after a crash it is asked again.

Public methods raise BrokerError.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from odradek.groups.keeper import logging_failures
from odradek.groups.membership import Membership
from odradek.groups.shard import GroupShard
from odradek.groups.share_group import ShareGroup, ShareHeartbeat, ShareHeartbeatResult
from odradek.groups.share_state import NamedPartitions
from odradek.sharding import Written
from odradek_protocol.errors import BrokerError, Error

__all__ = ["ShareMembership", "ShareStateSummary", "ShareStates"]

log = logging.getLogger(__name__)

LEAVE_EPOCH = -1
"""The member epoch that says that a member leaves."""

NOWHERE = -1
"""A start offset that is to be found out when a member reads the partition first."""


class ShareStateSummary(NamedTuple):
    """Where a group is in a partition."""

    start_offset: int
    leader_epoch: int
    delivery_complete_count: int


class ShareStates(Protocol):
    """The share coordinator, as the group coordinator sees it. Each method raises BrokerError."""

    async def initialize(
        self, group_id: str, topic_id: bytes, partition: int, *, state_epoch: int, start_offset: int
    ) -> None:
        """Begin with a partition, or begin again elsewhere."""

    async def delete(self, group_id: str, topic_id: bytes, partition: int) -> None:
        """Forget a partition."""

    async def summarize(self, group_id: str, topic_id: bytes, partition: int) -> ShareStateSummary:
        """Tell where the group is."""


class ShareMembership(Membership):
    """What is asked of the coordinator of share groups. `share_states` is to be set before requests are served."""

    share_states: ShareStates

    def share_heartbeat(self, group_id: str, request: ShareHeartbeat) -> tuple[ShareHeartbeatResult, Written | None]:
        """ShareGroupHeartbeat: the reply, and what has to be replicated before it may leave.

        A first heartbeat makes the group. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND,
        what `ShareGroup.heartbeat` raises, and `APPEND_ERRORS`.
        """
        shard = self._shard(group_id)
        if request.member_epoch == LEAVE_EPOCH:
            group = self._share_group(shard, group_id)
            result = group.leave(request.member_id)
            return result, self._store(shard, group)
        if group_id not in shard.groups:
            if request.member_epoch != 0:
                raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
            group = shard.new(ShareGroup, group_id)
        else:
            group = self._share_group(shard, group_id)
        result = group.heartbeat(request, self._now())
        missing = group.begin_states(self._now())
        written = self._store(shard, group)
        self._schedule(group)
        if missing:
            self._start(self._begin_states, shard, group, missing)
        return result, written

    def share_heartbeat_interval_ms(self, group_id: str) -> int:
        """How often the members of a share group are told to send a heartbeat."""
        return self._limits.share_heartbeat_interval_ms(group_id)

    def find_share_group(self, group_id: str) -> ShareGroup:
        """The share group of that name. GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        return self._share_group(self._shard(group_id), group_id)

    async def alter_share_offsets(
        self, group_id: str, offsets: Mapping[str, Mapping[int, int]]
    ) -> dict[tuple[str, int], BrokerError | None]:
        """AlterShareGroupOffsets: let a group without members go on at these offsets; an error for each partition.

        Makes the group where it is not there. Raises INVALID_GROUP_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group
        of another kind, and as `share_heartbeat` does.
        """
        if not group_id:
            raise BrokerError(Error.INVALID_GROUP_ID, "The group id is invalid.")
        shard = self._shard(group_id)
        is_new = group_id not in shard.groups
        group = shard.new(ShareGroup, group_id) if is_new else self._share_group(shard, group_id)
        if group.members:
            raise BrokerError(Error.NON_EMPTY_GROUP, "The group is not empty.")
        results: dict[tuple[str, int], BrokerError | None] = {}
        known: dict[bytes, tuple[str, frozenset[int]]] = {}
        for name, of_topic in offsets.items():
            topic = self._view.topics.get(name)
            count = 0 if topic is None else len(topic.partitions)
            for index in of_topic:
                unknown = BrokerError(
                    Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
                )
                results[name, index] = None if 0 <= index < count else unknown
            found = frozenset(index for index in of_topic if 0 <= index < count)
            if topic is not None and found:
                known[topic.topic_id] = name, found
        group.change_topics(group.tables.topics.with_initializing(known))
        await self._wait(self._store(shard, group))
        for topic_id, (name, indexes) in known.items():
            for index in indexes:
                try:
                    await self.share_states.initialize(
                        group_id,
                        topic_id,
                        index,
                        state_epoch=group.tables.epoch.epoch,
                        start_offset=offsets[name][index],
                    )
                except BrokerError as error:
                    results[name, index] = error
        begun = {
            topic_id: (name, frozenset(index for index in indexes if results[name, index] is None))
            for topic_id, (name, indexes) in known.items()
        }
        await self._end_states(shard, group, {key: each for key, each in begun.items() if each[1]}, succeeded=True)
        return results

    async def delete_share_offsets(self, group_id: str, names: Sequence[str]) -> dict[str, BrokerError | None]:
        """DeleteShareGroupOffsets: let a group without members forget topics; an error for each.

        Raises INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, and as `share_heartbeat` does.
        """
        if not group_id:
            raise BrokerError(Error.INVALID_GROUP_ID, "The group id is invalid.")
        shard = self._shard(group_id)
        group = self._share_group(shard, group_id)
        if group.members:
            raise BrokerError(Error.NON_EMPTY_GROUP, "The group is not empty.")
        results: dict[str, BrokerError | None] = {}
        topics = group.tables.topics
        found: dict[bytes, str] = {}
        for name in names:
            topic = self._view.topics.get(name)
            if topic is None:
                text = "This server does not host this topic-partition."
                results[name] = BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, text)
            elif topic.topic_id in topics.initialized or topic.topic_id in topics.deleting:
                found[topic.topic_id] = name
            else:
                text = "There is no offset information to delete."
                results[name] = BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, text)
        group.change_topics(topics.with_deleting(found))
        await self._wait(self._store(shard, group))
        for topic_id, name in found.items():
            count = len(self._view.topics_by_id[topic_id].partitions) if topic_id in self._view.topics_by_id else 0
            try:
                for index in range(count):
                    await self.share_states.delete(group_id, topic_id, index)
            except BrokerError as error:
                results[name] = error
            else:
                results[name] = None
        deleted = frozenset(topic_id for topic_id, name in found.items() if results[name] is None)
        group.change_topics(group.tables.topics.without_deleting(deleted))
        await self._wait(self._store(shard, group))
        return results

    def shared_partitions(self, group_id: str) -> NamedPartitions:
        """The partitions in which a group is anywhere; none for a group that is not there. Raises as `find` does."""
        group = self._shard(group_id).groups.get(group_id)
        return group.tables.topics.initialized if isinstance(group, ShareGroup) else {}

    # Inside

    def _share_group(self, shard: GroupShard, group_id: str) -> ShareGroup:
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    async def _begin_states(self, shard: GroupShard, group: ShareGroup, partitions: NamedPartitions) -> None:
        """Have the share coordinator begin with partitions. A failure is logged; a later heartbeat asks again."""
        with logging_failures("beginning with partitions of share", group):
            try:
                for topic_id, index in _each(partitions):
                    await self.share_states.initialize(
                        group.group_id,
                        topic_id,
                        index,
                        state_epoch=group.tables.epoch.epoch,
                        start_offset=NOWHERE,
                    )
            except BrokerError:
                await self._end_states(shard, group, partitions, succeeded=False)
                raise
            await self._end_states(shard, group, partitions, succeeded=True)

    async def _end_states(
        self, shard: GroupShard, group: ShareGroup, partitions: NamedPartitions, *, succeeded: bool
    ) -> None:
        if shard.groups.get(group.group_id) is group:
            group.end_states(partitions, succeeded=succeeded)
            await self._wait(self._store(shard, group))

    async def _delete_states(self, shard: GroupShard, group: ShareGroup) -> None:
        """Have the share coordinator forget a group that is about to be deleted."""
        topics = group.tables.topics
        names = {topic_id: name for topic_id, (name, _) in [*topics.initialized.items(), *topics.initializing.items()]}
        group.change_topics(topics.with_deleting(names).without_initializing(topics.initializing))
        await self._wait(self._store(shard, group))
        for topic_id in group.tables.topics.deleting:
            topic = self._view.topics_by_id.get(topic_id)
            for index in range(0 if topic is None else len(topic.partitions)):
                await self.share_states.delete(group.group_id, topic_id, index)
        if group.members:
            raise BrokerError(Error.NON_EMPTY_GROUP)

    def _forget_shared_topic(self, shard: GroupShard, group: ShareGroup, name: str) -> None:
        """A topic is deleted: there is no state of it any more."""
        topics = group.tables.topics
        named = [*topics.initialized.items(), *topics.initializing.items()]
        gone = frozenset(topic_id for topic_id, each in named if each[0] == name)
        gone |= frozenset(topic_id for topic_id, each in topics.deleting.items() if each == name)
        with logging_failures(f"forgetting topic {name} in", group):
            group.change_topics(topics.without_topics(gone))
            self._store(shard, group)

    async def _wait(self, written: Written | None) -> None:
        if written is not None:
            await written.wait()


def _each(partitions: NamedPartitions) -> Iterable[tuple[bytes, int]]:
    for topic_id, (_, indexes) in partitions.items():
        for index in sorted(indexes):
            yield topic_id, index
