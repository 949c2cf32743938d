"""What a Kafka Streams application is made of, as its members tell it: subtopologies, and the topics of each.

    source topics ---> subtopology ---> repartition sink topics, which are another's repartition source topics
                            |
                            +---> state changelog topics

A subtopology is done as tasks: task n reads partition n of each of its source and repartition source topics. The
topics of a copartition group are joined, so they have to have equally many partitions. Repartition and changelog topics
are internal: the broker makes them. A number of partitions of 0 says that it is to be worked out (`streams_topics`).

Everything here is plain data that never changes; topologies are compared by value. KIP-1071.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

__all__ = ["CopartitionGroup", "InternalTopic", "Subtopology", "Topology"]

TopicConfigs = tuple[tuple[str, str], ...]


class InternalTopic(NamedTuple):
    """A repartition or changelog topic. 0 partitions or replicas say that the broker is to choose."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: TopicConfigs = ()


class CopartitionGroup(NamedTuple):
    """Topics of a subtopology that have equally many partitions, by their places in the lists of the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A part of the application that is connected only by topics with the rest."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def read_topics(self) -> tuple[str, ...]:
        """The topics that its tasks read."""
        return *self.source_topics, *(topic.name for topic in self.repartition_source_topics)

    def copartitioned(self, group: CopartitionGroup) -> frozenset[str]:
        """The names of the topics of a copartition group. IndexError when it names none of the subtopology's."""
        indexes = (*group.source_topics, *group.repartition_source_topics)
        if any(index < 0 for index in indexes):
            raise IndexError(min(indexes))
        sources = {self.source_topics[index] for index in group.source_topics}
        return frozenset(sources | {self.repartition_source_topics[i].name for i in group.repartition_source_topics})


@dataclass(frozen=True)
class Topology:
    """An application; `epoch` tells an application from what it was before it was changed."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]

    @cached_property
    def readers(self) -> Mapping[str, Subtopology]:
        """The subtopology that reads a topic, by topic."""
        return {name: each for each in self.subtopologies.values() for name in each.read_topics}

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """The topics without which it cannot work."""
        changelogs = (topic.name for each in self.subtopologies.values() for topic in each.state_changelog_topics)
        return frozenset((*self.readers, *changelogs))

    @cached_property
    def named_topics(self) -> frozenset[str]:
        """Every topic that it names, also where it only writes."""
        sinks = (name for each in self.subtopologies.values() for name in each.repartition_sink_topics)
        return self.required_topics.union(sinks)
