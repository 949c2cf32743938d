"""Any order of heartbeats, time, topics and log failures: what always holds of a consumer group of KIP-848."""

from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from support.assigned_groups import MEMBERS, AssignedGroupRules
from support.consumer_groups import ConsumerLimits, FakeTopics, Member

from odradek.groups.consumer_group import ConsumerGroup, ConsumerGroupState, Heartbeat, HeartbeatResult
from odradek.groups.consumer_records import CONSUMER_RECORDS
from odradek.groups.consumer_state import LEAVE_STATIC_EPOCH
from odradek.groups.timers import Now
from odradek_protocol.errors import BrokerError, Error

TOPICS = ["a", "b", "ab"]
SUBSCRIPTIONS = st.one_of(
    st.lists(st.sampled_from(TOPICS), max_size=3, unique=True).map(
        lambda names: {"topic_names": names, "topic_pattern": ""}
    ),
    st.sampled_from(["a.*", "b", "a|b"]).map(lambda pattern: {"topic_names": [], "topic_pattern": pattern}),
)


class Consumer(Member):
    """A member that may take its time to give up partitions."""

    def __init__(self, member_id: str, group: ConsumerGroup, instance_id: str | None) -> None:
        super().__init__(member_id, group, instance_id=instance_id)
        self.has: set[tuple[bytes, int]] = set()
        self.told: set[tuple[bytes, int]] = set()
        self.out_of_touch = False
        self.subscription: dict[str, object] = {}

    def everything(self) -> dict[str, object]:
        return {"rebalance_timeout_ms": 60_000, **self.subscription}

    def send(self, now: Now, said: dict[str, object]) -> HeartbeatResult:
        self.owned = _as_assignment(self.has)
        return self.beat(now, **said)

    def assigned(self, result: HeartbeatResult) -> set[tuple[bytes, int]] | None:
        return None if result.assigned is None else self.partitions


class ConsumerGroupRules(AssignedGroupRules[ConsumerGroup, Consumer]):
    """Consumers, an administrator of topics, and a log."""

    RECORDS = CONSUMER_RECORDS
    TABLES = (
        *("members", "currents", "targets", "patterns", "epoch", "target_epoch"),
        *("static_ids", "subscribers", "pattern_members", "assignors"),
    )
    REFUSALS: ClassVar[tuple[Error, ...]] = (
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.FENCED_INSTANCE_ID,
        Error.UNRELEASED_INSTANCE_ID,
        Error.GROUP_MAX_SIZE_REACHED,
    )

    @initialize(assignor=st.sampled_from(["uniform", "range"]), interval_ms=st.sampled_from([0, 1000]))
    def start(self, assignor: str, interval_ms: int) -> None:
        self.topics = FakeTopics()
        self.topics.put("a", 3)
        self.limits = ConsumerLimits(assignors=[assignor], max_size=5, assignment_ms=interval_ms)
        self.begin()

    def new_group(self) -> ConsumerGroup:
        return ConsumerGroup("g", self.limits, self.topics)

    def beat(
        self, member: Consumer, *, lost: bool = False, fails: bool = False, **said: object
    ) -> HeartbeatResult | None:
        member.subscription = said or member.subscription
        return super().beat(member, lost=lost, fails=fails, **said)

    @rule(subscription=SUBSCRIPTIONS, instance_id=st.sampled_from([None, None, None, "i"]), fails=st.booleans())
    def join(self, subscription: dict[str, Any], instance_id: str | None, fails: bool) -> None:
        self.add(Consumer(self.new_id(), self.group, instance_id), fails=fails, **subscription)

    @rule(index=MEMBERS)
    def say_nothing_new(self, index: int) -> None:
        """The short way is taken only where the long one does not lead anywhere else."""
        consumer = self.pick(index)
        if consumer is None or consumer.epoch == 0:
            return
        request = Heartbeat(consumer.member_id, consumer.epoch, "client", "/127.0.0.1")
        was_all = self.group.keep_alive(request.member_id, request.member_epoch, "client", "/127.0.0.1", self.now)
        assert not self.group.tables.has_changes
        if was_all:
            assert self.group.heartbeat(request, self.now) == HeartbeatResult(consumer.member_id, consumer.epoch)
            assert not self.group.tables.has_changes

    @rule(index=MEMBERS, subscription=SUBSCRIPTIONS)
    def subscribe(self, index: int, subscription: dict[str, Any]) -> None:
        member = self.pick(index)
        if member is not None:
            self.beat(member, **subscription)

    @rule(index=MEMBERS, will_be_back=st.booleans())
    def leave(self, index: int, will_be_back: bool) -> None:
        member = self.pick(index)
        if member is None:
            return
        self.members.remove(member)
        static = member.instance_id is not None and will_be_back
        try:
            member.leave(LEAVE_STATIC_EPOCH if static else -1)
        except BrokerError as error:
            assert error.error in self.REFUSALS  # noqa: PT017 - the error is one of several
        self.store()

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 5))
    def change_topic(self, name: str, partitions: int) -> None:
        known = self.topics.topics.get(name)
        if known is None or len(known.partitions) < partitions:
            self.topics.put(name, partitions)
        elif partitions == 1:
            self.topics.remove(name)

    def check_target(self) -> None:
        if any(self.group.tables.current(member_id).epoch == LEAVE_STATIC_EPOCH for member_id in self.group.members):
            return
        if self.group.members:
            assert self.group.state is ConsumerGroupState.STABLE
        owned = [partition for each in self.members for partition in each.has]
        consumed = {name for name in self.topics.topics if self.group.consumes(name)}
        expected = {
            (self.topics.topics[name].topic_id, index)
            for name in consumed
            for index in self.topics.topics[name].partitions
        }
        assert sorted(owned) == sorted(expected)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        seen: set[tuple[bytes, int]] = set()
        for member_id in self.group.members:
            current = self.group.tables.current(member_id)
            for held in (current.assigned, current.revoking):
                for topic, partitions in held.items():
                    for partition in partitions:
                        assert (topic, partition) not in seen
                        seen.add((topic, partition))
                        assert self.group.tables.owner(topic, partition) == member_id

    @invariant()
    def the_target_is_no_newer_than_the_group(self) -> None:
        assert self.group.tables.target_epoch.epoch <= self.group.tables.epoch.epoch


def _as_assignment(partitions: set[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, set()).add(partition)
    return {topic: frozenset(each) for topic, each in found.items()}


ConsumerGroupRules.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestConsumerGroupRules = ConsumerGroupRules.TestCase


def test_a_topic_that_went_is_missed_again_where_that_could_not_be_stored() -> None:
    topics = FakeTopics()
    topics.put("t", 3)
    group = ConsumerGroup("g", ConsumerLimits(), topics)
    member = Member("m", group)
    now = Now(0.0, 1_000_000)
    member.beat(now)
    group.tables.take_changes()
    topics.remove("t")
    Member("other", group).beat(now)
    group.undo(group.tables.take_changes())
    member.beat(now)
    assert member.owned == {}


def test_a_heartbeat_that_says_nothing_new_is_all_until_something_is_new() -> None:
    topics = FakeTopics()
    topics.put("t", 3)
    group = ConsumerGroup("g", ConsumerLimits(session_ms=10_000), topics)
    member = Member("m", group)
    member.beat(Now(0.0, 1_000_000))
    later = Now(8.0, 1_008_000)
    assert not group.keep_alive("m", member.epoch - 1, "client", "/127.0.0.1", later)
    assert not group.keep_alive("m", member.epoch, "client", "/127.0.0.2", later)
    assert not group.keep_alive("other", member.epoch, "client", "/127.0.0.1", later)
    assert list(group.timers.sessions()) == [("m", 10.0)]
    assert group.keep_alive("m", member.epoch, "client", "/127.0.0.1", later)
    assert list(group.timers.sessions()) == [("m", 18.0)]
    topics.put("t", 4)
    assert not group.keep_alive("m", member.epoch, "client", "/127.0.0.1", later)
