"""Taking over the folders of a Kafka broker: its topics become those of a new metadata store beside them.

A folder says which partitions it holds and their topic ids. Settings of topics are not in it: they are in what
`kafka-topics.sh --describe` printed of the broker while it ran, the same text in ZooKeeper and in KRaft mode. From its
lines about topics, which have tabs between the fields, come the name, id, number of partitions and settings:

    Topic: t   TopicId: 2LTFGl1rSzKrJ5iTpL6Ahg   PartitionCount: 4   ReplicationFactor: 1   Configs: retention.ms=-1

Rules:

- All or nothing, and nothing is guessed: a topic of the description whose partitions are not all here, or have another
  id, ends it. So does a store that has topics.
- A partition that no line speaks of is a stray: it stays where it is, and is not served.
- Producer ids that are in the logs are never handed out again, and leader epochs go on from the newest in the log.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import trio

from odradek.clock import Clock
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.loading import ensure_standing_nodes
from odradek.cluster.producer_ids import BLOCK_SIZE
from odradek.cluster.store import Create, Operation, SetData
from odradek.cluster.znodes import (
    ClusterIdZNode,
    PartitionState,
    PartitionStateZNode,
    PartitionZNode,
    ProducerIdBlock,
    ProducerIdBlockZNode,
    TopicAssignment,
    TopicConfigZNode,
    TopicZNode,
    decode_uuid,
)
from odradek.config import BrokerConfig
from odradek.log.files import Files
from odradek.log.log import Log
from odradek.log.properties import read_topic_id
from odradek.log.store import LogStore
from odradek.node import METADATA_FILE

__all__ = ["AdoptionError", "DescribedTopic", "adopt", "read_description"]

NO_CONTROLLER_EPOCH = 0
"""That of partition states which no controller wrote yet; the first one is 1."""

_TOPIC = re.compile(
    r"Topic: (\S+)\s+TopicId: (\S+)\s+PartitionCount: (\d+)\s+ReplicationFactor: \d+\s*(?:Configs:\s*(.*))?"
)


class AdoptionError(Exception):
    """The folders cannot be taken over, for the reason in the message; nothing was changed."""


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic as the broker that had it described it."""

    topic_id: bytes
    partitions: int
    configs: Mapping[str, str]


def read_description(text: str) -> dict[str, DescribedTopic]:
    """Read the output of `kafka-topics.sh --describe`. Raises AdoptionError when it names no topic, or no topic ids."""
    topics = {}
    for line in text.splitlines():
        found = _TOPIC.fullmatch(line.strip())
        if found is None:
            continue
        name, topic_id, partitions, configs = found.groups()
        try:
            topics[name] = DescribedTopic(decode_uuid(topic_id), int(partitions), _configs(configs or ""))
        except ValueError as error:
            raise AdoptionError(f"topic {name}: {error}") from error
    if not topics:
        raise AdoptionError("the description has no line with Topic, TopicId, PartitionCount and ReplicationFactor")
    return topics


def _configs(text: str) -> dict[str, str]:
    """Split "a=1,b=2,3" into a: "1" and b: "2,3": a value may be a list."""
    configs: dict[str, str] = {}
    name = ""
    for part in filter(None, text.strip().split(",")):
        key, equals, value = part.partition("=")
        if equals:
            name, configs[key] = key, value
        elif name:
            configs[name] += f",{part}"
        else:
            raise ValueError(f"not settings: {text!r}")
    return configs


def adopt(config: BrokerConfig, topics: Mapping[str, DescribedTopic]) -> None:
    """Make the metadata store of the folders in `log.dirs`, which no broker may be using.

    Raises AdoptionError, ConfigError for a topic's setting, LogFolderError, StoreError, OSError.
    """
    for topic in topics.values():
        config.topic_config(topic.configs)
    logs = LogStore.open(config.log_dirs, config, config.node_id, Clock())
    try:
        for folder in logs.folders:
            if not folder.online:
                raise AdoptionError(f"{folder.path} cannot be read: {folder.failed}")
        if logs.cluster_id is None:
            paths = ", ".join(folder.path for folder in logs.folders)
            raise AdoptionError(f"{paths}: no meta.properties with a cluster.id, so no broker's folder")
        operations: list[Operation] = [Create(ClusterIdZNode.path, ClusterIdZNode.encode(logs.cluster_id))]
        adopted = [
            operation
            for name, topic in topics.items()
            for operation in _create(name, topic, _logs_of(logs, name, topic), config.node_id)
        ]
        block = _used_producer_ids(logs.logs.values(), config.node_id)
        if block is not None:
            operations.append(SetData(ProducerIdBlockZNode.path, ProducerIdBlockZNode.encode(block)))
        trio.run(_write, Path(logs.folders[0].path) / METADATA_FILE, [*operations, *adopted])
    finally:
        logs.close()


def _logs_of(logs: LogStore, name: str, topic: DescribedTopic) -> list[Log]:
    found = []
    for index in range(topic.partitions):
        log = logs.get(name, index)
        if log is None:
            raise AdoptionError(f"topic {name} has {topic.partitions} partitions, and {name}-{index} is not here")
        if read_topic_id(Files(), log.directory) != topic.topic_id:
            raise AdoptionError(f"{log.directory} is of another topic {name}: its partition.metadata has another id")
        found.append(log)
    return found


def _create(name: str, topic: DescribedTopic, logs: list[Log], node_id: int) -> Iterator[Operation]:
    alone = (node_id,)
    assignment = TopicAssignment(topic.topic_id, dict.fromkeys(range(topic.partitions), alone))
    yield Create(TopicConfigZNode.path(name), TopicConfigZNode.encode(topic.configs))
    yield Create(TopicZNode.path(name), TopicZNode.encode(assignment))
    yield Create(TopicZNode.partitions_path(name))
    for index, log in enumerate(logs):
        state = PartitionState(node_id, log.latest_epoch + 1, alone, NO_CONTROLLER_EPOCH)
        yield Create(PartitionZNode.path(name, index))
        yield Create(PartitionStateZNode.path(name, index), PartitionStateZNode.encode(state))


def _used_producer_ids(logs: Iterable[Log], node_id: int) -> ProducerIdBlock | None:
    """The block with the highest producer id of all logs, as if it had been given out; None when there is none."""
    used = [producer_id for log in logs for producer_id in log.producers.by_id]
    if not used:
        return None
    first = max(used) // BLOCK_SIZE * BLOCK_SIZE
    return ProducerIdBlock(node_id, first, first + BLOCK_SIZE - 1)


async def _write(path: Path, operations: list[Operation]) -> None:
    store = await EmbeddedStore.open(path)
    try:
        await ensure_standing_nodes(store)
        if await store.exists(ClusterIdZNode.path):
            raise AdoptionError(f"{path} is there already: these are Odradek's folders")
        await store.multi(operations)
    finally:
        await store.close()
