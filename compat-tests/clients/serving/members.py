"""The consumers that a test holds open in a driver of Python, and what a test asks of them.

Each is called in a thread of its own, as in an application: some libraries wait inside a poll until the other members
of the group have joined, too.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from serving import Deadline, operation

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOOK_S = 0.05


class Member(ABC):
    """One open consumer and its thread. `moves` is the history of its partitions: ["assigned" or "revoked", them]."""

    def __init__(self) -> None:
        self.moves: list[list[Any]] = []
        self.thread = ThreadPoolExecutor(max_workers=1)

    def moved(self, what: str, partitions: Iterable[Any]) -> None:
        """Note what the library's rebalance listener was told; a call about no partition says nothing."""
        if moved := sorted([tp.topic, tp.partition] for tp in partitions):
            self.moves.append([what, moved])

    @abstractmethod
    def take(self, at_most: int) -> list[dict[str, Any]]:
        """Poll once, for a moment, and return up to so many records."""

    @abstractmethod
    def held(self) -> Iterable[Any]:
        """Return the partitions that are assigned now, things with `topic` and `partition`."""

    @abstractmethod
    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Set where the next `take` reads."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the positions and wait for the answer."""

    @abstractmethod
    def close(self) -> None:
        """Close: a group member leaves its group, unless it is a static one."""


members: dict[str, Member] = {}


@operation
def poll(names: list[str], count: int, timeout_s: float = 60) -> dict[str, list[dict[str, Any]]]:
    """Poll the consumers until they have `count` records together."""
    deadline = Deadline(timeout_s)
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    turn = list(names)
    while (missing := count - sum(map(len, seen.values()))) > 0:
        deadline.check({name: len(records) for name, records in seen.items()})
        shares = [(name, (missing + place) // len(turn)) for place, name in enumerate(turn)]
        taken = [(name, members[name].thread.submit(members[name].take, share)) for name, share in shares if share]
        for name, records in taken:
            seen[name] += records.result()
        turn = turn[1:] + turn[:1]  # the last record may be with a member whose share was none
    return seen


@operation
def take(name: str, at_most: int) -> list[dict[str, Any]]:
    """Poll a consumer once, for a moment; return up to so many records."""
    return members[name].thread.submit(members[name].take, at_most).result()


@operation
def settle(names: list[str], partitions: int, timeout_s: float = 60) -> dict[str, list[list[Any]]]:
    """Poll the consumers until each holds partitions and all hold `partitions`, none of them twice.

    There must be nothing to read: what these polls take is gone.
    """
    deadline = Deadline(timeout_s)
    held: dict[str, list[list[Any]]] = {name: [] for name in names}
    while not _shared_out(held, partitions):
        over = threading.Event()
        following = [members[name].thread.submit(_follow, name, held, over) for name in names]
        try:
            while not _shared_out(held, partitions):
                deadline.check(held)
                if wait(following, _LOOK_S, FIRST_COMPLETED).done:
                    break  # it failed, which its result says
        finally:
            over.set()
        for poll in following:
            poll.result()
    return held


def _follow(name: str, held: dict[str, list[list[Any]]], over: threading.Event) -> None:
    """Poll a consumer until it is over, and keep the [topic, partition]s that it holds."""
    while not over.is_set():
        members[name].take(1)
        held[name] = sorted([tp.topic, tp.partition] for tp in members[name].held())


def _shared_out(held: dict[str, list[list[Any]]], partitions: int) -> bool:
    together = [tuple(tp) for assigned in held.values() for tp in assigned]
    return len(together) == len(set(together)) == partitions and all(held.values())


@operation
def rebalances(name: str) -> list[list[Any]]:
    """Return what the consumer's rebalance listener was told so far, in order (`Member.moves`)."""
    return members[name].moves


@operation
def seek(name: str, topic: str, partition: int, offset: int) -> None:
    """Set where the consumer reads next."""
    members[name].thread.submit(members[name].seek, topic, partition, offset).result()


@operation
def commit(name: str) -> None:
    """Commit the consumer's positions and wait for the answer."""
    members[name].thread.submit(members[name].commit).result()


@operation
def close_consumer(name: str) -> None:
    """Close the consumer."""
    member = members.pop(name)
    member.thread.submit(member.close).result()
    member.thread.shutdown()


def close_all() -> None:
    """Close what a test left open."""
    for name in list(members):
        close_consumer(name)
