"""Every partition that this broker has, found by name or by topic id, and kept in step with the cluster's metadata."""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import trio

from odradek.group_commit import FlushRounds
from odradek.partition import Partition

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import TopicView
    from odradek.config import BrokerConfig
    from odradek.log.store import LogStore

__all__ = ["Partitions"]

LOGS_AT_ONCE = 8
"""Logs made between two looks at the other tasks: each takes a few hundred microseconds of file calls."""


class Partitions:
    """The partitions of this broker.

    `on_leader` and `on_resign` are called with a partition when this broker starts or stops leading it, `on_removed`
    with the name of a topic that was deleted.
    """

    def __init__(self, node_id: int, logs: "LogStore", config: "BrokerConfig", clock: "Clock") -> None:
        self._node_id = node_id
        self._logs = logs
        self._config = config
        self._clock = clock
        self._flush_rounds: defaultdict[str, FlushRounds] = defaultdict(FlushRounds)
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self.on_leader: list[Callable[[Partition], None]] = []
        self.on_resign: list[Callable[[Partition], None]] = []
        self.on_removed: list[Callable[[str], Awaitable[None]]] = []

    def get(self, topic: str, index: int) -> Partition | None:
        """The partition of that name, or None when this broker has no replica of it."""
        return self._by_name.get((topic, index))

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """The partition of the topic with that id, or None when this broker has no replica of it."""
        return self._by_id.get((topic_id, index))

    def all(self) -> Iterable[Partition]:
        """All of them; the collection may change at an `await`."""
        return self._by_name.values()

    def __len__(self) -> int:
        return len(self._by_name)

    async def apply(self, topic: "TopicView") -> None:
        """Make the partitions of `topic` what its metadata says: the logs exist, and this broker leads where it should.

        Raises BrokerError(KAFKA_STORAGE_ERROR) when a log cannot be made.
        """
        config = self._config.topic_config(topic.configs)
        made = 0
        for index, state in enumerate(topic.partitions):
            if self._node_id not in state.replicas:
                continue
            partition = self._by_name.get((topic.name, index))
            if partition is None:
                log = self._logs.get_or_create(topic.name, index, topic.topic_id, config)
                rounds = self._flush_rounds[os.path.dirname(log.directory)]
                partition = Partition(
                    topic.name, index, topic.topic_id, log, config, self._node_id, self._clock, rounds
                )
                self._by_name[topic.name, index] = self._by_id[topic.topic_id, index] = partition
                made += 1
            partition.configure(config)
            if state.leader == self._node_id:
                led = partition.is_leader
                partition.become_leader(state.leader_epoch, state.replicas, state.isr)
                if not led:
                    for call in self.on_leader:
                        call(partition)
            elif partition.is_leader:
                self._resign(partition)
            if made == LOGS_AT_ONCE:
                made = 0
                await trio.lowlevel.checkpoint()

    def configure(self, topic: "TopicView") -> None:
        """Go by the settings that `topic` has now."""
        config = self._config.topic_config(topic.configs)
        for index in range(len(topic.partitions)):
            partition = self._by_name.get((topic.name, index))
            if partition is not None:
                partition.configure(config)

    async def remove(self, topic: str) -> None:
        """Stop serving the partitions of `topic` and delete their logs; the files go after `file.delete.delay.ms`."""
        for partition in [one for one in self._by_name.values() if one.topic == topic]:
            del self._by_name[topic, partition.index]
            del self._by_id[partition.topic_id, partition.index]
            self._resign(partition)
            self._logs.delete(partition.log)
            await trio.lowlevel.checkpoint()
        for call in self.on_removed:
            await call(topic)

    def _resign(self, partition: Partition) -> None:
        led = partition.is_leader
        partition.resign()
        if led:
            for call in self.on_resign:
                call(partition)

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        """How far each partition is committed."""
        return {key: partition.high_watermark for key, partition in self._by_name.items()}

    def wake_all(self) -> None:
        """End every wait on every partition: the broker stops."""
        for partition in self._by_name.values():
            partition.wake()
