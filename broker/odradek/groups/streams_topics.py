"""How many partitions the internal topics of a Kafka Streams application have, and whether its topics are fit for it.

A repartition topic has as many partitions as its topology says; where it does not say, as many as the largest topic
that the subtopology reads which writes it. Then all topics of a copartition group are brought to the same number, that
of the topics that are not the broker's to make. A changelog topic has one partition for each task.

A topology that can never work is refused (STREAMS_INVALID_TOPOLOGY). One that works with other topics than there are is
told as a status, and may become ready: `ConfiguredTopology.fault`. Texts are Kafka's.
"""

import enum
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from odradek.groups.streams_topology import InternalTopic, Subtopology, Topology
from odradek.groups.subscriptions import Topics
from odradek_protocol.errors import BrokerError, Error

__all__ = ["ConfiguredSubtopology", "ConfiguredTopology", "Status", "StatusCode", "configure"]

SUMMARIZED_TOPICS = 3
"""How many topics a status names."""


class StatusCode(enum.IntEnum):
    """What members are told of their group."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """A code, and words for people."""

    code: StatusCode
    detail: str


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose internal topics have numbers of partitions."""

    subtopology: Subtopology
    tasks: int
    repartition_source_topics: tuple[InternalTopic, ...]
    state_changelog_topics: tuple[InternalTopic, ...]

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have stores, of which others can keep copies."""
        return bool(self.state_changelog_topics)


class ConfiguredTopology(NamedTuple):
    """A topology with the topics there are. Without a `fault` it is ready to be worked on.

    `missing` are the internal topics to be made; `subtopologies` is empty where numbers could not be worked out.
    """

    subtopologies: Mapping[str, ConfiguredSubtopology] = MappingProxyType({})
    missing: tuple[InternalTopic, ...] = ()
    fault: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all topics are there and have the right number of partitions."""
        return self.fault is None


class _Unfit(Exception):  # noqa: N818 - caught where it is told as a status, never answered
    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """The topology with the topics there are. STREAMS_INVALID_TOPOLOGY for one that can never work."""
    sizes = {name: len(topic.partitions) for name, topic in topics.topics.items() if name in topology.required_topics}
    try:
        _check_sources(topology, sizes)
        counts = _decide(topology, sizes)
        subtopologies = {
            name: _configured(topology.subtopologies[name], sizes, counts) for name in sorted(topology.subtopologies)
        }
        missing = _missing(subtopologies.values(), sizes)
    except _Unfit as unfit:
        return ConfiguredTopology(fault=unfit.status)
    fault = None
    if missing:
        text = f"Internal topics are missing: {_summary(topic.name for topic in missing)}"
        fault = Status(StatusCode.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(subtopologies, missing, fault)


def _check_sources(topology: Topology, sizes: Mapping[str, int]) -> None:
    missing = {
        name for each in topology.subtopologies.values() for name in each.source_topics if sizes.get(name) is None
    }
    if missing:
        text = f"Source topics {_summary(sorted(missing))} are missing."
        raise _Unfit(StatusCode.MISSING_SOURCE_TOPICS, text)


def _decide(topology: Topology, sizes: Mapping[str, int]) -> dict[str, int]:
    """The numbers of partitions of all internal topics."""
    subtopologies = topology.subtopologies.values()
    counts = _repartition_counts(subtopologies, sizes)
    fixed = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_source_topics
        if topic.partitions
    }
    flexible = {topic.name for each in subtopologies for topic in each.repartition_source_topics} - fixed.keys()
    for each in subtopologies:
        for group in each.copartition_groups:
            try:
                names = each.copartitioned(group)
            except IndexError:
                text = f"A copartition group of subtopology {each.subtopology_id} names topics that it does not have."
                raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY, text) from None
            counts.update(_copartitioned({name: sizes.get(name) or counts[name] for name in names}, fixed, flexible))
    for each in subtopologies:
        if not each.read_topics:
            text = f"No source topics found for subtopology {each.subtopology_id}"
            raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY, text)
        tasks = _tasks(each, sizes, counts)
        counts.update((topic.name, tasks) for topic in each.state_changelog_topics)
    return counts


def _repartition_counts(subtopologies: Collection[Subtopology], sizes: Mapping[str, int]) -> dict[str, int]:
    """The numbers of partitions of repartition topics, from the sources on, before copartition groups are looked at."""
    sources = [topic for each in subtopologies for topic in each.repartition_source_topics]
    counts = {topic.name: topic.partitions for topic in sources if topic.partitions}
    writers = {name: each for each in reversed(list(subtopologies)) for name in each.repartition_sink_topics}
    open_sinks = {name: writer for name, writer in writers.items() if name not in counts}
    while open_sinks:
        # Whoever reads a topic whose number is still to be found waits for it, but for loops.
        settled = {name for name, writer in open_sinks.items() if _reads_only(writer, counts)}
        found = {}
        for name in settled or open_sinks:
            writer = open_sinks[name]
            known = [counts.get(topic.name, 0) for topic in writer.repartition_source_topics]
            largest = max((*known, *(sizes[topic] for topic in writer.source_topics)), default=0)
            if largest:
                found[name] = largest
        if not found:
            raise BrokerError(
                Error.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
                "that cannot be resolved.",
            )
        counts.update(found)
        open_sinks = {name: writer for name, writer in open_sinks.items() if name not in found}
    if any(topic.name not in counts for topic in sources):
        raise BrokerError(
            Error.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is "
            "never used as a sink topic.",
        )
    return counts


def _reads_only(subtopology: Subtopology, counts: Mapping[str, int]) -> bool:
    return all(topic.name in counts for topic in subtopology.repartition_source_topics)


def _copartitioned(group: Mapping[str, int], fixed: Mapping[str, int], flexible: Collection[str]) -> dict[str, int]:
    """The number of partitions of each repartition topic of a copartition group, whose topics have these so far."""
    repartition = {name: count for name, count in group.items() if name in fixed or name in flexible}
    external = {name: count for name, count in group.items() if name not in repartition}
    pinned = {name: count for name, count in repartition.items() if name in fixed}
    deciding = external or pinned
    if len(set(deciding.values())) > 1:
        counts = ", ".join(f"{name}={count}" for name, count in sorted((external or repartition).items()))
        text = f"Following topics do not have the same number of partitions: [{{{counts}}}]"
        raise _Unfit(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, text)
    decided = max((deciding or repartition).values(), default=0)
    for name, count in pinned.items():
        if count != decided:
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions "
                f"[{decided}] of the source topic.",
            )
    return dict.fromkeys(repartition, decided)


def _tasks(subtopology: Subtopology, sizes: Mapping[str, int], counts: Mapping[str, int]) -> int:
    return max(sizes.get(name) or counts[name] for name in subtopology.read_topics)


def _configured(subtopology: Subtopology, sizes: Mapping[str, int], counts: Mapping[str, int]) -> ConfiguredSubtopology:
    def with_count(topics: Iterable[InternalTopic]) -> tuple[InternalTopic, ...]:
        return tuple(topic._replace(partitions=topic.partitions or counts[topic.name]) for topic in topics)

    return ConfiguredSubtopology(
        subtopology,
        _tasks(subtopology, sizes, counts),
        with_count(subtopology.repartition_source_topics),
        with_count(subtopology.state_changelog_topics),
    )


def _missing(subtopologies: Iterable[ConfiguredSubtopology], sizes: Mapping[str, int]) -> tuple[InternalTopic, ...]:
    """The internal topics that are not there; those that are have the right number of partitions."""
    missing: dict[str, InternalTopic] = {}
    for each in subtopologies:
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            found = sizes.get(topic.name)
            if found is None:
                missing[topic.name] = topic
            elif found != topic.partitions:
                raise _Unfit(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions}, "
                    f"found {found}",
                )
    return tuple(missing.values())


def _summary(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - SUMMARIZED_TOPICS
    return ", ".join(listed[:SUMMARIZED_TOPICS]) + (f" and {more} additional topics" if more > 0 else "")
