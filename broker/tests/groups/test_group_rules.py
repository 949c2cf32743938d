"""Any order of requests, time and log failures: what always holds of a group, whatever happens to it."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.groups import Limits, request

from odradek.groups.group import Group
from odradek.groups.member import JoinResult, SyncResult, Ticket
from odradek.groups.states import GroupState
from odradek_protocol.errors import BrokerError, Error

PROTOCOLS = st.lists(st.sampled_from(["range", "sticky", "round"]), min_size=1, max_size=3, unique=True).map(
    lambda names: tuple((name, b"") for name in names)
)
INSTANCES = st.sampled_from([None, None, "i", "j"])
MEMBERS = st.integers(0, 5)
LAST_STATES = (GroupState.EMPTY, GroupState.DEAD)


class GroupRules(RuleBasedStateMachine):
    """Clients that do anything at any time, and a log that stores late, in order, or fails."""

    @initialize(delay_s=st.sampled_from([0, 3]), max_size=st.sampled_from([2, 100]))
    def start(self, delay_s: int, max_size: int) -> None:
        self.group = Group("g", Limits(delay_s * 1000, max_size))
        self.now = 0.0
        self.generation = 0
        self.made = 0
        self.ids: list[tuple[str, str | None]] = []
        self.joins: list[Ticket[JoinResult]] = []
        self.syncs: list[tuple[int, Ticket[SyncResult]]] = []
        """The answers to syncs, each with its generation."""
        self.told: dict[int, tuple[str | None, str]] = {}

    def member(self, index: int) -> tuple[str, str | None]:
        """One who is in the group, or who was told an id lately, or nobody that it knows."""
        known = [(member.member_id, member.instance_id) for member in self.group.members.values()]
        choices = [*known, *self.ids[-2:], ("nobody", None)]
        return choices[index % len(choices)]

    @rule(protocols=PROTOCOLS, instance_id=INSTANCES, known_id=st.booleans(), can_skip=st.booleans())
    def join_new(
        self, protocols: tuple[tuple[str, bytes], ...], instance_id: str | None, known_id: bool, can_skip: bool
    ) -> None:
        self.made += 1
        member_id = f"m{self.made}"
        self.ids.append((member_id, instance_id))
        asked = request(
            new=member_id, instance_id=instance_id, protocols=protocols, known_id=known_id, can_skip=can_skip
        )
        self.joins.append(self.group.join(asked, self.now))

    @rule(index=MEMBERS, protocols=PROTOCOLS)
    def join_again(self, index: int, protocols: tuple[tuple[str, bytes], ...]) -> None:
        member_id, instance_id = self.member(index)
        asked = request(member_id, instance_id=instance_id, protocols=protocols)
        self.joins.append(self.group.join(asked, self.now))

    @rule()
    def everybody_joins_again(self) -> None:
        for member in list(self.group.members.values()):
            asked = request(member.member_id, instance_id=member.instance_id, protocols=member.protocols)
            self.joins.append(self.group.join(asked, self.now))

    @rule(index=MEMBERS)
    def sync(self, index: int) -> None:
        member_id, instance_id = self.member(index)
        self.ask_sync(member_id, instance_id)

    @rule()
    def leader_syncs(self) -> None:
        member = self.group.members.get(self.group.leader or "")
        if member is not None:
            self.ask_sync(member.member_id, member.instance_id)

    @rule(wait_s=st.sampled_from([0, 3]))
    def everybody_does_what_it_should(self, wait_s: float) -> None:
        self.everybody_joins_again()
        self.pass_time(wait_s)
        for member in list(self.group.members.values()):
            self.ask_sync(member.member_id, member.instance_id)
        while self.group.unstored:
            self.store(Error.NONE)

    def ask_sync(self, member_id: str, instance_id: str | None) -> None:
        """Ask for the assignment, and hand in one that is told apart from all others."""
        handed_in = dict.fromkeys(self.group.members, b"%d" % len(self.syncs))
        ticket = self.group.sync(
            member_id, instance_id, self.group.generation, protocol_type=None, protocol_name=None, assignments=handed_in
        )
        self.syncs.append((self.group.generation, ticket))

    @rule(index=MEMBERS)
    def heartbeat(self, index: int) -> None:
        member_id, instance_id = self.member(index)
        try:
            self.group.heartbeat(member_id, instance_id, self.group.generation, self.now)
        except BrokerError as error:
            assert error.error in (  # noqa: PT017 - the error is one of several
                Error.UNKNOWN_MEMBER_ID,
                Error.FENCED_INSTANCE_ID,
                Error.REBALANCE_IN_PROGRESS,
                Error.COORDINATOR_NOT_AVAILABLE,
            )

    @rule(index=MEMBERS, behind=st.sampled_from([1, 1, 2, -1]))
    def act_in_another_generation(self, index: int, behind: int) -> None:
        """Whoever is in the group is in its generation, and in no other one."""
        member_id, instance_id = self.member(index)
        generation = max(self.group.generation - behind, 0)
        if generation == self.group.generation:
            return
        refusals = (
            Error.ILLEGAL_GENERATION,
            Error.UNKNOWN_MEMBER_ID,
            Error.FENCED_INSTANCE_ID,
            Error.COORDINATOR_NOT_AVAILABLE,
        )
        with pytest.raises(BrokerError) as told:
            self.group.heartbeat(member_id, instance_id, generation, self.now)
        assert told.value.error in refusals
        with pytest.raises(BrokerError) as told:
            self.group.check_commit(member_id, instance_id, generation)
        assert told.value.error in refusals
        ticket = self.group.sync(
            member_id, instance_id, generation, protocol_type=None, protocol_name=None, assignments={}
        )
        assert ticket.result is not None
        assert ticket.result.error in refusals

    @rule(index=MEMBERS)
    def leave(self, index: int) -> None:
        if self.group.state is not GroupState.DEAD:
            self.group.leave([self.member(index)], self.now)

    @rule(error=st.sampled_from([Error.NONE, Error.NONE, Error.NONE, Error.COORDINATOR_NOT_AVAILABLE]))
    def store(self, error: Error) -> None:
        if self.group.unstored:
            self.group.stored(self.group.unstored.pop(0), error, self.now)

    @rule(seconds=st.sampled_from([0.5, 3, 9, 60, 301]))
    def pass_time(self, seconds: float) -> None:
        target = self.now + seconds
        while self.group.deadline <= target:
            self.now = max(self.now, self.group.deadline)
            self.group.expire(self.now)
        self.now = target

    @rule()
    def kill(self) -> None:
        if self.made > 8:
            self.group.kill(Error.NOT_COORDINATOR)

    @invariant()
    def generations_only_grow(self) -> None:
        assert self.group.generation >= self.generation
        self.generation = self.group.generation

    @invariant()
    def a_generation_has_one_leader_and_one_protocol(self) -> None:
        for ticket in self.joins:
            result = ticket.result
            if result is None or result.error is not Error.NONE or result.skip_assignment:
                continue
            if any(member_id == result.leader for member_id, *_ in result.members):
                assert result.leader == result.member_id
                assert self.told.setdefault(result.generation, (result.protocol_name, result.leader)) == (
                    result.protocol_name,
                    result.leader,
                )

    @invariant()
    def a_generation_has_one_assignment(self) -> None:
        """What its members are told comes from one list, so that no partition of it has two owners."""
        lists: dict[int, bytes] = {}
        for generation, ticket in self.syncs:
            if ticket.result is not None and ticket.result.assignment:
                assert lists.setdefault(generation, ticket.result.assignment) == ticket.result.assignment

    @invariant()
    def the_leader_is_a_member(self) -> None:
        members = self.group.members
        assert (self.group.leader in members) if members else (self.group.leader is None)
        if self.group.state in LAST_STATES:
            assert not members

    @invariant()
    def an_instance_id_has_one_member(self) -> None:
        instances = [member.instance_id for member in self.group.members.values() if member.instance_id is not None]
        assert len(instances) == len(set(instances))

    @invariant()
    def nothing_is_due_before_the_deadline(self) -> None:
        assert all(self.group.deadline <= member.deadline for member in self.group.members.values())

    @invariant()
    def members_wait_only_where_a_reply_can_come(self) -> None:
        for member in self.group.members.values():
            assert member.join_ticket is None or self.group.state is GroupState.PREPARING_REBALANCE
            assert member.sync_ticket is None or self.group.state is GroupState.COMPLETING_REBALANCE

    def teardown(self) -> None:
        """However it stands, time alone answers everybody and ends every session."""
        group: Any = getattr(self, "group", None)
        if group is None:
            return
        for _ in range(100):
            while group.unstored:
                group.stored(group.unstored.pop(0), Error.NONE, self.now)
            if group.deadline == float("inf"):
                break
            self.now = max(self.now, group.deadline)
            group.expire(self.now)
        assert all(ticket.result is not None for ticket in [*self.joins, *(each for _, each in self.syncs)])
        assert group.state in LAST_STATES
        assert not group.members


GroupRules.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestGroupRules = GroupRules.TestCase
