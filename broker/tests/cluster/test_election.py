"""Replica assignment and leader choice: examples from Kafka's documentation, and properties of all assignments."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cluster.election import NO_LEADER, assign_replicas, choose_leader, rack_alternated
from odradek_protocol.errors import BrokerError, Error

RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def without_racks(count: int) -> dict[int, str | None]:
    return dict.fromkeys(range(count))


def test_replicas_go_round_the_brokers_and_shift_each_time_round() -> None:
    # The table in the documentation of Kafka's AdminUtils: five brokers, ten partitions, three replicas.
    expected = [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]
    assert assign_replicas(without_racks(5), 10, 3, start=0, shift=0) == expected


def test_brokers_alternate_by_rack() -> None:
    assert rack_alternated(RACKS) == [0, 3, 1, 5, 4, 2]


def test_a_rack_aware_assignment_spreads_over_racks() -> None:
    # The example in the documentation of Kafka's AdminUtils.
    expected = [(0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3), (0, 4, 2)]
    assert assign_replicas(RACKS, 7, 3, start=0, shift=0) == expected


def test_a_topic_that_grows_goes_on_where_it_was() -> None:
    whole = assign_replicas(without_racks(4), 9, 2, start=1, shift=0)
    first = assign_replicas(without_racks(4), 3, 2, start=1, shift=0)
    assert [*first, *assign_replicas(without_racks(4), 1, 2, start=1, shift=0, first_partition=3)] == whole[:4]


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "error"),
    [
        (1, 0, 1, Error.INVALID_PARTITIONS),
        (1, 1, 0, Error.INVALID_REPLICATION_FACTOR),
        (1, 1, 2, Error.INVALID_REPLICATION_FACTOR),
        (0, 1, 1, Error.INVALID_REPLICATION_FACTOR),
    ],
)
def test_what_cannot_be_assigned(brokers: int, partitions: int, factor: int, error: Error) -> None:
    with pytest.raises(BrokerError) as caught:
        assign_replicas(without_racks(brokers), partitions, factor, start=0, shift=0)
    assert caught.value.error is error


@st.composite
def clusters(draw: st.DrawFn) -> dict[int, str | None]:
    brokers = draw(st.sets(st.integers(0, 1000), min_size=1, max_size=12))
    rack = st.sampled_from(["a", "b", "c", "d"])
    return {broker: draw(draw(st.sampled_from([rack, st.none()]))) for broker in brokers}


@given(
    racks=clusters(),
    partitions=st.integers(1, 60),
    factor=st.integers(1, 12),
    start=st.integers(0, 20),
    shift=st.integers(0, 20),
    first=st.integers(0, 50),
)
def test_every_assignment_is_sound_and_balanced(
    racks: dict[int, str | None], partitions: int, factor: int, start: int, shift: int, first: int
) -> None:
    factor = min(factor, len(racks))
    assignment = assign_replicas(racks, partitions, factor, start=start, shift=shift, first_partition=first)
    assert len(assignment) == partitions
    for replicas in assignment:
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
    leaders = Counter(dict.fromkeys(racks, 0)) + Counter()
    leaders.update(replicas[0] for replicas in assignment)
    led = [leaders[broker] for broker in racks]
    assert max(led) - min(led) <= 1
    if None not in racks.values():
        all_racks = set(racks.values())
        for replicas in assignment:
            assert len({racks[broker] for broker in replicas}) == min(factor, len(all_racks))


@given(brokers=st.integers(1, 8), rounds=st.integers(1, 5), factor=st.integers(1, 8), start=st.integers(0, 8))
def test_without_racks_all_hold_the_same_after_whole_rounds(brokers: int, rounds: int, factor: int, start: int) -> None:
    factor = min(factor, brokers)
    assignment = assign_replicas(without_racks(brokers), brokers * rounds, factor, start=start, shift=start)
    held = Counter(broker for replicas in assignment for broker in replicas)
    assert set(held.values()) == {rounds * factor}


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "leader"),
    [
        ((1, 2, 3), (3, 2, 1), {1, 2, 3}, 1),
        ((1, 2, 3), (2, 3), {1, 2, 3}, 2),
        ((1, 2, 3), (1, 2, 3), {3}, 3),
        ((1, 2, 3), (1,), {2, 3}, NO_LEADER),
        ((1,), (), {1}, NO_LEADER),
    ],
)
def test_the_leader_is_the_first_replica_alive_and_in_sync(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: set[int], leader: int
) -> None:
    assert choose_leader(replicas, isr, live) == leader
