"""Any order of heartbeats, time, topics, settings and log failures: what always holds of a streams group.

Members are as the protocol asks: they have the tasks that they were told, and give up what they are not told any more,
at once or some heartbeats later. A reply may be lost, and a change may fail to be stored.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.consumer_groups import FakeTopics
from support.streams_groups import Member, StreamsLimits, topology

from odradek.groups.streams_group import StreamsGroup, StreamsGroupState
from odradek.groups.streams_records import STREAMS_RECORDS
from odradek.groups.streams_tasks import Held, Role, Task
from odradek.groups.streams_topology import InternalTopic, Subtopology
from odradek.groups.timers import Now
from odradek_protocol.errors import BrokerError, Error

MEMBERS = st.integers(0, 5)
TOPOLOGY = topology(
    Subtopology("0", ("t",), repartition_sink_topics=("repartition",)),
    Subtopology(
        "1",
        repartition_source_topics=(InternalTopic("repartition"),),
        state_changelog_topics=(InternalTopic("changelog", configs=(("cleanup.policy", "compact"),)),),
    ),
)
REFUSALS = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.GROUP_MAX_SIZE_REACHED, Error.INVALID_REQUEST)


class Thread(Member):
    """A member that may take its time to give up tasks."""

    def __init__(self, member_id: str, group: StreamsGroup, process_id: str) -> None:
        super().__init__(member_id, group, process_id=process_id, told=TOPOLOGY)
        self.has: set[Task] = set()
        """What it still works on."""
        self.out_of_touch = False
        """Whether a reply was lost: a client then says all there is to say, to be told what it missed."""


class StreamsGroupRules(RuleBasedStateMachine):
    """Threads of processes, an administrator of topics and settings, and a log."""

    @initialize(interval_ms=st.sampled_from([0, 1000]), delay_ms=st.sampled_from([0, 3000]), standby=st.integers(0, 2))
    def start(self, interval_ms: int, delay_ms: int, standby: int) -> None:
        self.topics = FakeTopics()
        self.topics.put("t", 3)
        self.limits = StreamsLimits(streams_max_size=5, assignment_ms=interval_ms, delay_ms=delay_ms, standby=standby)
        self.group = StreamsGroup("g", self.limits, self.topics)
        self.at = 0.0
        self.made = 0
        self.epoch = 0
        self.threads: list[Thread] = []
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
            key, value = STREAMS_RECORDS.encode("g", change)
            self.stored[key] = value

    def beat(self, thread: Thread, *, lost: bool = False, fails: bool = False) -> None:
        epoch = thread.epoch
        thread.owned = frozenset(thread.has)
        told = {"rebalance_timeout_ms": 60_000} if thread.out_of_touch else {}
        thread.out_of_touch = lost or fails
        try:
            result = thread.beat(self.now, **told)
        except BrokerError as error:
            assert error.error in REFUSALS  # noqa: PT017 - the error is one of several
            assert not self.group.tables.has_changes
            self.lose(thread)
            return
        self.store(fails=fails)
        if lost or fails:
            thread.epoch = epoch
        elif result.assigned is not None:
            thread.has |= set(result.assigned)
            thread.owned = frozenset(result.assigned)
        for topic in result.missing_topics:
            self.topics.put(topic.name, topic.partitions)

    def lose(self, thread: Thread) -> None:
        """A member that is refused gives up everything and starts again."""
        thread.has.clear()
        thread.epoch = 0
        if thread.member_id not in self.group.members:
            self.threads.remove(thread)

    def told(self, thread: Thread) -> Held:
        return self.group.tables.current(thread.member_id).assigned

    @rule(process=st.sampled_from(["p", "q", "r"]), fails=st.booleans())
    def join(self, process: str, fails: bool) -> None:
        self.made += 1
        thread = Thread(f"m{self.made}", self.group, process)
        self.threads.append(thread)
        self.beat(thread, fails=fails)
        if fails and thread in self.threads:
            self.threads.remove(thread)

    @rule(index=MEMBERS, lost=st.booleans(), fails=st.booleans(), gives_up=st.booleans())
    def heartbeat(self, index: int, lost: bool, fails: bool, gives_up: bool) -> None:
        if self.threads:
            thread = self.threads[index % len(self.threads)]
            if gives_up:
                thread.has &= set(self.told(thread))
            self.beat(thread, lost=lost, fails=fails)

    @rule(index=MEMBERS)
    def leave(self, index: int) -> None:
        if self.threads:
            thread = self.threads.pop(index % len(self.threads))
            if thread.member_id in self.group.members:
                self.group.leave(thread.member_id)
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

    @rule(seconds=st.sampled_from([0.5, 5, 20, 61]))
    def pass_time(self, seconds: float) -> None:
        target = self.at + seconds
        while self.group.deadline <= target:
            self.at = max(self.at, self.group.deadline)
            self.group.maybe_assign_delayed(self.now)
            overdue = self.group.due(self.now)
            self.threads = [each for each in self.threads if each.member_id not in overdue]
            self.group.fence(overdue)
            self.store()
        self.at = target

    @rule()
    def everybody_comes_to_the_target(self) -> None:
        """However it stands, a few rounds of heartbeats bring everybody to the target, and leave nothing undone."""
        self.at += 20
        for _ in range(10):
            for thread in list(self.threads):
                thread.has &= set(self.told(thread))
                if thread in self.threads:
                    self.beat(thread)
            self.at += 2
        if not self.threads or {each.member_id for each in self.threads} != set(self.group.members):
            return
        if "t" not in self.topics.topics:
            assert self.group.state is StreamsGroupState.NOT_READY
            return
        if any(len(each.partitions) != len(self.topics.topics["t"].partitions) for each in self.topics.topics.values()):
            return
        assert self.group.state is StreamsGroupState.STABLE
        count = len(self.topics.topics["t"].partitions)
        work = sorted(task for each in self.threads for task in each.has)
        active = [task for task in work if task.role is Role.ACTIVE]
        assert active == [Task(Role.ACTIVE, name, index) for name in ("0", "1") for index in range(count)]
        processes = {each.process_id for each in self.threads}
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
    def epochs_only_grow(self) -> None:
        tables = self.group.tables
        assert tables.epoch.epoch >= self.epoch
        assert tables.target_epoch.epoch <= max(tables.epoch.epoch, 1)
        self.epoch = tables.epoch.epoch
        for member_id in self.group.members:
            assert tables.current(member_id).epoch <= tables.target_epoch.epoch

    @invariant()
    def the_log_has_what_memory_has(self) -> None:
        loaded = StreamsGroup("g", self.limits, self.topics)
        for key, value in self.stored.items():
            record = STREAMS_RECORDS.decode(key, value)
            assert record is not None
            loaded.tables.put(record.part, record.name, record.value)
        for table in ("members", "targets", "epoch", "target_epoch", "topology"):
            assert getattr(loaded.tables, table) == getattr(self.group.tables, table), table
        assert _by_role(loaded) == _by_role(self.group)


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


StreamsGroupRules.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestStreamsGroupRules = StreamsGroupRules.TestCase
