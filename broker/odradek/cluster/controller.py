"""The controller: every change to the cluster's metadata.

Rules:

- One change at a time. A request that comes while another is made waits until its deadline, then sees the result.
- The order is: check, write with one `multi`, make or remove the local partitions, publish in the view. So a reply
  with no error means that the leader serves, and nobody is told of a leader that does not.
- A change that has begun is finished, whoever stops waiting for it; one that a kill cut short is finished by `load`.
- A deletion is marked in /admin/delete_topics first, and the mark goes with the topic's last node.
"""

import logging
import random
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from odradek.clock import Clock
from odradek.cluster.loading import (
    ensure_cluster_id,
    ensure_node,
    read_broker_configs,
    read_brokers,
    read_group_configs,
    read_topic,
)
from odradek.cluster.plans import NewTopic, plan_offline, plan_partitions, plan_topic
from odradek.cluster.store import Create, Delete, Failure, MetadataStore, Operation, SetData, StoreError
from odradek.cluster.topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from odradek.cluster.view import ClusterView, Endpoint, TopicView
from odradek.cluster.znodes import (
    BrokerConfigZNode,
    BrokerRegistration,
    BrokerZNode,
    ControllerEpochZNode,
    ControllerZNode,
    DeleteTopicZNode,
    GroupConfigZNode,
    PartitionState,
    PartitionStateZNode,
    PartitionZNode,
    TopicAssignment,
    TopicConfigZNode,
    TopicZNode,
)
from odradek.config import BrokerConfig, ConfigError
from odradek_protocol.errors import BrokerError, Error

__all__ = ["Controller", "LocalPartitions"]

log = logging.getLogger(__name__)

ConfigChange = Callable[[Mapping[str, str]], Mapping[str, str]]
"""What to make of the settings there are; it raises when it will not."""

WAIT_MS = 30_000
"""How long a change waits for others when its request names no time: Kafka's `request.timeout.ms`."""


class LocalPartitions(Protocol):
    """The partitions on this broker, as far as the controller needs them."""

    async def apply(self, topic: TopicView) -> None:
        """Make and keep this broker's partitions of a topic, as the picture has them."""

    def configure(self, topic: TopicView) -> None:
        """Go by the settings that the topic has now."""

    def offline(self, topic: TopicView) -> Collection[int]:
        """The partitions of a topic, made before, whose logs lie in a folder that is offline."""

    async def remove(self, topic: str, topic_id: bytes) -> None:
        """Stop serving a topic's partitions and delete its logs; harmless when there are none.

        Raises BrokerError(KAFKA_STORAGE_ERROR).
        """


class Controller:
    """The metadata of the cluster, and the one way to change it.

    At start: `load`, then, when the listeners have their ports, `register`. A method that changes something raises
    BrokerError for what is asked amiss, REQUEST_TIMED_OUT when other changes left it no time to begin, and StoreError
    when the store fails.
    """

    def __init__(
        self,
        *,
        node_id: int,
        store: MetadataStore,
        view: ClusterView,
        partitions: LocalPartitions,
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._view = view
        self._partitions = partitions
        self._config = config
        self._clock = clock
        self._epoch = 0
        self._changing = trio.Lock()

    async def load(self) -> None:
        """Fill the view and the dynamic settings from the store, finish cut deletions, make the local partitions.

        The logs that are on the disk must be open. Raises ValueError, naming the znode, for one that makes no sense.
        """
        self._view.cluster_id = await ensure_cluster_id(self._store)
        await self._load_broker_configs()
        self._view.group_configs.update(await read_group_configs(self._store))
        deleted = await self._store.children(DeleteTopicZNode.parent)
        for name in deleted:
            try:
                await self._finish_deletion(name)
            except BrokerError as error:
                log.warning("topic %s is not deleted before the next start: %s", name, error)
        for name in await self._store.children(TopicZNode.parent):
            if name not in deleted:
                await self._settle_leaders(await read_topic(self._store, name), {self._node_id})

    async def register(self, endpoints: Mapping[str, Endpoint], rack: str | None) -> None:
        """Tell the cluster that this broker lives, and lead the cluster if nobody does.

        `endpoints` are by listener name. Raises StoreError NODE_EXISTS when another broker has this id.
        """
        await self._elect()
        registration = BrokerRegistration(endpoints, rack)
        data = BrokerZNode.encode(registration, self._clock.now_ms())
        await self._store.create(BrokerZNode.path(self._node_id), data, ephemeral=True)
        controller_id = ControllerZNode.decode((await self._store.get(ControllerZNode.path)).data)
        self._view.put_brokers(await read_brokers(self._store), controller_id)

    async def log_folder_failed(self, topics: Collection[str]) -> None:
        """Find other leaders for the partitions of these topics whose logs are in a folder that went offline."""
        async with self._change(WAIT_MS):
            for name in topics:
                topic = self._view.topics.get(name)
                if topic is not None:
                    await self._settle_leaders(topic, self._view.brokers)

    async def _settle_leaders(self, old: TopicView, live: Collection[int]) -> None:
        """Let each partition be led by a replica that has its log, write down what that changes, and publish it."""
        topic = plan_offline(old, self._node_id, self._partitions.offline(old), live)
        changed = [
            SetData(
                PartitionStateZNode.path(topic.name, index),
                PartitionStateZNode.encode(PartitionState(new.leader, new.leader_epoch, new.isr, self._epoch)),
            )
            for index, new in enumerate(topic.partitions)
            if new.leader_epoch != old.partitions[index].leader_epoch
        ]
        if changed:
            await self._store.multi(changed)
        await self._partitions.apply(topic)
        self._view.put_topic(topic)

    async def create_topic(self, new: NewTopic, *, validate_only: bool = False, timeout_ms: int = WAIT_MS) -> TopicView:
        """Make a topic; when this returns its leaders serve. With `validate_only`, check all and make nothing.

        The order of the checks is that of `plans.plan_topic`, then the configs (INVALID_CONFIG).
        """
        async with self._change(timeout_ms):
            topic = plan_topic(
                self._view,
                new,
                partitions=self._config.num_partitions,
                replication_factor=self._config.default_replication_factor,
                random=random.randrange,
            )
            self._check_configs(topic.configs)
            if not validate_only:
                path = TopicConfigZNode.path(topic.name)
                config = TopicConfigZNode.encode(topic.configs)
                left_over = await self._store.exists(path)
                await self._write(
                    topic,
                    [
                        SetData(path, config) if left_over else Create(path, config),
                        Create(TopicZNode.path(topic.name), TopicZNode.encode(_assignment(topic))),
                        Create(TopicZNode.partitions_path(topic.name)),
                        *self._partition_nodes(topic, range(len(topic.partitions))),
                    ],
                )
        return topic

    async def create_topic_if_absent(self, name: str) -> TopicView:
        """The topic of this name, made with the broker's defaults if it is not there: auto-creation.

        An internal topic gets the settings that the broker has for it. Raises as `create_topic` does.
        """
        found = self._view.topics.get(name)
        if found is not None:
            return found
        try:
            return await self.create_topic(self._internal_topic(name) or NewTopic(name))
        except BrokerError as error:
            made_meanwhile = self._view.topics.get(name)
            if error.error is not Error.TOPIC_ALREADY_EXISTS or made_meanwhile is None:
                raise
            return made_meanwhile

    async def create_internal_topic(self, name: str) -> TopicView:
        """`__consumer_offsets`, or another internal topic, made if it is not there. ValueError for any other name."""
        if self._internal_topic(name) is None:
            raise ValueError(f"not an internal topic: {name}")
        return await self.create_topic_if_absent(name)

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        timeout_ms: int = WAIT_MS,
    ) -> TopicView:
        """Give a topic `count` partitions in all; when this returns the new ones serve. See `plans.plan_partitions`."""
        async with self._change(timeout_ms):
            topic = plan_partitions(self._view, name, count, assignments, random.randrange)
            if not validate_only:
                old = len(self._view.topics[name].partitions)
                await self._write(
                    topic,
                    [
                        SetData(TopicZNode.path(name), TopicZNode.encode(_assignment(topic))),
                        *self._partition_nodes(topic, range(old, count)),
                    ],
                )
        return topic

    async def delete_topic(self, name: str, *, timeout_ms: int = WAIT_MS) -> None:
        """Delete a topic; when this returns its name is free. UNKNOWN_TOPIC_OR_PARTITION."""
        async with self._change(timeout_ms):
            if name not in self._view.topics:
                raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
            await ensure_node(self._store, DeleteTopicZNode.path(name))
            self._view.remove_topic(name)
            await self._finish_deletion(name)

    async def alter_topic_configs(
        self, name: str, change: ConfigChange, *, validate_only: bool = False, timeout_ms: int = WAIT_MS
    ) -> TopicView:
        """Give a topic the overrides that `change` makes of those it has.

        UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, and what `change` raises. No other change comes between.
        """
        async with self._change(timeout_ms):
            old = self._view.topics.get(name)
            if old is None:
                raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
            configs = dict(change(old.configs))
            self._check_configs(configs)
            topic = TopicView(name, old.topic_id, old.partitions, configs, old.internal)
            if not validate_only:
                await self._put(TopicConfigZNode.path(name), TopicConfigZNode.encode(configs))
                self._view.put_topic(topic)
                self._partitions.configure(topic)
        return topic

    async def alter_broker_configs(
        self, node_id: int | None, change: ConfigChange, *, validate_only: bool = False, timeout_ms: int = WAIT_MS
    ) -> None:
        """Give this broker, or (None) all brokers, the dynamic settings that `change` makes of those there are.

        INVALID_CONFIG, and what `change` raises. No other change comes between.
        """
        async with self._change(timeout_ms):
            old = self._config.dynamic_default if node_id is None else self._config.dynamic_broker
            configs = change(old)
            layer = {"default" if node_id is None else "broker": configs}
            try:
                self._config.check_dynamic(**layer)
            except ConfigError as error:
                raise BrokerError(Error.INVALID_CONFIG, str(error)) from error
            if not validate_only:
                await self._put(BrokerConfigZNode.path(node_id), BrokerConfigZNode.encode(configs))
                self._config.alter_dynamic(**layer)

    async def alter_group_configs(self, group: str, change: ConfigChange, *, validate_only: bool = False) -> None:
        """Give a group the settings that `change` makes of those of its own. What `change` raises."""
        async with self._change(WAIT_MS):
            configs = change(self._view.group_configs.get(group, {}))
            if validate_only:
                return
            await self._put(GroupConfigZNode.path(group), GroupConfigZNode.encode(configs))
            self._view.group_configs[group] = configs

    async def _load_broker_configs(self) -> None:
        default = await read_broker_configs(self._store, None)
        broker = await read_broker_configs(self._store, self._node_id)
        try:
            self._config.alter_dynamic(default=default, broker=broker)
        except ConfigError as error:
            # They were right when they were set; a newer server.properties contradicts them. Kafka starts all the same.
            log.warning("the dynamic settings are ignored until they are set anew: %s", error)

    @asynccontextmanager
    async def _change(self, timeout_ms: int) -> AsyncIterator[None]:
        """The right to change something, and the duty to finish it. REQUEST_TIMED_OUT when it is not to be had."""
        try:
            self._changing.acquire_nowait()
        except trio.WouldBlock:
            with trio.move_on_after(max(0, timeout_ms) / 1000) as waiting:
                await self._changing.acquire()
            if waiting.cancelled_caught:
                raise BrokerError(Error.REQUEST_TIMED_OUT, "Other changes to the cluster took too long.") from None
        try:
            # A client that goes away, or a broker that stops, must not leave the store, the logs and the view apart.
            with trio.CancelScope(shield=True):
                yield
        finally:
            self._changing.release()

    async def _elect(self) -> None:
        """Become controller, with the next epoch, unless another broker is."""
        now_ms = self._clock.now_ms()
        claim = Create(ControllerZNode.path, ControllerZNode.encode(self._node_id, now_ms), ephemeral=True)
        try:
            if await ensure_node(self._store, ControllerEpochZNode.path, ControllerEpochZNode.encode(0)):
                epoch, version = 0, 0
            else:
                data, version = await self._store.get(ControllerEpochZNode.path)
                epoch = ControllerEpochZNode.decode(data)
            raised = SetData(ControllerEpochZNode.path, ControllerEpochZNode.encode(epoch + 1), version)
            await self._store.multi([claim, raised])
        except StoreError as error:
            if error.failure not in (Failure.NODE_EXISTS, Failure.BAD_VERSION):
                raise
            return
        self._epoch = epoch + 1

    async def _write(self, topic: TopicView, operations: Sequence[Operation]) -> None:
        """Write a topic, make its partitions, publish it."""
        await self._store.multi(operations)
        try:
            await self._partitions.apply(topic)
        finally:
            # Even when a log could not be made: the topic is in the store, and the view shows what is there.
            self._view.put_topic(topic)

    async def _finish_deletion(self, name: str) -> None:
        """Delete what is left of a topic that is marked, and the mark with the last of it."""
        path = TopicZNode.path(name)
        if await self._store.exists(path):
            assignment = TopicZNode.decode(name, (await self._store.get(path)).data)
            await self._partitions.remove(name, assignment.topic_id)
        left = [*await _subtree(self._store, path), TopicConfigZNode.path(name)]
        there = [path for path in left if await self._store.exists(path)]
        await self._store.multi([Delete(path) for path in (*there, DeleteTopicZNode.path(name))])

    async def _put(self, path: str, data: bytes) -> None:
        if not await ensure_node(self._store, path, data):
            await self._store.set_data(path, data)

    def _partition_nodes(self, topic: TopicView, indexes: Sequence[int]) -> list[Operation]:
        operations: list[Operation] = []
        for index in indexes:
            partition = topic.partitions[index]
            state = PartitionState(partition.leader, partition.leader_epoch, partition.isr, self._epoch)
            operations.append(Create(PartitionZNode.path(topic.name, index)))
            operations.append(Create(PartitionStateZNode.path(topic.name, index), PartitionStateZNode.encode(state)))
        return operations

    def _check_configs(self, configs: Mapping[str, str]) -> None:
        try:
            self._config.topic_config(configs)
        except ConfigError as error:
            raise BrokerError(Error.INVALID_CONFIG, str(error)) from error

    def _internal_topic(self, name: str) -> NewTopic | None:
        """An internal topic as the settings want it; None when `name` is none. As Kafka's AutoTopicCreationManager."""
        config = self._config
        if name == CONSUMER_OFFSETS:
            return NewTopic(
                name,
                config.offsets_topic_num_partitions,
                config.offsets_topic_replication_factor,
                configs={
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": str(config.offsets_topic_segment_bytes),
                },
            )
        if name == TRANSACTION_STATE:
            return NewTopic(
                name,
                config.transaction_state_log_num_partitions,
                config.transaction_state_log_replication_factor,
                configs={
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "min.insync.replicas": str(config.transaction_state_log_min_isr),
                    "segment.bytes": str(config.transaction_state_log_segment_bytes),
                    "unclean.leader.election.enable": "false",
                },
            )
        if name == SHARE_GROUP_STATE:
            return NewTopic(
                name,
                config.share_coordinator_state_topic_num_partitions,
                config.share_coordinator_state_topic_replication_factor,
                configs={
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                    "retention.ms": "-1",
                    "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
                },
            )
        return None


def _assignment(topic: TopicView) -> TopicAssignment:
    return TopicAssignment(
        topic.topic_id, {index: partition.replicas for index, partition in enumerate(topic.partitions)}
    )


async def _subtree(store: MetadataStore, path: str) -> list[str]:
    """The paths of a node and all below it, children before parents."""
    if not await store.exists(path):
        return []
    below = [await _subtree(store, f"{path}/{name}") for name in await store.children(path)]
    return [*(one for paths in below for one in paths), path]
