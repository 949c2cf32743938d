"""Share groups: who is in one, and which partitions each member reads."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.groups.share_assignor import assign
from odradek.groups.share_group import ShareGroup, ShareHeartbeat
from odradek.groups.timers import Now
from odradek_protocol.errors import BrokerError, Error

TOPIC_ID = bytes([1]) * 16


@dataclass
class Limits:
    share_max_size: int = 3
    share_initialize_retry_interval_ms: int = 30_000

    def share_session_timeout_ms(self, _: str) -> int:
        return 45_000

    def share_assignment_interval_ms(self, _: str) -> int:
        return 0


@dataclass
class Topics:
    """One topic of three partitions."""

    revision: int = 1
    topics: dict[str, Any] = field(default_factory=dict)
    topics_by_id: dict[bytes, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topic = SimpleNamespace(name="t", topic_id=TOPIC_ID, partitions=[0, 1, 2])
        self.topics["t"] = self.topics_by_id[TOPIC_ID] = topic


def now(seconds: float = 0.0) -> Now:
    return Now(seconds, int(seconds * 1000))


def beat(member: str, epoch: int = 0, *topics: str) -> ShareHeartbeat:
    return ShareHeartbeat(member, epoch, "client", "/127.0.0.1", None, topics or None)


def new_group() -> ShareGroup:
    return ShareGroup("g", Limits(), Topics())


def initialized() -> ShareGroup:
    """A group of the member "a" that has its partitions."""
    group = new_group()
    group.heartbeat(beat("a", 0, "t"), now())
    group.end_states(group.begin_states(now()), succeeded=True)
    group.heartbeat(beat("a", 2), now())
    return group


def test_partitions_are_assigned_when_they_have_a_state() -> None:
    group = new_group()
    assert group.heartbeat(beat("a", 0, "t"), now()).assigned == {}
    missing = group.begin_states(now())
    assert missing == {TOPIC_ID: ("t", frozenset({0, 1, 2}))}
    assert group.begin_states(now()) == {}
    group.end_states(missing, succeeded=True)
    result = group.heartbeat(beat("a", 2), now())
    assert (result.member_epoch, result.assigned) == (3, {TOPIC_ID: frozenset({0, 1, 2})})
    assert group.heartbeat(beat("a", 3), now()).assigned is None


def test_a_partition_that_comes_later_is_assigned_when_it_has_a_state() -> None:
    topics = Topics()
    group = ShareGroup("g", Limits(), topics)
    group.heartbeat(beat("a", 0, "t"), now())
    group.end_states(group.begin_states(now()), succeeded=True)
    epoch = group.heartbeat(beat("a", 2), now()).member_epoch
    assert group.heartbeat(beat("a", epoch), now()).assigned is None
    topics.topics["t"].partitions.append(3)
    added = group.begin_states(now())
    assert added == {TOPIC_ID: ("t", frozenset({3}))}
    assert group.heartbeat(beat("a", epoch), now()).assigned is None
    group.end_states(added, succeeded=True)
    assert group.heartbeat(beat("a", epoch), now()).assigned == {TOPIC_ID: frozenset({0, 1, 2, 3})}


def test_the_share_coordinator_is_asked_again() -> None:
    group = new_group()
    group.heartbeat(beat("a", 0, "t"), now())
    group.begin_states(now())
    assert group.begin_states(now(29.9)) == {}
    assert group.begin_states(now(30.0))
    group.end_states(group.tables.topics.initializing, succeeded=False)
    assert group.begin_states(now(30.0))


def test_members_share() -> None:
    group = initialized()
    result = group.heartbeat(beat("b", 0, "t"), now())
    other = group.heartbeat(beat("a", 3), now())
    assert result.assigned
    assert other.assigned
    assert result.assigned[TOPIC_ID] | other.assigned[TOPIC_ID] == {0, 1, 2}
    assert not result.assigned[TOPIC_ID] & other.assigned[TOPIC_ID]


def test_a_member_behind_by_one_reply_is_let_in() -> None:
    group = initialized()
    assert group.heartbeat(beat("a", 2), now()).member_epoch == 3


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (beat("a", 7), Error.FENCED_MEMBER_EPOCH),
        (beat("b", 1), Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_refused(request_: ShareHeartbeat, error: Error) -> None:
    with pytest.raises(BrokerError) as caught:
        initialized().heartbeat(request_, now())
    assert caught.value.error is error


def test_a_group_has_so_many_members() -> None:
    group = initialized()
    for member in ("b", "c"):
        group.heartbeat(beat(member, 0, "t"), now())
    with pytest.raises(BrokerError) as caught:
        group.heartbeat(beat("d", 0, "t"), now())
    assert caught.value.error is Error.GROUP_MAX_SIZE_REACHED


def test_a_silent_member_is_due() -> None:
    group = initialized()
    assert group.deadline == 45.0
    assert group.due(now(44.9)) == []
    assert group.due(now(45.0)) == ["a"]
    group.fence(["a"])
    assert group.state.value == "Empty"


MEMBERS = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.sets(st.sampled_from([b"x", b"y"])), min_size=1)


@given(MEMBERS, st.integers(0, 6), st.integers(0, 6), st.data())
def test_every_partition_has_somebody(members: dict[str, set[bytes]], x: int, y: int, data: st.DataObject) -> None:
    subscriptions = {member: frozenset(topics) for member, topics in members.items()}
    assignable = {b"x": frozenset(range(x)), b"y": frozenset(range(y))}
    first = assign(subscriptions, {}, assignable)
    gone = data.draw(st.sampled_from(sorted(members)))
    left = {member: topics for member, topics in subscriptions.items() if member != gone}
    for subscribed, result in ((subscriptions, first), (left, assign(left, first, assignable) if left else {})):
        given_out = {(topic, index) for got in result.values() for topic, each in got.items() for index in each}
        topics = {topic for each in subscribed.values() for topic in each}
        wanted = {(topic, index) for topic in topics for index in assignable[topic]}
        assert given_out == wanted
        assert all(set(got) <= subscribed[member] for member, got in result.items())
