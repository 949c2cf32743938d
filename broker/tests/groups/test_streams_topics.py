"""The numbers of partitions of internal topics, and topologies that do not fit the topics or can never work."""

from typing import Any

import pytest
from support.consumer_groups import FakeTopics
from support.streams_groups import topology

from odradek.groups.streams_topics import ConfiguredTopology, StatusCode, configure
from odradek.groups.streams_topology import CopartitionGroup, InternalTopic, Subtopology
from odradek_protocol.errors import BrokerError, Error


def sub(name: str, *sources: str, **told: Any) -> Subtopology:
    for key in ("state_changelog_topics", "repartition_source_topics"):
        told[key] = tuple(
            topic if isinstance(topic, InternalTopic) else InternalTopic(topic) for topic in told.get(key, ())
        )
    return Subtopology(name, sources, **told)


def configured(*subtopologies: Subtopology, **sizes: int) -> ConfiguredTopology:
    topics = FakeTopics()
    for name, partitions in sizes.items():
        topics.put(name, partitions)
    return configure(topology(*subtopologies), topics)


def missing(result: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in result.missing}


def test_numbers_go_from_the_sources_through_the_subtopologies() -> None:
    result = configured(
        sub("2", repartition_source_topics=["second"], state_changelog_topics=["last"]),
        sub("1", "small", repartition_source_topics=["first"], repartition_sink_topics=("second",)),
        sub("0", "large", repartition_sink_topics=("first",), state_changelog_topics=["store"]),
        large=6,
        small=2,
    )
    assert missing(result) == {"store": 6, "first": 6, "second": 6, "last": 6}
    assert {name: each.tasks for name, each in result.subtopologies.items()} == {"0": 6, "1": 6, "2": 6}
    assert [each.is_stateful for each in result.subtopologies.values()] == [True, False, True]
    assert result.fault is not None
    assert result.fault.code is StatusCode.MISSING_INTERNAL_TOPICS
    assert result.fault.detail == "Internal topics are missing: store, first, second and 1 additional topics"


def test_a_number_that_is_told_holds() -> None:
    fixed = InternalTopic("fixed", 2, 3, (("retention.ms", "-1"),))
    result = configured(
        sub("0", "t", repartition_sink_topics=("fixed",)), sub("1", repartition_source_topics=[fixed]), t=4
    )
    assert result.missing == (fixed,)


def test_all_topics_are_there() -> None:
    result = configured(sub("0", "t", state_changelog_topics=["store"]), t=4, store=4)
    assert result.is_ready
    assert result.missing == ()


def test_joined_topics_have_the_same_number() -> None:
    joined = CopartitionGroup((0,), repartition_source_topics=(0,))
    parts = [
        sub("0", "large", repartition_sink_topics=("between",)),
        sub("1", "small", repartition_source_topics=["between"], copartition_groups=(joined,)),
    ]
    assert missing(configured(*parts, large=6, small=2)) == {"between": 2}


def test_joined_repartition_topics_have_the_larger_number() -> None:
    joined = CopartitionGroup(repartition_source_topics=(0, 1))
    parts = [
        sub("0", "large", repartition_sink_topics=("one",)),
        sub("1", "small", repartition_sink_topics=("two",)),
        sub("2", repartition_source_topics=["one", "two"], copartition_groups=(joined,)),
    ]
    assert missing(configured(*parts, large=6, small=2)) == {"one": 6, "two": 6}


@pytest.mark.parametrize(
    ("parts", "sizes", "code", "detail"),
    [
        (
            [sub("0", "b", "a", "d", "c")],
            {},
            StatusCode.MISSING_SOURCE_TOPICS,
            "Source topics a, b, c and 1 additional topics are missing.",
        ),
        (
            [sub("0", "a", "b", copartition_groups=(CopartitionGroup((0, 1)),))],
            {"a": 2, "b": 3},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{a=2, b=3}]",
        ),
        (
            [
                sub("0", "a", repartition_sink_topics=("r",)),
                sub(
                    "1",
                    "a",
                    repartition_source_topics=[InternalTopic("r", 5)],
                    copartition_groups=(CopartitionGroup((0,), repartition_source_topics=(0,)),),
                ),
            ],
            {"a": 2},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Number of partitions [5] of repartition topic [r] doesn't match number of partitions [2] of the source "
            "topic.",
        ),
        (
            [sub("0", "a", state_changelog_topics=["store"])],
            {"a": 2, "store": 1},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Existing topic store has different number of partitions: expected 2, found 1",
        ),
    ],
)
def test_topics_that_do_not_fit(parts: list[Subtopology], sizes: dict[str, int], code: StatusCode, detail: str) -> None:
    result = configured(*parts, **sizes)
    assert result.fault is not None
    assert (result.fault.code, result.fault.detail) == (code, detail)
    assert (result.subtopologies, result.missing) == ({}, ())


@pytest.mark.parametrize(
    "parts",
    [
        [sub("0")],
        [sub("0", repartition_source_topics=["r"], repartition_sink_topics=("r",))],
        [sub("0", "t", repartition_source_topics=["r"])],
        [sub("0", "t", copartition_groups=(CopartitionGroup((1,)),))],
        [sub("0", "t", copartition_groups=(CopartitionGroup((-1,)),))],
    ],
    ids=["no source", "loop", "never written", "copartition group", "negative"],
)
def test_topologies_that_can_never_work(parts: list[Subtopology]) -> None:
    with pytest.raises(BrokerError) as raised:
        configured(*parts, t=2)
    assert raised.value.error is Error.STREAMS_INVALID_TOPOLOGY
