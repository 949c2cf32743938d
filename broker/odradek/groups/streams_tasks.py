"""Tasks of a Kafka Streams application: a partition of a subtopology in a role.

A task is active in one process, which does the work. Others keep copies of its stores (standby), or build them to take
over (warm-up). A process is an instance of the application; its threads are members of their own. KIP-1071.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

__all__ = ["Held", "Role", "Task", "Tasks", "by_subtopology"]


class Role(enum.IntEnum):
    """What a member does with a task."""

    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


class Task(NamedTuple):
    """A partition of a subtopology, in a role."""

    role: Role
    subtopology: str
    partition: int


Tasks = frozenset[Task]

Held = Mapping[Task, int]
"""Tasks of a member; the active ones with the epoch in which they were assigned (KIP-1251), others with any number."""


def by_subtopology(tasks: Iterable[Task], role: Role) -> dict[str, list[int]]:
    """The partitions of the tasks of a role, in order, by subtopology, in order."""
    found: dict[str, list[int]] = {}
    for task in sorted(task for task in tasks if task.role is role):
        found.setdefault(task.subtopology, []).append(task.partition)
    return found
