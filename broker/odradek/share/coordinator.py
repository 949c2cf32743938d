"""The share coordinator: how far a group has come in a partition, and the requests for that.

A share partition belongs to the partition of __share_group_state that its name hashes to; see `sharding`.

Two epochs fence those who are out of date: the leader epoch of the partition that is shared, and the state epoch, which
grows when an administrator lets the group go on elsewhere.

Public methods raise BrokerError. KIP-932, KIP-1226.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import trio

from odradek.cluster.topics import SHARE_GROUP_STATE
from odradek.groups.share_membership import ShareStateSummary
from odradek.sharding import APPEND_ERRORS, Chore, Coordinator, Written, answering
from odradek.share.in_flight import StateBatch
from odradek.share.state_shard import StateShard
from odradek.share.stored_state import UNSET, SharePartitionKey, StoredState, Update, combined
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.controller import Controller
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["ShareCoordinator"]

log = logging.getLogger(__name__)

STATE_EPOCH_TEXT = "The share coordinator rejected the request because the share-group state epoch did not match."


class ShareCoordinator(Coordinator[StateShard]):
    """The states of the partitions of __share_group_state that this broker leads."""

    TOPIC = SHARE_GROUP_STATE
    KEEPS = "share partitions"

    def __init__(self, config: "BrokerConfig", clock: "Clock", view: "ClusterView", controller: "Controller") -> None:
        super().__init__(config, clock, view)
        self._controller = controller
        self._loaded = trio.Event()
        """Set, and another one in its place, when a partition was loaded, or is this broker's no more."""

    @property
    def _planned_partitions(self) -> int:
        return self._config.share_coordinator_state_topic_num_partitions

    def _make_shard(self, partition: "Partition") -> StateShard:
        return StateShard(partition, self._config, self._clock)

    def _begin(self, shard: StateShard) -> None:  # noqa: ARG002 - every shard is looked at
        """Nothing is under way but that share partitions wait for their states."""
        self._wake()

    def _drop(self, shard: StateShard) -> None:
        super()._drop(shard)
        self._wake()

    def _wake(self) -> None:
        self._loaded.set()
        self._loaded = trio.Event()

    def _chores(self) -> Iterable[Chore]:
        return (self._prune_regularly,)

    # Requests

    async def initialize(
        self, group_id: str, topic_id: bytes, partition: int, *, state_epoch: int, start_offset: int
    ) -> None:
        """InitializeShareGroupState: begin with a partition, or begin again elsewhere.

        Raises INVALID_REQUEST, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, FENCED_STATE_EPOCH,
        UNKNOWN_TOPIC_OR_PARTITION, and `APPEND_ERRORS`.
        """
        key = _key(group_id, topic_id, partition)
        if SHARE_GROUP_STATE not in self._view.topics:
            await self._create_topic()
        shard = self._shard(key.name)
        known = shard.states.get(key)
        if known is not None and state_epoch != UNSET and known.state_epoch > state_epoch:
            raise BrokerError(Error.FENCED_STATE_EPOCH, STATE_EPOCH_TEXT)
        self._check_topic(key)
        now_ms = self._clock.now_ms()
        state = StoredState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=UNSET if start_offset == UNSET else 0,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
            batches=(),
        )
        await _wait(self._append(shard, lambda: shard.put(key, state)))

    def read(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int
    ) -> tuple[StoredState, Written | None]:
        """ReadShareGroupState: all that is known, for the leader of the partition, whose epoch is remembered.

        Gives also what has to be replicated before the answer may leave. Raises INVALID_REQUEST also for a share
        partition that was not begun with, FENCED_LEADER_EPOCH, and as `initialize` does.
        """
        key = _key(group_id, topic_id, partition)
        shard = self._shard(key.name)
        state = shard.states.get(key)
        if state is None:
            text = "Read operation on uninitialized share partition not allowed."
            raise BrokerError(Error.INVALID_REQUEST, text)
        _check_leader_epoch(state, leader_epoch)
        self._check_topic(key)
        if leader_epoch in (UNSET, state.leader_epoch):
            return state, None
        update = Update(state.snapshot_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return state, self._append(shard, lambda: shard.update(key, update))

    def write(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Written | None:
        """WriteShareGroupState: what changed. Gives what has to be replicated before it counts; raises as `read`, and
        FENCED_STATE_EPOCH.
        """
        key = _key(group_id, topic_id, partition)
        shard = self._shard(key.name)
        state = shard.states.get(key)
        if state is None:
            text = "Write operation on uninitialized share partition not allowed."
            raise BrokerError(Error.INVALID_REQUEST, text)
        _check_leader_epoch(state, leader_epoch)
        if state_epoch != UNSET and state.state_epoch > state_epoch:
            raise BrokerError(Error.FENCED_STATE_EPOCH, STATE_EPOCH_TEXT)
        self._check_topic(key)
        update = Update(
            state.snapshot_epoch,
            state.leader_epoch,
            start_offset,
            delivery_complete_count,
            combined((), batches, start_offset),
        )
        return self._append(shard, lambda: shard.update(key, update))

    async def delete(self, group_id: str, topic_id: bytes, partition: int) -> None:
        """DeleteShareGroupState: forget a share partition, if it is known. Raises as `initialize` does."""
        key = _key(group_id, topic_id, partition)
        if SHARE_GROUP_STATE not in self._view.topics:
            return
        shard = self._shard(key.name)
        self._check_topic(key)
        if key in shard.states:
            await _wait(self._append(shard, lambda: shard.remove(key)))

    def summary(self, group_id: str, topic_id: bytes, partition: int) -> StoredState | None:
        """ReadShareGroupStateSummary: the state, None where there is none. Raises as `read` does."""
        key = _key(group_id, topic_id, partition)
        shard = self._shard(key.name)
        self._check_topic(key)
        return shard.states.get(key)

    async def until_loaded(self, group_id: str, topic_id: bytes, partition: int) -> None:
        """Wait while the partition that keeps a share partition is read; it ends also when that failed, or was lost."""
        index = self.partition_for(SharePartitionKey(group_id, topic_id, partition).name)
        while (shard := self._shards.get(index)) is not None and not shard.loaded:
            await self._loaded.wait()

    async def summarize(self, group_id: str, topic_id: bytes, partition: int) -> ShareStateSummary:
        """Where a group is in a partition. Raises as `read` does."""
        state = self.summary(group_id, topic_id, partition)
        if state is None:
            return ShareStateSummary(UNSET, 0, UNSET)
        return ShareStateSummary(state.start_offset, state.leader_epoch, state.delivery_complete_count)

    async def forget_topic(self, _: str) -> None:
        """A topic is deleted: forget the share partitions of topics that are gone. A failure is logged."""
        for shard in self._loaded_shards():
            try:
                shard.keep_topics(self._view.topics_by_id)
            except BrokerError as error:
                log.warning("forgetting a topic in %r failed: %s", shard.partition, error)

    # Inside

    async def _create_topic(self) -> None:
        try:
            await self._controller.create_internal_topic(SHARE_GROUP_STATE)
        except BrokerError as error:
            raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, error.message) from error

    def _check_topic(self, key: SharePartitionKey) -> None:
        topic = self._view.topics_by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def _append(self, shard: StateShard, append: Callable[[], int]) -> Written | None:
        with answering(APPEND_ERRORS):
            return shard.written(append())

    async def _prune_regularly(self) -> None:
        while True:
            await trio.sleep(self._config.share_coordinator_state_topic_prune_interval_ms / 1000)
            for shard in self._loaded_shards():
                try:
                    shard.prune()
                except BrokerError as error:
                    log.warning("pruning %r failed: %s", shard.partition, error)


def _key(group_id: str, topic_id: bytes, partition: int) -> SharePartitionKey:
    if not group_id:
        raise BrokerError(Error.INVALID_REQUEST, "The group id cannot be empty.")
    if partition < 0:
        raise BrokerError(Error.INVALID_REQUEST, "The partition id cannot be a negative number.")
    return SharePartitionKey(group_id, topic_id, partition)


def _check_leader_epoch(state: StoredState, leader_epoch: int) -> None:
    if leader_epoch != UNSET and state.leader_epoch > leader_epoch:
        raise BrokerError(
            Error.FENCED_LEADER_EPOCH, "The leader epoch in the request is older than the epoch on the broker."
        )


async def _wait(written: Written | None) -> None:
    if written is not None:
        await written.wait()
