"""The sticky assignor of streams groups."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from odradek.groups.streams_assignor import Work, assign
from odradek.groups.streams_tasks import Role, Task, Tasks

WORK = st.dictionaries(
    st.sampled_from(["0", "1", "2"]), st.builds(Work, st.integers(1, 6), st.booleans()), min_size=1, max_size=3
)
PROCESSES = st.lists(st.sampled_from(["p", "q", "r", "s"]), min_size=1, max_size=8).map(
    lambda found: {f"m{number}": process for number, process in enumerate(found)}
)


def active(name: str, *partitions: int) -> Tasks:
    return frozenset(Task(Role.ACTIVE, name, partition) for partition in partitions)


def standby(name: str, *partitions: int) -> Tasks:
    return frozenset(Task(Role.STANDBY, name, partition) for partition in partitions)


def of_role(tasks: Tasks, role: Role) -> set[tuple[str, int]]:
    return {(task.subtopology, task.partition) for task in tasks if task.role is role}


@given(PROCESSES, WORK, st.integers(0, 2))
def test_every_task_is_done_once_and_copied_as_often_as_there_are_processes(
    processes: dict[str, str], work: dict[str, Work], replicas: int
) -> None:
    given_out = assign(processes, {}, work, replicas)
    assert given_out.keys() == processes.keys()
    done = [task for tasks in given_out.values() for task in of_role(tasks, Role.ACTIVE)]
    everything = [(name, index) for name, each in work.items() for index in range(each.tasks)]
    assert sorted(done) == sorted(everything)
    copies = [task for tasks in given_out.values() for task in of_role(tasks, Role.STANDBY)]
    times = min(replicas, len(set(processes.values())) - 1)
    stateful = [task for task in everything if work[task[0]].is_stateful]
    assert sorted(copies) == sorted(stateful * times)
    for process in set(processes.values()):
        tasks = [
            (task.subtopology, task.partition)
            for member_id, found in given_out.items()
            if processes[member_id] == process
            for task in found
        ]
        assert len(tasks) == len(set(tasks))


@given(PROCESSES, WORK, st.integers(0, 2))
def test_nothing_moves_without_a_reason(processes: dict[str, str], work: dict[str, Work], replicas: int) -> None:
    before = {member_id: of_role(each, Role.ACTIVE) for member_id, each in assign(processes, {}, work, 0).items()}
    given_out = assign(processes, assign(processes, {}, work, 0), work, replicas)
    assert {member_id: of_role(each, Role.ACTIVE) for member_id, each in given_out.items()} == before


def test_members_of_equal_processes_get_equal_shares() -> None:
    given_out = assign({"a": "p", "b": "q", "c": "r"}, {}, {"0": Work(7, True)}, 0)
    assert sorted(len(tasks) for tasks in given_out.values()) == [2, 2, 3]


def test_a_process_with_more_members_gets_more() -> None:
    given_out = assign({"a": "p", "b": "p", "c": "q"}, {}, {"0": Work(6, False)}, 0)
    assert [len(given_out[member_id]) for member_id in "abc"] == [2, 2, 2]


def test_who_comes_takes_from_who_has_most() -> None:
    before = {"a": active("0", 0, 1, 2, 3), "b": frozenset[Task]()}
    given_out = assign({"a": "p", "b": "q"}, before, {"0": Work(4, False)}, 0)
    assert given_out == {"a": active("0", 0, 1), "b": active("0", 2, 3)}


def test_a_task_goes_to_who_has_a_copy_of_its_stores() -> None:
    before = {"b": standby("0", 0), "c": active("0", 1), "a": active("0", 2)}
    given_out = assign({"a": "p", "b": "q", "c": "r"}, before, {"0": Work(3, True)}, 0)
    assert given_out == {"a": active("0", 2), "b": active("0", 0), "c": active("0", 1)}


def test_copies_stay_where_they_are() -> None:
    before = {"a": active("0", 0) | standby("0", 1), "b": active("0", 1) | standby("0", 0), "c": frozenset[Task]()}
    given_out = assign({"a": "p", "b": "q", "c": "r"}, before, {"0": Work(2, True)}, 1)
    assert given_out["a"] | given_out["b"] | given_out["c"] == before["a"] | before["b"]
    assert of_role(given_out["a"], Role.ACTIVE) == {("0", 0)}
    sizes = sorted(len(tasks) for tasks in given_out.values())
    assert all(larger - smaller <= 1 for smaller, larger in pairwise(sizes))


def test_nobody_is_there() -> None:
    assert assign({}, {}, {"0": Work(2, True)}, 1) == {}
