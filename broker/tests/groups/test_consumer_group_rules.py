"""Any order of heartbeats, time, topics and log failures: what always holds of a consumer group of KIP-848.

Members are as the protocol asks: they own what they were told, and give up what they are not told any more, at once or
some heartbeats later. A reply may be lost, and a change may fail to be stored.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
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
MEMBERS = st.integers(0, 5)
REFUSALS = (
    Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_MEMBER_EPOCH,
    Error.FENCED_INSTANCE_ID,
    Error.UNRELEASED_INSTANCE_ID,
    Error.GROUP_MAX_SIZE_REACHED,
)


class Consumer(Member):
    """A member that may take its time to give up partitions."""

    def __init__(self, member_id: str, group: ConsumerGroup, instance_id: str | None) -> None:
        super().__init__(member_id, group, instance_id=instance_id)
        self.has: set[tuple[bytes, int]] = set()
        """What it still consumes."""
        self.subscription: dict[str, object] = {}
        self.out_of_touch = False
        """Whether a reply was lost: a client then says all there is to say, to be told what it missed."""


class ConsumerGroupRules(RuleBasedStateMachine):
    """Consumers, an administrator of topics, and a log."""

    @initialize(assignor=st.sampled_from(["uniform", "range"]), interval_ms=st.sampled_from([0, 1000]))
    def start(self, assignor: str, interval_ms: int) -> None:
        self.topics = FakeTopics()
        self.topics.put("a", 3)
        self.limits = ConsumerLimits(assignors=[assignor], max_size=5, assignment_ms=interval_ms)
        self.group = ConsumerGroup("g", self.limits, self.topics)
        self.at = 0.0
        self.made = 0
        self.epoch = 0
        self.consumers: list[Consumer] = []
        self.stored: dict[bytes, bytes | None] = {}

    @property
    def now(self) -> Now:
        return Now(self.at, 1_000_000 + int(self.at * 1000))

    def store(self, *, fails: bool = False) -> None:
        changes = self.group.tables.take_changes()
        if fails:
            self.group.undo(changes)
            return
        for change in changes:
            key, value = CONSUMER_RECORDS.encode("g", change)
            self.stored[key] = value

    def pick(self, index: int) -> Consumer | None:
        return self.consumers[index % len(self.consumers)] if self.consumers else None

    def beat(self, consumer: Consumer, *, lost: bool = False, fails: bool = False, **told: object) -> None:
        epoch, owned = consumer.epoch, consumer.owned
        consumer.owned = _as_assignment(consumer.has)
        consumer.subscription = told or consumer.subscription
        if consumer.out_of_touch or epoch == 0:
            told = {"rebalance_timeout_ms": 60_000, **consumer.subscription}
        consumer.out_of_touch = lost or fails
        try:
            result = consumer.beat(self.now, **told)
        except BrokerError as error:
            assert error.error in REFUSALS  # noqa: PT017 - the error is one of several
            assert not self.group.tables.has_changes
            self.lose(consumer)
            return
        self.store(fails=fails)
        if lost or fails:
            consumer.epoch, consumer.owned = epoch, owned
        elif result.assigned is None:
            consumer.owned = owned
        else:
            consumer.has |= consumer.partitions

    def lose(self, consumer: Consumer) -> None:
        """A member that is refused gives up everything and starts again."""
        consumer.has.clear()
        consumer.owned, consumer.epoch = {}, 0
        if consumer.member_id not in self.group.members:
            self.consumers.remove(consumer)

    @rule(subscription=SUBSCRIPTIONS, instance_id=st.sampled_from([None, None, None, "i"]), fails=st.booleans())
    def join(self, subscription: dict[str, Any], instance_id: str | None, fails: bool) -> None:
        self.made += 1
        consumer = Consumer(f"m{self.made}", self.group, instance_id)
        self.consumers.append(consumer)
        self.beat(consumer, fails=fails, **subscription)
        if fails and consumer in self.consumers:
            self.consumers.remove(consumer)

    @rule(index=MEMBERS, lost=st.booleans(), fails=st.booleans(), gives_up=st.booleans())
    def heartbeat(self, index: int, lost: bool, fails: bool, gives_up: bool) -> None:
        consumer = self.pick(index)
        if consumer is not None:
            if gives_up:
                consumer.has &= consumer.partitions
            self.beat(consumer, lost=lost, fails=fails)

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
        consumer = self.pick(index)
        if consumer is not None:
            self.beat(consumer, **subscription)

    @rule(index=MEMBERS, will_be_back=st.booleans())
    def leave(self, index: int, will_be_back: bool) -> None:
        consumer = self.pick(index)
        if consumer is None:
            return
        self.consumers.remove(consumer)
        static = consumer.instance_id is not None and will_be_back
        try:
            consumer.leave(LEAVE_STATIC_EPOCH if static else -1)
        except BrokerError as error:
            assert error.error in REFUSALS  # noqa: PT017 - the error is one of several
        self.store()

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 5))
    def change_topic(self, name: str, partitions: int) -> None:
        known = self.topics.topics.get(name)
        if known is None or len(known.partitions) < partitions:
            self.topics.put(name, partitions)
        elif partitions == 1:
            self.topics.remove(name)

    @rule(seconds=st.sampled_from([0.5, 5, 20, 61]))
    def pass_time(self, seconds: float) -> None:
        target = self.at + seconds
        while self.group.deadline <= target:
            self.at = max(self.at, self.group.deadline)
            overdue = self.group.due(self.now)
            for member_id in overdue:
                self.consumers = [each for each in self.consumers if each.member_id != member_id]
            self.group.fence(overdue)
            self.store()
        self.at = target

    @rule()
    def everybody_comes_to_the_target(self) -> None:
        """However it stands, a few rounds of heartbeats bring everybody to the target, and leave nothing unassigned."""
        self.at += 20
        for _ in range(6):
            for consumer in list(self.consumers):
                consumer.has &= consumer.partitions
                if consumer in self.consumers:
                    self.beat(consumer)
            self.at += 2
        if any(self.group.tables.current(member_id).epoch == LEAVE_STATIC_EPOCH for member_id in self.group.members):
            return
        if {each.member_id for each in self.consumers} != set(self.group.members):
            return
        if self.group.members:
            assert self.group.state is ConsumerGroupState.STABLE
        owned = [partition for each in self.consumers for partition in each.has]
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
    def epochs_only_grow(self) -> None:
        tables = self.group.tables
        assert tables.epoch.epoch >= self.epoch
        assert tables.target_epoch.epoch <= tables.epoch.epoch
        self.epoch = tables.epoch.epoch
        for member_id in self.group.members:
            assert tables.current(member_id).epoch <= tables.target_epoch.epoch

    @invariant()
    def nothing_is_due_before_the_deadline(self) -> None:
        assert self.group.deadline <= min(
            (deadline for member_id, deadline in self.group.timers.sessions() if member_id in self.group.members),
            default=float("inf"),
        )

    @invariant()
    def the_log_has_what_memory_has(self) -> None:
        loaded = ConsumerGroup("g", self.limits, self.topics)
        for key, value in self.stored.items():
            record = CONSUMER_RECORDS.decode(key, value)
            assert record is not None
            loaded.tables.put(record.part, record.name, record.value)
        for table in ("members", "currents", "targets", "patterns", "epoch", "target_epoch"):
            assert getattr(loaded.tables, table) == getattr(self.group.tables, table), table
        for index in ("static_ids", "subscribers", "pattern_members", "assignors"):
            assert getattr(loaded.tables, index) == getattr(self.group.tables, index), index


def _as_assignment(partitions: set[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, set()).add(partition)
    return {topic: frozenset(each) for topic, each in found.items()}


ConsumerGroupRules.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
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
