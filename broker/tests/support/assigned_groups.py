"""The rules of groups to whose members the broker assigns: heartbeats, time, and a log that may fail, in any order.

A machine says what a member is, who joins and leaves, and what must come out. Members are as the protocol asks: they
have what they were told, and give up what they are not told any more, at once or some heartbeats later. A reply may be
lost, and a change may fail to be stored.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from odradek.groups.part_records import PartRecords
from odradek.groups.timers import Now
from odradek_protocol.errors import BrokerError, Error

__all__ = ["MEMBERS", "AssignedGroupRules", "SlowMember"]

MEMBERS = st.integers(0, 5)

_ROUNDS = 10
"""How often everybody sends a heartbeat until all have their target."""


class SlowMember(Protocol):
    """A member that may take its time to give up what it has."""

    member_id: str
    epoch: int
    has: set[Any]
    """What it still works on."""
    told: set[Any]
    """What it was told to have."""
    out_of_touch: bool
    """Whether a reply was lost: a client then says all there is to say, to be told what it missed."""

    def everything(self) -> dict[str, object]:
        """All there is to say."""
        ...

    def send(self, now: Now, said: dict[str, object]) -> Any:
        """Send a heartbeat that says what the member has, and what is `said`; return the result."""
        ...

    def assigned(self, result: Any) -> set[Any] | None:
        """What a result tells the member to have; None where that has not changed."""
        ...


M = TypeVar("M", bound=SlowMember)
G = TypeVar("G")


class AssignedGroupRules(RuleBasedStateMachine, Generic[G, M]):
    """A group, its members, time and a log."""

    RECORDS: ClassVar[PartRecords]
    TABLES: ClassVar[tuple[str, ...]]
    """What the log must bring back."""
    REFUSALS: ClassVar[tuple[Error, ...]]

    def begin(self) -> None:
        """Make the group; called when the machine's settings are known."""
        self.group = self.new_group()
        self.at = 0.0
        self.made = 0
        self.epoch = 0
        self.members: list[M] = []
        self.stored: dict[bytes, bytes | None] = {}

    @abstractmethod
    def new_group(self) -> G:
        """An empty group."""

    @abstractmethod
    def check_target(self) -> None:
        """All members have been told everything, and the group has no others: check what they have."""

    @property
    def now(self) -> Now:
        return Now(self.at, 1_000_000 + int(self.at * 1000))

    def store(self, *, fails: bool = False) -> None:
        changes = self.group.tables.take_changes()
        if fails:
            self.group.undo(changes)
            return
        for change in changes:
            key, value = self.RECORDS.encode("g", change)
            self.stored[key] = value

    def new_id(self) -> str:
        self.made += 1
        return f"m{self.made}"

    def pick(self, index: int) -> M | None:
        return self.members[index % len(self.members)] if self.members else None

    def add(self, member: M, *, fails: bool, **said: object) -> None:
        """A member joins; it is gone when that could not be stored."""
        self.members.append(member)
        self.beat(member, fails=fails, **said)
        if fails and member in self.members:
            self.members.remove(member)

    def beat(self, member: M, *, lost: bool = False, fails: bool = False, **said: object) -> Any:
        """A heartbeat and its result; None when it was refused."""
        epoch = member.epoch
        if member.out_of_touch or epoch == 0:
            said = {**member.everything(), **said}
        member.out_of_touch = lost or fails
        try:
            result = member.send(self.now, said)
        except BrokerError as error:
            assert error.error in self.REFUSALS  # noqa: PT017 - the error is one of several
            assert not self.group.tables.has_changes
            self.lose(member)
            return None
        self.store(fails=fails)
        if lost or fails:
            member.epoch = epoch
        elif (told := member.assigned(result)) is not None:
            member.told = told
            member.has |= told
        return result

    def lose(self, member: M) -> None:
        """A member that is refused gives up everything and starts again."""
        member.has, member.told, member.epoch = set(), set(), 0
        if member.member_id not in self.group.members:
            self.members.remove(member)

    def time_comes(self) -> None:
        """The group's deadline is over."""
        overdue = self.group.due(self.now)
        self.members = [each for each in self.members if each.member_id not in overdue]
        self.group.fence(overdue)
        self.store()

    def remembered(self, group: G) -> dict[str, object]:
        """What the log must bring back."""
        return {table: getattr(group.tables, table) for table in self.TABLES}

    @rule(index=MEMBERS, lost=st.booleans(), fails=st.booleans(), gives_up=st.booleans())
    def heartbeat(self, index: int, lost: bool, fails: bool, gives_up: bool) -> None:
        member = self.pick(index)
        if member is not None:
            if gives_up:
                member.has &= member.told
            self.beat(member, lost=lost, fails=fails)

    @rule(seconds=st.sampled_from([0.5, 5, 20, 61]))
    def pass_time(self, seconds: float) -> None:
        target = self.at + seconds
        while self.group.deadline <= target:
            self.at = max(self.at, self.group.deadline)
            self.time_comes()
        self.at = target

    @rule()
    def everybody_comes_to_the_target(self) -> None:
        """However it stands, a few rounds of heartbeats bring everybody to the target, and leave nothing undone."""
        self.at += 20
        for _ in range(_ROUNDS):
            for member in list(self.members):
                member.has &= member.told
                if member in self.members:
                    self.beat(member)
            self.at += 2
        if {each.member_id for each in self.members} == set(self.group.members):
            self.check_target()

    @invariant()
    def epochs_only_grow(self) -> None:
        tables = self.group.tables
        assert tables.epoch.epoch >= self.epoch
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
        loaded = self.new_group()
        for key, value in self.stored.items():
            record = self.RECORDS.decode(key, value)
            assert record is not None
            loaded.tables.put(record.part, record.name, record.value)
        assert self.remembered(loaded) == self.remembered(self.group)
