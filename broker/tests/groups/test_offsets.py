"""Committed offsets of a group. Invariant: whenever somebody asks, the commit of the last record is what is told."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from odradek.groups import offsets as offsets_module
from odradek.groups.offsets import Commit, CommittedOffset, GroupOffsets

TOPICS = st.sampled_from(["t", "u", "v"])
INDEXES = st.lists(st.integers(0, 3), min_size=1, max_size=4)
"""One twice is possible: the last one counts."""

COMMITS = st.tuples(TOPICS, INDEXES, st.integers(0, 40))
REMOVALS = st.tuples(TOPICS, st.integers(0, 3))
ASKED = st.just(())


@given(st.lists(COMMITS | REMOVALS | ASKED, max_size=20))
def test_the_last_commit_counts_whenever_somebody_asks(steps: list[tuple[object, ...]]) -> None:
    offsets, model = GroupOffsets(), dict[tuple[str, int], int]()
    with mock.patch.object(offsets_module, "LAST_KEPT", 2):
        for step in steps:
            match step:
                case (str(topic), list(indexes), int(record_offset)):
                    offsets.put_commit(_commit(topic, indexes, record_offset))
                    for number, index in enumerate(indexes, record_offset):
                        model[topic, index] = max(number, model.get((topic, index), -1))
                case (str(topic), int(index)):
                    offsets.remove(topic, index)
                    model.pop((topic, index), None)
                case _:
                    assert _told(offsets) == model
    assert bool(offsets) == bool(model)
    assert _told(offsets) == model


def _commit(topic: str, indexes: list[int], record_offset: int) -> Commit:
    count = len(indexes)
    numbers = range(record_offset, record_offset + count)
    return Commit(topic, indexes, numbers, (-1,) * count, ("",) * count, (5,) * count, -1, record_offset)


def _told(offsets: GroupOffsets) -> dict[tuple[str, int], int]:
    """The offset of each partition, which is that of its record here."""
    found = {}
    for topic, index in offsets.partitions():
        number = offsets.topics[topic][index][0]
        assert offsets.get(topic, index) == CommittedOffset(number, -1, "", 5, -1, number)
        found[topic, index] = number
    return found
