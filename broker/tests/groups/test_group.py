"""The state machine of a classic group, transition by transition."""

import pytest
from support.groups import Machine

from odradek.groups.member import JoinResult, SyncResult, Ticket
from odradek.groups.states import GroupState
from odradek_protocol.errors import BrokerError, Error

RANGE = ("range", b"")
STICKY = ("sticky", b"")


def joined(ticket: Ticket[JoinResult]) -> JoinResult:
    assert ticket.result is not None
    return ticket.result


def synced(ticket: Ticket[SyncResult]) -> SyncResult:
    assert ticket.result is not None
    return ticket.result


def refusal(error: BrokerError) -> Error:
    return error.error


# -- joining --


def test_a_member_of_an_old_version_joins_at_once_and_leads() -> None:
    machine = Machine()
    result = joined(machine.join(new="a"))
    assert (result.error, result.member_id, result.generation, result.leader) == (Error.NONE, "a", 1, "a")
    assert (result.protocol_type, result.protocol_name) == ("consumer", "range")
    assert list(result.members) == [("a", None, b"topics")]
    assert machine.group.state is GroupState.COMPLETING_REBALANCE


def test_t51_a_dynamic_member_has_to_know_its_id() -> None:
    machine = Machine()
    refused = joined(machine.join(new="a", known_id=True))
    assert (refused.error, refused.member_id, refused.generation) == (Error.MEMBER_ID_REQUIRED, "a", -1)
    assert machine.group.state is GroupState.EMPTY
    assert joined(machine.join("a", known_id=True)).generation == 1


def test_t51_a_static_member_needs_no_id() -> None:
    machine = Machine()
    assert joined(machine.join(new="i-1", instance_id="i", known_id=True)).generation == 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"new": "b", "protocol_type": ""}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"new": "b", "protocols": ()}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "b"}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": "b", "instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_t52_joins_that_an_empty_group_refuses(fields: dict[str, object], error: Error) -> None:
    machine = Machine()
    assert joined(machine.join(**fields)).error is error  # type: ignore[arg-type]
    assert machine.group.state is GroupState.EMPTY


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": (STICKY,)}, {"protocols": ()}, {"protocol_type": ""}]
)
def test_t52_a_member_without_a_common_protocol_is_refused(fields: dict[str, object]) -> None:
    machine = Machine()
    machine.stable("a")
    assert joined(machine.join(new="b", **fields)).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert machine.group.state is GroupState.STABLE


def test_the_first_generation_waits_while_members_come() -> None:
    machine = Machine(delay_s=3)
    first = machine.join(new="a", rebalance_s=8)
    machine.advance(2.9)
    assert first.result is None
    second = machine.join(new="b", rebalance_s=8)
    machine.advance(2.9)
    assert first.result is None
    machine.join(new="c", rebalance_s=8)
    machine.advance(2)
    assert first.result is None, "it waits on up to the rebalance timeout"
    machine.advance(0.3)
    assert joined(first).generation == joined(second).generation == 1
    assert [member_id for member_id, *_ in joined(first).members] == ["a", "b", "c"]
    assert joined(second).members == []


def test_the_first_generation_does_not_wait_longer_than_nobody_comes() -> None:
    machine = Machine(delay_s=3)
    ticket = machine.join(new="a")
    machine.advance(3)
    assert joined(ticket).generation == 1


def test_a_rebalance_ends_when_all_have_joined() -> None:
    machine = Machine()
    machine.stable("a")
    newcomer = machine.join(new="b")
    assert newcomer.result is None
    with pytest.raises(BrokerError) as told:
        machine.heartbeat("a")
    assert refusal(told.value) is Error.REBALANCE_IN_PROGRESS
    leader = joined(machine.join("a"))
    assert (leader.generation, joined(newcomer).generation, leader.leader) == (2, 2, "a")


def test_a_rebalance_ends_in_time_without_those_who_do_not_join() -> None:
    machine = Machine()
    machine.stable("a", "b", session_s=100, rebalance_s=30)
    newcomer = machine.join(new="c", session_s=100, rebalance_s=30)
    rejoined = machine.join("b", session_s=100, rebalance_s=30)
    machine.advance(29)
    assert rejoined.result is None
    machine.advance(1)
    assert joined(rejoined).leader == joined(newcomer).leader == "b", "the leader stayed away"
    assert list(machine.group.members) == ["b", "c"]


def test_a_rebalance_waits_for_members_that_were_told_their_id() -> None:
    machine = Machine()
    machine.stable("a", session_s=100)
    machine.join(new="b", known_id=True, session_s=20)
    rejoined = machine.join("a", session_s=100)
    assert rejoined.result is None
    machine.advance(20)
    assert joined(rejoined).generation == 2, "the other did not come back"


def test_a_repeated_join_waits_for_the_same_reply() -> None:
    machine = Machine()
    machine.stable("a", "b")
    machine.join(new="c")
    first, second = machine.join("b"), machine.join("b")
    machine.join("a")
    assert joined(first) is joined(second)


def test_t55_a_join_that_says_nothing_new_starts_no_rebalance() -> None:
    machine = Machine()
    generation = machine.stable("a", "b")
    assert joined(machine.join("b")).generation == generation
    assert machine.group.state is GroupState.STABLE


def test_t54_a_join_of_the_leader_or_with_other_metadata_starts_a_rebalance() -> None:
    machine = Machine()
    machine.stable("a", "b")
    assert machine.join("a").result is None
    assert machine.group.state is GroupState.PREPARING_REBALANCE
    machine.join("b")
    machine.sync("a", {})
    machine.sync("b")
    assert machine.group.state is GroupState.STABLE
    assert machine.join("b", protocols=(("range", b"more"),)).result is None
    assert machine.group.state is GroupState.PREPARING_REBALANCE


def test_a_lost_join_reply_is_given_again_while_syncs_wait() -> None:
    machine = Machine()
    first = joined(machine.join(new="a"))
    assert joined(machine.join("a")) == first


def test_other_metadata_while_syncs_wait_ends_them_with_a_rebalance() -> None:
    machine = Machine()
    machine.stable("a")
    machine.join(new="b")
    machine.join("a")
    waiting = machine.sync("b")
    machine.join("a", protocols=(("range", b"more"),))
    assert synced(waiting).error is Error.REBALANCE_IN_PROGRESS


def test_t53_the_protocol_is_the_one_most_put_first_of_those_all_support() -> None:
    machine = Machine(delay_s=1)
    machine.join(new="a", protocols=(("only-a", b""), STICKY, RANGE))
    machine.join(new="b", protocols=(RANGE, STICKY))
    ticket = machine.join(new="c", protocols=(RANGE, STICKY, ("only-c", b"")))
    machine.advance(2)
    assert joined(ticket).protocol_name == "range"


def test_a_full_group_refuses_and_takes_again_when_one_leaves() -> None:
    machine = Machine(max_size=2)
    machine.stable("a", "b")
    refused = joined(machine.join(new="c"))
    assert (refused.error, refused.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    machine.leave("b")
    machine.join("a")
    assert machine.join(new="c").result is None


def test_places_of_a_rebalance_go_to_those_who_join_first() -> None:
    machine = Machine()
    machine.stable("a", "b", "c")
    machine.limits.group_max_size = 2
    first, second = machine.join("a"), machine.join("b")
    assert joined(machine.join("c")).error is Error.GROUP_MAX_SIZE_REACHED
    assert joined(first).generation == joined(second).generation
    assert list(machine.group.members) == ["a", "b"]


# -- static members --


def test_a_static_member_that_returns_gets_its_place_without_a_rebalance() -> None:
    machine = Machine()
    generation = machine.stable("a")
    machine.join(new="s-1", instance_id="s")
    machine.join("a")
    generation = machine.group.generation
    machine.sync("a", {"s-1": b"part", "a": b"rest"})
    machine.sync("s-1", instance_id="s")
    result = joined(machine.join(new="s-2", instance_id="s", can_skip=True))
    assert (result.error, result.member_id, result.generation) == (Error.NONE, "s-2", generation)
    assert (result.leader, result.skip_assignment, list(result.members)) == ("a", False, [])
    assert synced(machine.sync("s-2", instance_id="s")).assignment == b"part"
    assert [member.member_id for member, _, _ in machine.log[-1].members] == ["a", "s-2"]


def test_kip_814_a_static_leader_that_returns_skips_the_assignment() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    machine.sync("s-1", {"s-1": b"all"}, instance_id="s")
    result = joined(machine.join(new="s-2", instance_id="s", can_skip=True))
    assert (result.leader, result.skip_assignment) == ("s-2", True)
    assert list(result.members) == [("s-2", "s", b"topics")]


def test_an_old_static_leader_that_returns_is_not_told_that_it_leads() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    machine.sync("s-1", {"s-1": b"all"}, instance_id="s")
    result = joined(machine.join(new="s-2", instance_id="s"))
    assert (result.leader, list(result.members), machine.group.leader) == ("s-1", [], "s-2")


def test_the_former_holder_of_an_instance_id_is_fenced() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    machine.sync("s-1", {}, instance_id="s")
    machine.join(new="s-2", instance_id="s")
    with pytest.raises(BrokerError) as told:
        machine.heartbeat("s-1", instance_id="s")
    assert refusal(told.value) is Error.FENCED_INSTANCE_ID
    assert joined(machine.join("s-1", instance_id="s")).error is Error.FENCED_INSTANCE_ID
    assert synced(machine.sync("s-1", instance_id="s")).error is Error.FENCED_INSTANCE_ID
    assert machine.leave(("s-1", "s")) == [Error.FENCED_INSTANCE_ID]


def test_the_former_holder_is_fenced_even_where_it_waits() -> None:
    machine = Machine()
    machine.stable("a")
    waiting = machine.join(new="s-1", instance_id="s")
    successor = machine.join(new="s-2", instance_id="s")
    assert joined(waiting).error is Error.FENCED_INSTANCE_ID
    assert joined(waiting).member_id == "s-1"
    machine.join("a")
    assert joined(successor).generation == 2


def test_a_static_member_that_changes_the_protocol_starts_a_rebalance() -> None:
    machine = Machine(delay_s=1)
    machine.join(new="a", protocols=(RANGE, STICKY))
    machine.join(new="s-1", instance_id="s", protocols=(RANGE, STICKY))
    machine.advance(2)
    machine.sync("s-1", instance_id="s")
    machine.sync("a", {})
    assert machine.group.state is GroupState.STABLE
    ticket = machine.join(new="s-2", instance_id="s", protocols=(STICKY,))
    assert ticket.result is None
    machine.join("a", protocols=(RANGE, STICKY))
    assert joined(ticket).protocol_name == "sticky"


def test_a_replacement_that_is_not_stored_changes_nothing() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    machine.sync("s-1", {"s-1": b"all"}, instance_id="s")
    machine.stores = False
    ticket = machine.join(new="s-2", instance_id="s")
    assert ticket.result is None
    machine.stores = True
    machine.settle(Error.NOT_COORDINATOR)
    assert joined(ticket).error is Error.NOT_COORDINATOR
    machine.heartbeat("s-1", instance_id="s")
    assert list(machine.group.members) == ["s-1"]


def test_a_replacement_that_is_stored_after_a_rebalance_began_takes_part_in_it() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    machine.sync("s-1", {}, instance_id="s")
    machine.stores = False
    ticket = machine.join(new="s-2", instance_id="s")
    newcomer = machine.join(new="b")
    machine.stores = True
    machine.settle()
    assert joined(ticket).generation == joined(newcomer).generation == 2


def test_static_members_stay_when_a_rebalance_passes_without_them() -> None:
    machine = Machine()
    machine.stable("a", session_s=1000)
    machine.join(new="s-1", instance_id="s", session_s=1000)
    machine.join("a", session_s=1000)
    machine.sync("a", {})
    machine.sync("s-1", instance_id="s")
    ticket = machine.join("a", session_s=1000)
    machine.advance(60)
    assert [member_id for member_id, *_ in joined(ticket).members] == ["a", "s-1"]


def test_a_rebalance_of_static_members_only_goes_on_until_one_joins() -> None:
    machine = Machine()
    machine.stable("a", session_s=20)
    machine.join(new="s-1", instance_id="s", session_s=1000)
    machine.join("a", session_s=20)
    machine.sync("a", {})
    machine.sync("s-1", instance_id="s")
    machine.leave("a")
    machine.advance(120)
    assert machine.group.state is GroupState.PREPARING_REBALANCE
    assert joined(machine.join("s-1", instance_id="s", session_s=1000)).leader == "s-1"


# -- syncing --


def test_t53_followers_wait_until_the_assignment_of_the_leader_is_stored() -> None:
    machine = Machine(delay_s=1)
    machine.join(new="a")
    machine.join(new="b")
    machine.join(new="c")
    machine.advance(2)
    follower = machine.sync("b")
    assert follower.result is None
    machine.stores = False
    leader = machine.sync("a", {"a": b"\x00\x01", "b": b"\xff"})
    assert leader.result is follower.result is None
    assert machine.group.state is GroupState.COMPLETING_REBALANCE
    machine.stores = True
    machine.settle()
    assert synced(leader) == SyncResult(Error.NONE, b"\x00\x01", "consumer", "range")
    assert synced(follower).assignment == b"\xff"
    assert synced(machine.sync("c")).assignment == b"", "the leader gave it nothing"
    assert machine.group.state is GroupState.STABLE


@pytest.mark.parametrize(
    ("member_id", "fields", "error"),
    [
        ("x", {}, Error.UNKNOWN_MEMBER_ID),
        ("a", {"generation": 0}, Error.ILLEGAL_GENERATION),
        ("a", {"generation": 2}, Error.ILLEGAL_GENERATION),
        ("a", {"protocol_type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ("a", {"protocol_name": "sticky"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ("a", {"protocol_type": "consumer", "protocol_name": "range"}, Error.NONE),
        ("a", {"instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_syncs_that_are_refused(member_id: str, fields: dict[str, object], error: Error) -> None:
    machine = Machine()
    machine.stable("a")
    assert synced(machine.sync(member_id, **fields)).error is error  # type: ignore[arg-type]


def test_a_sync_while_members_join_again_is_told_to_join() -> None:
    machine = Machine()
    machine.stable("a")
    machine.join(new="b")
    assert synced(machine.sync("a")).error is Error.REBALANCE_IN_PROGRESS


def test_a_repeated_sync_gets_the_same_assignment() -> None:
    machine = Machine()
    machine.stable("a", "b")
    assert synced(machine.sync("a", {"a": b"other"})).assignment == b"a", "a stable group takes no assignment"


def test_an_assignment_that_is_not_stored_is_told_to_all_and_rebalanced() -> None:
    machine = Machine(delay_s=1)
    machine.join(new="a")
    machine.join(new="b")
    machine.advance(2)
    follower = machine.sync("b")
    machine.stores = False
    leader = machine.sync("a", {})
    machine.stores = True
    machine.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert synced(leader).error is synced(follower).error is Error.COORDINATOR_NOT_AVAILABLE
    assert machine.group.state is GroupState.PREPARING_REBALANCE


def test_t55_members_that_joined_and_never_sync_are_removed() -> None:
    machine = Machine(delay_s=1)
    machine.join(new="a", session_s=1000)
    machine.join(new="b", session_s=1000)
    machine.advance(1)
    machine.advance(1)
    machine.sync("a", {})
    machine.advance(60)
    assert list(machine.group.members) == ["a"]
    assert machine.group.state is GroupState.PREPARING_REBALANCE


# -- sessions, heartbeats, leaving --


@pytest.mark.parametrize(
    ("member_id", "fields", "error"),
    [
        ("x", {}, Error.UNKNOWN_MEMBER_ID),
        ("a", {"generation": 9}, Error.ILLEGAL_GENERATION),
        ("a", {"instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_t52_heartbeats_that_are_refused(member_id: str, fields: dict[str, object], error: Error) -> None:
    machine = Machine()
    machine.stable("a")
    with pytest.raises(BrokerError) as told:
        machine.heartbeat(member_id, **fields)  # type: ignore[arg-type]
    assert refusal(told.value) is error


def test_heartbeats_keep_a_session_and_silence_ends_it() -> None:
    machine = Machine()
    machine.stable("a", session_s=10)
    for _ in range(5):
        machine.advance(9)
        machine.heartbeat("a")
    machine.advance(9.9)
    assert machine.group.state is GroupState.STABLE
    machine.advance(0.2)
    assert machine.group.state is GroupState.EMPTY
    assert machine.log[-1].members == [], "that nobody is left is stored"
    assert machine.group.generation == 2


def test_a_heartbeat_costs_no_look_at_the_other_members() -> None:
    machine = Machine()
    machine.stable("a", "b", session_s=10)
    machine.advance(1)
    assert machine.group.deadline == 110
    machine.advance(5)
    machine.heartbeat("a")
    machine.heartbeat("b")
    assert machine.group.deadline == 110, "members are looked at when the old deadline comes"
    machine.advance(6)
    assert machine.group.deadline == 116


def test_a_session_does_not_end_while_a_reply_is_owed() -> None:
    machine = Machine()
    machine.stable("a", "b", session_s=10, rebalance_s=60)
    waiting = machine.join("a", session_s=10)
    for _ in range(5):
        machine.advance(9)
        with pytest.raises(BrokerError):
            machine.heartbeat("b")
    assert waiting.result is None
    machine.join("b", session_s=10)
    assert joined(waiting).generation == 3


def test_a_new_member_does_not_wait_for_ever() -> None:
    machine = Machine()
    machine.stable("a", session_s=1000, rebalance_s=1000)
    waiting = machine.join(new="b", session_s=1000, rebalance_s=1000)
    machine.advance(299)
    assert waiting.result is None
    machine.advance(1)
    assert joined(waiting).error is Error.UNKNOWN_MEMBER_ID
    assert list(machine.group.members) == ["a"]


def test_t59_each_leaving_member_has_its_own_error() -> None:
    machine = Machine()
    machine.stable("a", "b")
    machine.join(new="p", known_id=True)
    assert machine.leave("a", "x", "p", ("", "no such instance")) == [
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
    ]
    assert machine.group.state is GroupState.PREPARING_REBALANCE
    assert machine.group.leader == "b"


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    assert machine.leave(("", "s")) == [Error.NONE]
    assert machine.group.state is GroupState.EMPTY


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    machine = Machine(delay_s=1)
    machine.join(new="a")
    machine.join(new="b")
    machine.advance(2)
    sync = machine.sync("b")
    machine.leave("b")
    assert synced(sync).error is Error.UNKNOWN_MEMBER_ID
    machine.join("a")
    join = machine.join(new="c")
    machine.leave("c")
    assert joined(join).error is Error.UNKNOWN_MEMBER_ID


def test_a_pending_member_that_leaves_starts_no_rebalance() -> None:
    machine = Machine()
    machine.stable("a")
    machine.join(new="p", known_id=True)
    assert machine.leave("p") == [Error.NONE]
    assert machine.group.state is GroupState.STABLE


def test_the_last_member_that_leaves_empties_the_group() -> None:
    machine = Machine()
    machine.stable("a")
    machine.leave("a")
    assert machine.group.state is GroupState.EMPTY
    assert machine.group.is_idle
    assert machine.group.leader is None


# -- commits --


@pytest.mark.parametrize(
    ("member_id", "instance_id", "generation", "error"),
    [
        ("a", None, 1, None),
        ("", None, -1, Error.UNKNOWN_MEMBER_ID),
        ("a", None, -1, Error.ILLEGAL_GENERATION),
        ("a", None, 7, Error.ILLEGAL_GENERATION),
        ("x", None, 1, Error.UNKNOWN_MEMBER_ID),
        ("a", "i", 1, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_t52_who_may_commit_to_a_stable_group(
    member_id: str, instance_id: str | None, generation: int, error: Error | None
) -> None:
    machine = Machine()
    machine.stable("a")
    if error is None:
        machine.group.check_commit(member_id, instance_id, generation)
        return
    with pytest.raises(BrokerError) as told:
        machine.group.check_commit(member_id, instance_id, generation)
    assert refusal(told.value) is error


def test_an_empty_group_takes_commits_without_a_generation_from_anybody() -> None:
    machine = Machine()
    machine.group.check_commit("", None, -1)
    machine.group.check_commit("somebody", None, -1)
    with pytest.raises(BrokerError) as told:
        machine.group.check_commit("somebody", None, 1)
    assert refusal(told.value) is Error.UNKNOWN_MEMBER_ID


def test_t52_commits_are_taken_while_members_join_again_and_refused_while_they_wait_for_the_assignment() -> None:
    machine = Machine()
    generation = machine.stable("a")
    machine.join(new="b")
    machine.group.check_commit("a", None, generation)
    machine.join("a")
    with pytest.raises(BrokerError) as told:
        machine.group.check_commit("a", None, generation + 1)
    assert refusal(told.value) is Error.REBALANCE_IN_PROGRESS


# -- the end --


def test_everyone_who_waits_learns_that_the_group_is_gone() -> None:
    machine = Machine()
    machine.stable("a")
    machine.join(new="s-1", instance_id="s")
    machine.join("a")
    machine.stores = False
    syncs = [machine.sync("a", {}), machine.sync("s-1", instance_id="s")]
    machine.group.kill(Error.NOT_COORDINATOR)
    assert [synced(ticket).error for ticket in syncs] == [Error.NOT_COORDINATOR] * 2
    assert joined(machine.join(new="b")).error is Error.COORDINATOR_NOT_AVAILABLE
    assert synced(machine.sync("a")).error is Error.COORDINATOR_NOT_AVAILABLE
    for call in (lambda: machine.heartbeat("a"), lambda: machine.leave("a")):
        with pytest.raises(BrokerError) as told:
            call()
        assert refusal(told.value) is Error.COORDINATOR_NOT_AVAILABLE


def test_a_replacement_that_waits_for_the_log_learns_that_the_group_is_gone() -> None:
    machine = Machine()
    machine.join(new="s-1", instance_id="s")
    machine.sync("s-1", {}, instance_id="s")
    machine.stores = False
    ticket = machine.join(new="s-2", instance_id="s")
    machine.group.kill(Error.NOT_COORDINATOR)
    assert joined(ticket).error is Error.NOT_COORDINATOR
