"""The cluster as this broker sees it: brokers, topics, partitions, in memory.

Rules:

- Handlers read it and never wait for it; only the controller changes it.
- A `TopicView`, `PartitionView` or `BrokerView` never changes: a change puts a new one in its place. So what a handler
  holds across an `await` is whole, if perhaps no longer the newest.
- A topic is in the view from when its partitions serve (or could not be made) until its deletion begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.cluster.topics import collision_key

__all__ = ["BrokerView", "ClusterView", "Endpoint", "PartitionView", "TopicView"]


class Endpoint(NamedTuple):
    """Where a listener of a broker is reached; `security_protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerView(NamedTuple):
    """A live broker; its endpoints by listener name."""

    node_id: int
    rack: str | None
    endpoints: Mapping[str, Endpoint]


class PartitionView(NamedTuple):
    """A partition's replicas in order of preference, which of them are in sync, and who leads since which epoch.

    `offline` are the replicas whose broker lives while the folder with their log has failed.
    """

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


class TopicView(NamedTuple):
    """A topic; `partitions[i]` is partition i, `configs` are its overrides only."""

    name: str
    topic_id: bytes
    partitions: Sequence[PartitionView]
    configs: Mapping[str, str]
    internal: bool


@dataclass(slots=True)
class ClusterView:
    """Everything known; empty until the controller has loaded it."""

    cluster_id: str = ""
    controller_id: int = -1
    brokers: dict[int, BrokerView] = field(default_factory=dict)
    topics: dict[str, TopicView] = field(default_factory=dict)
    topics_by_id: dict[bytes, TopicView] = field(default_factory=dict)
    group_configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """The settings that single groups have of their own."""
    revision: int = 0
    """Counts the changes, so that what was made from the view can be told from what is out of date."""
    _by_collision_key: dict[str, str] = field(default_factory=dict)

    def put_topic(self, topic: TopicView) -> None:
        """Add a topic, or put a newer picture of it in place of the one that is there."""
        self.remove_topic(topic.name)
        self.revision += 1
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._by_collision_key[collision_key(topic.name)] = topic.name

    def remove_topic(self, name: str) -> None:
        """Forget a topic; harmless when it is not there."""
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.revision += 1
            del self.topics_by_id[topic.topic_id]
            self._by_collision_key.pop(collision_key(name), None)

    def put_brokers(self, brokers: dict[int, BrokerView], controller_id: int) -> None:
        """Show which brokers live, and which of them is the controller."""
        self.brokers = brokers
        self.controller_id = controller_id
        self.revision += 1

    def colliding(self, name: str) -> str | None:
        """The topic whose name differs from `name` only in where '.' and '_' stand; `name` itself if it exists."""
        return self._by_collision_key.get(collision_key(name))
