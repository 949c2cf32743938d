"""The assignors: every partition has one owner who subscribes to it; balance; what stays where it is."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.groups.assignors import Assignment, AssignorMember, assign_range, assign_uniform

TOPICS = [b"a", b"b", b"c", b"d"]
SIZES = st.fixed_dictionaries({topic: st.integers(1, 12) for topic in TOPICS})
SUBSCRIPTIONS = st.lists(st.frozensets(st.sampled_from(TOPICS), min_size=1), min_size=1, max_size=8)


def members_of(
    subscriptions: list[frozenset[bytes]], current: dict[str, Assignment] | None = None
) -> dict[str, AssignorMember]:
    found = current or {}
    return {
        f"m{index}": AssignorMember(None, topics, found.get(f"m{index}", {}))
        for index, topics in enumerate(subscriptions)
    }


def loads(assigned: dict[str, Assignment]) -> list[int]:
    return [sum(map(len, each.values())) for each in assigned.values()]


def check_complete(
    members: dict[str, AssignorMember], assigned: dict[str, Assignment], sizes: dict[bytes, int]
) -> None:
    owned = [
        (topic, partition)
        for member_id, each in assigned.items()
        for topic, partitions in each.items()
        for partition in partitions
        if topic in members[member_id].topics
    ]
    wanted = {topic for member in members.values() for topic in member.topics}
    assert sorted(owned) == sorted((topic, index) for topic in wanted for index in range(sizes[topic]))
    assert sum(loads(assigned)) == len(owned)


@given(subscriptions=SUBSCRIPTIONS, sizes=SIZES)
def test_every_partition_has_one_owner(subscriptions: list[frozenset[bytes]], sizes: dict[bytes, int]) -> None:
    members = members_of(subscriptions)
    for assign in (assign_uniform, assign_range):
        check_complete(members, assign(members, sizes), sizes)


@given(count=st.integers(1, 9), sizes=SIZES, gone=st.integers(0, 3), come=st.integers(0, 3))
def test_uniform_is_balanced_and_moves_as_little_as_balance_allows(
    count: int, sizes: dict[bytes, int], gone: int, come: int
) -> None:
    topics = frozenset(TOPICS)
    before = assign_uniform(members_of([topics] * count), sizes)
    assert max(loads(before)) - min(loads(before)) <= 1
    stay = {f"m{index}": before[f"m{index}"] for index in range(min(gone, count - 1), count)}
    members = {member_id: AssignorMember(None, topics, each) for member_id, each in stay.items()}
    members |= {f"n{index}": AssignorMember(None, topics, {}) for index in range(come)}
    after = assign_uniform(members, sizes)
    check_complete(members, after, sizes)
    assert max(loads(after)) - min(loads(after)) <= 1
    most = -(-sum(sizes.values()) // len(members))
    for member_id, each in stay.items():
        kept = sum(len(partitions & after[member_id].get(topic, frozenset())) for topic, partitions in each.items())
        assert kept >= min(sum(map(len, each.values())), most - 1)


@given(subscriptions=SUBSCRIPTIONS, sizes=SIZES)
def test_uniform_moves_nothing_when_nothing_changes(
    subscriptions: list[frozenset[bytes]], sizes: dict[bytes, int]
) -> None:
    before = assign_uniform(members_of(subscriptions), sizes)
    assert assign_uniform(members_of(subscriptions, before), sizes) == before


@given(subscriptions=SUBSCRIPTIONS, sizes=SIZES)
def test_uniform_leaves_nobody_two_partitions_ahead_of_who_could_have_them(
    subscriptions: list[frozenset[bytes]], sizes: dict[bytes, int]
) -> None:
    members = members_of(subscriptions)
    assigned = assign_uniform(members, sizes)
    load = {member_id: sum(map(len, each.values())) for member_id, each in assigned.items()}
    for member_id, each in assigned.items():
        for topic in each:
            for other, member in members.items():
                assert topic not in member.topics or load[member_id] - load[other] <= 1


def test_range_gives_ranges_in_the_order_of_instance_and_member_ids() -> None:
    both = frozenset({b"a", b"b"})
    members = {
        "z": AssignorMember("i1", both, {}),
        "a": AssignorMember(None, both, {}),
        "b": AssignorMember(None, frozenset({b"a"}), {}),
    }
    assert assign_range(members, {b"a": 5, b"b": 3}) == {
        "z": {b"a": frozenset({0, 1}), b"b": frozenset({0, 1})},
        "a": {b"a": frozenset({2, 3}), b"b": frozenset({2})},
        "b": {b"a": frozenset({4})},
    }
