"""Any order of heartbeats, time, topics, settings and log failures: what always holds of a streams group."""

from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from support.assigned_groups import MEMBERS, AssignedGroupRules
from support.consumer_groups import FakeTopics
from support.streams_groups import Member, StreamsLimits, topology

from odradek.groups.streams_group import StreamsGroup, StreamsGroupState, StreamsHeartbeatResult
from odradek.groups.streams_records import STREAMS_RECORDS
from odradek.groups.streams_tasks import Role, Task
from odradek.groups.streams_topology import InternalTopic, Subtopology
from odradek.groups.timers import Now
from odradek_protocol.errors import BrokerError, Error

TOPOLOGY = topology(
    Subtopology("0", ("t",), repartition_sink_topics=("repartition",)),
    Subtopology(
        "1",
        repartition_source_topics=(InternalTopic("repartition"),),
        state_changelog_topics=(InternalTopic("changelog", configs=(("cleanup.policy", "compact"),)),),
    ),
)


class Thread(Member):
    """A member that may take its time to give up tasks."""

    def __init__(self, member_id: str, group: StreamsGroup, process_id: str) -> None:
        super().__init__(member_id, group, process_id=process_id, told=TOPOLOGY)
        self.has: set[Task] = set()
        self.told: set[Task] = set()
        self.out_of_touch = False

    def everything(self) -> dict[str, object]:
        return {"rebalance_timeout_ms": 60_000}

    def send(self, now: Now, said: dict[str, object]) -> StreamsHeartbeatResult:
        self.owned = frozenset(self.has)
        return self.beat(now, **said)

    def assigned(self, result: StreamsHeartbeatResult) -> set[Task] | None:
        return None if result.assigned is None else set(result.assigned)


class StreamsGroupRules(AssignedGroupRules[StreamsGroup, Thread]):
    """Threads of processes, an administrator of topics and settings, and a log."""

    RECORDS = STREAMS_RECORDS
    TABLES = ("members", "targets", "epoch", "target_epoch", "topology")
    REFUSALS: ClassVar[tuple[Error, ...]] = (
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.INVALID_REQUEST,
    )

    @initialize(interval_ms=st.sampled_from([0, 1000]), delay_ms=st.sampled_from([0, 3000]), standby=st.integers(0, 2))
    def start(self, interval_ms: int, delay_ms: int, standby: int) -> None:
        self.topics = FakeTopics()
        self.topics.put("t", 3)
        self.limits = StreamsLimits(streams_max_size=5, assignment_ms=interval_ms, delay_ms=delay_ms, standby=standby)
        self.begin()

    def new_group(self) -> StreamsGroup:
        return StreamsGroup("g", self.limits, self.topics)

    def beat(
        self, member: Thread, *, lost: bool = False, fails: bool = False, **said: object
    ) -> StreamsHeartbeatResult | None:
        result = super().beat(member, lost=lost, fails=fails, **said)
        for topic in result.missing_topics if result else ():
            self.topics.put(topic.name, topic.partitions)
        return result

    def time_comes(self) -> None:
        self.group.maybe_assign_delayed(self.now)
        super().time_comes()

    def remembered(self, group: StreamsGroup) -> dict[str, object]:
        return {**super().remembered(group), "currents": _by_role(group)}

    @rule(process=st.sampled_from(["p", "q", "r"]), fails=st.booleans())
    def join(self, process: str, fails: bool) -> None:
        self.add(Thread(self.new_id(), self.group, process), fails=fails)

    @rule(index=MEMBERS)
    def leave(self, index: int) -> None:
        member = self.pick(index)
        if member is not None:
            self.members.remove(member)
            if member.member_id in self.group.members:
                self.group.leave(member.member_id)
                self.store()

    @rule(partitions=st.integers(1, 5))
    def change_topics(self, partitions: int) -> None:
        known = self.topics.topics.get("t")
        if known is None or len(known.partitions) < partitions:
            self.topics.put("t", partitions)
            for name in ("repartition", "changelog"):
                if name in self.topics.topics:
                    self.topics.put(name, partitions)
        elif partitions == 1:
            self.topics.remove("t")

    @rule(standby=st.integers(0, 2))
    def change_settings(self, standby: int) -> None:
        self.limits.standby = standby

    def check_target(self) -> None:
        if not self.members:
            return
        if "t" not in self.topics.topics:
            assert self.group.state is StreamsGroupState.NOT_READY
            return
        if any(len(each.partitions) != len(self.topics.topics["t"].partitions) for each in self.topics.topics.values()):
            return
        assert self.group.state is StreamsGroupState.STABLE
        count = len(self.topics.topics["t"].partitions)
        work = sorted(task for each in self.members for task in each.has)
        active = [task for task in work if task.role is Role.ACTIVE]
        assert active == [Task(Role.ACTIVE, name, index) for name in ("0", "1") for index in range(count)]
        processes = {each.process_id for each in self.members}
        copies = min(self.limits.standby, len(processes) - 1)
        standby = [task for task in work if task.role is Role.STANDBY]
        assert standby == sorted(Task(Role.STANDBY, "1", index) for index in range(count) for _ in range(copies))

    @invariant()
    def no_task_is_active_twice_and_none_twice_in_a_process(self) -> None:
        active: set[Task] = set()
        in_process: set[tuple[str, str, int]] = set()
        for member_id, member in self.group.members.items():
            current = self.group.tables.current(member_id)
            for task in (*current.assigned, *current.revoking):
                assert task.role is not Role.ACTIVE or task not in active
                active.add(task)
                mine = (member.process_id, task.subtopology, task.partition)
                assert mine not in in_process
                in_process.add(mine)
                assert member.process_id in self.group.tables.processes(task)

    @invariant()
    def the_target_is_no_newer_than_the_group(self) -> None:
        assert self.group.tables.target_epoch.epoch <= max(self.group.tables.epoch.epoch, 1)


def _by_role(group: StreamsGroup) -> dict[str, object]:
    """What members have; only the epochs of active tasks are kept."""
    return {
        member_id: (
            current.epoch,
            current.previous_epoch,
            current.state,
            *(
                {task: epoch if task.role is Role.ACTIVE else 0 for task, epoch in held.items()}
                for held in (current.assigned, current.revoking)
            ),
        )
        for member_id, current in group.tables.currents.items()
    }


def test_a_full_group_takes_a_member_of_its_own_again() -> None:
    group = StreamsGroup("g", StreamsLimits(streams_max_size=1), FakeTopics())
    now = Now(0, 0)
    member = Member("m1", group)
    member.beat(now)
    member.epoch = 0
    assert member.beat(now).member_epoch > 0
    with pytest.raises(BrokerError) as refused:
        Member("m2", group).beat(now)
    assert refused.value.error is Error.GROUP_MAX_SIZE_REACHED


StreamsGroupRules.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestStreamsGroupRules = StreamsGroupRules.TestCase
