"""Kafka's assignor for streams groups, "sticky": tasks stay where they are as far as members keep equal shares.

Active tasks go to the member that had them, then to one that kept a copy, as long as a member has fewer than its share;
what is left goes, subtopology by subtopology, to the process with the least load, and in it to the member with the
fewest tasks. Then the copies of tasks with stores are given out in the same way, none to a process that has the task.
A process's load is its number of tasks over its number of members. KIP-1071.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from odradek.groups.streams_tasks import Role, Task, Tasks

__all__ = ["NAME", "Work", "assign"]

NAME = "sticky"

TaskId = tuple[str, int]
"""A task without a role."""


class Work(NamedTuple):
    """How many tasks a subtopology has, and whether they have stores."""

    tasks: int
    is_stateful: bool


class _Quota:
    """How many tasks a member may have: those that are left, shared by the members that are not full."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members

    @property
    def per_member(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def count(self, tasks: int) -> None:
        """A member has so many now: if it is full, the others share what is left."""
        if tasks == self.per_member:
            self._members -= 1
            self._tasks -= tasks


class _Process:
    """A process, its members with how many tasks each has got, and all tasks that it has got."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[TaskId] = set()

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.counts)

    def least_loaded_member(self) -> str:
        return min(self.counts, key=self.counts.__getitem__)


class _Queue:
    """Processes, that with the least load first; among equals that which has been there longest."""

    def __init__(self, processes: Iterable[_Process]) -> None:
        self._heap = [(process.load, number, process) for number, process in enumerate(processes)]
        heapq.heapify(self._heap)

    @contextmanager
    def least_loaded(self, task: TaskId) -> Iterator[_Process | None]:
        """A process that does not have the task, to be given it; None when all have it."""
        passed = []
        while self._heap:
            passed.append(heapq.heappop(self._heap))
            if task not in passed[-1][2].tasks:
                yield passed[-1][2]
                break
        else:
            yield None
        for _, number, process in passed:
            heapq.heappush(self._heap, (process.load, number, process))


class _Sharing:
    def __init__(
        self, processes: Mapping[str, str], current: Mapping[str, Tasks], work: Mapping[str, Work], replicas: int
    ) -> None:
        self.given: dict[str, set[Task]] = {member_id: set() for member_id in processes}
        self._work = work
        self._replicas = replicas
        self._by_id: dict[str, _Process] = {}
        for member_id, process_id in processes.items():
            self._by_id.setdefault(process_id, _Process()).counts[member_id] = 0
        self._process = {member_id: self._by_id[process_id] for member_id, process_id in processes.items()}
        self._active_before: dict[TaskId, str] = {}
        self._standby_before: dict[TaskId, list[str]] = {}
        for member_id in processes:
            for role, name, partition in current.get(member_id, ()):
                if role is Role.ACTIVE:
                    self._active_before[name, partition] = member_id
                elif role is Role.STANDBY:
                    self._standby_before.setdefault((name, partition), []).append(member_id)
        tasks = sum(each.tasks for each in work.values())
        copies = replicas * sum(each.tasks for each in work.values() if each.is_stateful)
        self._active_quota = _Quota(tasks, len(processes))
        self._quota = _Quota(tasks + copies, len(processes))

    def give_active(self) -> None:
        left: list[TaskId] = []
        for task in sorted(self._task_ids(), key=by_partition):
            member_id = self._active_before.get(task)
            if member_id is not None and self._has_room(member_id, self._active_quota):
                self._give(Role.ACTIVE, task, member_id)
            else:
                left.append(task)
        unseen: list[TaskId] = []
        for task in left:
            member_id = self._copy_holder(task)
            if member_id is not None and self._has_room(member_id, self._active_quota):
                self._give(Role.ACTIVE, task, member_id)
            else:
                unseen.append(task)
        queue = _Queue(self._by_id.values())
        for task in sorted(unseen):
            with queue.least_loaded(task) as process:
                if process is not None:
                    self._give(Role.ACTIVE, task, process.least_loaded_member())

    def give_standby(self) -> None:
        left: list[TaskId] = []
        for task in sorted(self._task_ids(stateful=True), key=by_partition, reverse=True):
            for number in range(self._replicas):
                member_id = self._copy_keeper(task)
                if member_id is None:
                    left.extend([task] * (self._replicas - number))
                    break
                self._give(Role.STANDBY, task, member_id)
        queue = _Queue(self._by_id.values())
        for task in sorted(left, reverse=True):
            with queue.least_loaded(task) as process:
                if process is not None:
                    self._give(Role.STANDBY, task, process.least_loaded_member())

    def _task_ids(self, *, stateful: bool = False) -> Iterator[TaskId]:
        for name, work in self._work.items():
            if work.is_stateful or not stateful:
                yield from ((name, partition) for partition in range(work.tasks))

    def _copy_keeper(self, task: TaskId) -> str | None:
        """A member with room that knows the stores of a task, and whose process does not have the task yet."""
        former = self._active_before.get(task)
        if former is not None and task not in self._process[former].tasks and self._has_room(former, self._quota):
            return former
        holder = self._copy_holder(task)
        return holder if holder is not None and self._has_room(holder, self._quota) else None

    def _copy_holder(self, task: TaskId) -> str | None:
        """Of the members that were to keep a copy, and whose processes do not have the task, the least loaded one."""
        holders = [each for each in self._standby_before.get(task, ()) if task not in self._process[each].tasks]
        return min(holders, key=self._load_of, default=None)

    def _load_of(self, member_id: str) -> tuple[float, int]:
        process = self._process[member_id]
        return process.load, process.counts[member_id]

    def _has_room(self, member_id: str, quota: _Quota) -> bool:
        return self._process[member_id].counts[member_id] < quota.per_member

    def _give(self, role: Role, task: TaskId, member_id: str) -> None:
        process = self._process[member_id]
        process.tasks.add(task)
        process.counts[member_id] += 1
        self.given[member_id].add(Task(role, *task))
        if role is Role.ACTIVE:
            self._active_quota.count(process.counts[member_id])
        self._quota.count(process.counts[member_id])


def by_partition(task: TaskId) -> tuple[int, str]:
    """An order in which tasks that read the same partitions are neighbours."""
    return task[1], task[0]


def assign(
    processes: Mapping[str, str], current: Mapping[str, Tasks], work: Mapping[str, Work], standby_replicas: int
) -> dict[str, Tasks]:
    """The tasks of each member, from the process of each, and from what each was to have so far.

    `work` is by subtopology; `standby_replicas` is how many copies of the stores of a task are kept, if there are so
    many processes.
    """
    sharing = _Sharing(processes, current, work, standby_replicas)
    sharing.give_active()
    sharing.give_standby()
    return {member_id: frozenset(tasks) for member_id, tasks in sharing.given.items()}
