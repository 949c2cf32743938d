"""The share coordinator: which broker keeps how far a group has come in a partition, and the requests for that.

A share partition belongs to the partition of __share_group_state that its name hashes to, and is kept by that
partition's leader. Everybody else answers NOT_COORDINATOR; the leader answers COORDINATOR_LOAD_IN_PROGRESS until it has
read the partition.

Two epochs fence those who are out of date: the leader epoch of the partition that is shared, and the state epoch, which
grows when an administrator lets the group go on elsewhere.

Public methods raise BrokerError. KIP-932, KIP-1226.
"""

import base64
import logging
from typing import TYPE_CHECKING

import trio

from odradek.cluster.topics import SHARE_GROUP_STATE
from odradek.groups.keeper import java_hash
from odradek.groups.share_membership import ShareStateSummary
from odradek.share.in_flight import StateBatch
from odradek.share.state_shard import StateShard
from odradek.share.stored_state import UNSET, SharePartitionKey, StoredState, Update, combined
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.clock import Clock
    from odradek.cluster.controller import Controller
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["ShareCoordinator", "WrittenState"]

log = logging.getLogger(__name__)

LOADS_AT_ONCE = 2
"""Partitions that are read at a time: reading is mostly decoding, which threads do not make faster."""

WRITE_ERRORS = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
}
"""What a write answers for the error of its append."""


STATE_EPOCH_TEXT = "The share coordinator rejected the request because the share-group state epoch did not match."


class WrittenState:
    """Records in the log that are not replicated yet."""

    __slots__ = ("_last_offset", "_shard")

    def __init__(self, shard: StateShard, last_offset: int) -> None:
        self._shard = shard
        self._last_offset = last_offset

    async def wait(self) -> None:
        """Wait until they are. Raises `WRITE_ERRORS`."""
        try:
            await self._shard.wait_committed(self._last_offset)
        except BrokerError as error:
            raise _translated(error) from None


class ShareCoordinator:
    """The states of the partitions of __share_group_state that this broker leads.

    `run` has to run while requests are served. `on_leader` and `on_resign` follow the leadership of partitions; those
    of other topics are not looked at.
    """

    def __init__(self, config: "BrokerConfig", clock: "Clock", view: "ClusterView", controller: "Controller") -> None:
        self._config = config
        self._clock = clock
        self._view = view
        self._controller = controller
        self._shards: dict[int, StateShard] = {}
        self._nursery: trio.Nursery | None = None
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)

    async def run(self) -> None:
        """Load partitions, and delete what is superfluous, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                for shard in self._shards.values():
                    if not shard.loaded:
                        nursery.start_soon(self._load, shard)
                await self._prune_regularly()
            finally:
                self._nursery = None

    def on_leader(self, partition: "Partition") -> None:
        """This broker leads `partition` now: its states are loaded, at once if it is empty."""
        if partition.topic != SHARE_GROUP_STATE:
            return
        shard = self._shards[partition.index] = StateShard(partition, self._config, self._clock)
        if not shard.loaded and self._nursery is not None:
            self._nursery.start_soon(self._load, shard)

    def on_resign(self, partition: "Partition") -> None:
        """This broker does not lead `partition` any more: its states are another's."""
        if partition.topic == SHARE_GROUP_STATE:
            self._shards.pop(partition.index, None)

    def partition_for(self, key: SharePartitionKey | str) -> int:
        """The partition of __share_group_state that keeps a share partition, also by "group:topic id:partition"."""
        if isinstance(key, SharePartitionKey):
            topic_id = base64.urlsafe_b64encode(key.topic_id).decode().rstrip("=")
            key = f"{key.group_id}:{topic_id}:{key.partition}"
        topic = self._view.topics.get(SHARE_GROUP_STATE)
        count = self._config.share_coordinator_state_topic_num_partitions if topic is None else len(topic.partitions)
        # The mask makes Java's one number without an absolute value 0, as Kafka does.
        return (abs(java_hash(key)) & 0x7FFFFFFF) % count

    # Requests

    async def initialize(
        self, group_id: str, topic_id: bytes, partition: int, *, state_epoch: int, start_offset: int
    ) -> None:
        """InitializeShareGroupState: begin with a partition, or begin again elsewhere.

        Raises INVALID_REQUEST, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, FENCED_STATE_EPOCH,
        UNKNOWN_TOPIC_OR_PARTITION, and `WRITE_ERRORS`.
        """
        key = _key(group_id, topic_id, partition)
        if SHARE_GROUP_STATE not in self._view.topics:
            await self._create_topic()
        shard = self._shard(key)
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
    ) -> tuple[StoredState, WrittenState | None]:
        """ReadShareGroupState: all that is known, for the leader of the partition, whose epoch is remembered.

        Gives also what has to be replicated before the answer may leave. Raises INVALID_REQUEST also for a share
        partition that was not begun with, FENCED_LEADER_EPOCH, and as `initialize` does.
        """
        key = _key(group_id, topic_id, partition)
        shard = self._shard(key)
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
        batches: "Sequence[StateBatch]",
    ) -> WrittenState | None:
        """WriteShareGroupState: what changed. Gives what has to be replicated before it counts; raises as `read`, and
        FENCED_STATE_EPOCH.
        """
        key = _key(group_id, topic_id, partition)
        shard = self._shard(key)
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
        shard = self._shard(key)
        self._check_topic(key)
        if key in shard.states:
            await _wait(self._append(shard, lambda: shard.remove(key)))

    def summary(self, group_id: str, topic_id: bytes, partition: int) -> StoredState | None:
        """ReadShareGroupStateSummary: the state, None where there is none. Raises as `read` does."""
        key = _key(group_id, topic_id, partition)
        shard = self._shard(key)
        self._check_topic(key)
        return shard.states.get(key)

    async def summarize(self, group_id: str, topic_id: bytes, partition: int) -> ShareStateSummary:
        """Where a group is in a partition. Raises as `read` does."""
        state = self.summary(group_id, topic_id, partition)
        if state is None:
            return ShareStateSummary(UNSET, 0, UNSET)
        return ShareStateSummary(state.start_offset, state.leader_epoch, state.delivery_complete_count)

    async def forget_topic(self, _: str) -> None:
        """A topic is deleted: forget the share partitions of topics that are gone. A failure is logged."""
        for shard in list(self._shards.values()):
            if shard.loaded:
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

    def _shard(self, key: SharePartitionKey) -> StateShard:
        shard = self._shards.get(self.partition_for(key))
        if shard is None:
            raise BrokerError(Error.NOT_COORDINATOR)
        if not shard.loaded:
            raise BrokerError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _check_topic(self, key: SharePartitionKey) -> None:
        topic = self._view.topics_by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def _append(self, shard: StateShard, append: "Callable[[], int]") -> WrittenState | None:
        try:
            last_offset = append()
        except BrokerError as error:
            raise _translated(error) from None
        return None if shard.is_committed(last_offset) else WrittenState(shard, last_offset)

    async def _load(self, shard: StateShard) -> None:
        """Read a partition; give it up, so that others look elsewhere, when it cannot be read."""
        index = shard.partition.index
        try:
            while not shard.loaded:
                await trio.to_thread.run_sync(shard.load_some, limiter=self._loads)
                if self._shards.get(index) is not shard:
                    return
        except Exception:
            log.exception("%s-%d cannot be loaded, its share partitions are not served", SHARE_GROUP_STATE, index)
            self._shards.pop(index, None)
            return
        log.info("loaded %d share partitions of %s-%d", len(shard.states), SHARE_GROUP_STATE, index)

    async def _prune_regularly(self) -> None:
        while True:
            await trio.sleep(self._config.share_coordinator_state_topic_prune_interval_ms / 1000)
            for shard in list(self._shards.values()):
                if shard.loaded:
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


async def _wait(written: WrittenState | None) -> None:
    if written is not None:
        await written.wait()


def _translated(error: BrokerError) -> BrokerError:
    return BrokerError(WRITE_ERRORS.get(error.error, error.error), error.message)
