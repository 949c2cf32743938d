"""Every partition that this broker has, found by name or by topic id, and kept in step with the cluster's metadata.

A partition whose log lay in a folder that is offline is offline itself: asking for it is a KAFKA_STORAGE_ERROR.
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import trio

from odradek.group_commit import FlushRounds
from odradek.partition import Partition
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import TopicView
    from odradek.config import BrokerConfig
    from odradek.log.store import Folder, LogStore

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
        self._offline: dict[tuple[str | bytes, int], str] = {}
        """The topics of those that are offline, by name and by topic id."""
        self.on_leader: list[Callable[[Partition], None]] = []
        self.on_resign: list[Callable[[Partition], None]] = []
        self.on_removed: list[Callable[[str], Awaitable[None]]] = []

    def get(self, topic: str, index: int) -> Partition | None:
        """The partition of that name, or None when this broker has no replica of it. Raises KAFKA_STORAGE_ERROR."""
        partition = self._by_name.get((topic, index))
        if partition is None:
            self._check_online(topic, index)
        return partition

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """The partition of the topic with that id, or None when this broker has no replica of it.

        Raises KAFKA_STORAGE_ERROR.
        """
        partition = self._by_id.get((topic_id, index))
        if partition is None:
            self._check_online(topic_id, index)
        return partition

    def _check_online(self, topic: str | bytes, index: int) -> None:
        if (topic, index) in self._offline:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, "the partition's log is in a folder that is offline")

    def offline(self, topic: "TopicView") -> frozenset[int]:
        """Which of a topic's partitions, all of which were made before, have their logs in a folder that is offline."""
        here = (index for index, state in enumerate(topic.partitions) if self._node_id in state.replicas)
        return frozenset(index for index in here if self._logs.is_missing(topic.name, index))

    def take_offline(self, folder: "Folder") -> set[str]:
        """Serve the partitions in a folder that failed no longer; gives the names of their topics."""
        gone = [one for one in self._by_name.values() if self._logs.folder_of(one.log) is folder]
        self._logs.drop(folder)
        for partition in gone:
            self._forget(partition)
            self._note_offline(partition.topic, partition.topic_id, partition.index)
            self._resign(partition)
        return {partition.topic for partition in gone}

    def _note_offline(self, topic: str, topic_id: bytes, index: int) -> None:
        self._offline[topic, index] = self._offline[topic_id, index] = topic

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
            if partition is None and self._node_id in state.offline:
                self._note_offline(topic.name, topic.topic_id, index)
                continue
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

    async def remove(self, topic: str, topic_id: bytes) -> None:
        """Stop serving the partitions of `topic` and delete its logs; the files go after `file.delete.delay.ms`.

        At a start there are logs and no partitions yet. Logs that say they are another topic's stay. Raises
        BrokerError(KAFKA_STORAGE_ERROR).
        """
        for partition in [one for one in self._by_name.values() if one.topic == topic]:
            self._forget(partition)
            self._resign(partition)
        for log in self._logs.of_topic(topic, topic_id):
            self._logs.delete(log)
            await trio.lowlevel.checkpoint()
        self._offline = {key: name for key, name in self._offline.items() if name != topic}
        for call in self.on_removed:
            await call(topic)

    def _forget(self, partition: Partition) -> None:
        del self._by_name[partition.topic, partition.index]
        del self._by_id[partition.topic_id, partition.index]

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
