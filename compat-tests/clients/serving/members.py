"""The consumers that a test holds open in a driver of Python, and what a test asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from serving import Deadline, operation

if TYPE_CHECKING:
    from collections.abc import Iterable


class Member(ABC):
    """One open consumer. `moves` is the history of its partitions: ["assigned" or "revoked", [topic, partition]s]."""

    def __init__(self) -> None:
        self.moves: list[list[Any]] = []

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
def poll(names: list[str], count: int, timeout_s: float = 20) -> dict[str, list[dict[str, Any]]]:
    """Poll the consumers in turn until they have `count` records together."""
    deadline = Deadline(timeout_s)
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    while (missing := count - sum(map(len, seen.values()))) > 0:
        deadline.check({name: len(records) for name, records in seen.items()})
        for name in names:
            seen[name] += members[name].take(missing)
            missing = count - sum(map(len, seen.values()))
            if missing <= 0:
                break
    return seen


@operation
def settle(names: list[str], partitions: int, timeout_s: float = 30) -> dict[str, list[list[Any]]]:
    """Poll the consumers in turn until each holds partitions and all hold `partitions`, none of them twice."""
    deadline = Deadline(timeout_s)
    while True:
        held: dict[str, list[list[Any]]] = {}
        for name in names:
            members[name].take(1)
            held[name] = sorted([tp.topic, tp.partition] for tp in members[name].held())
        together = [tuple(tp) for assigned in held.values() for tp in assigned]
        if len(together) == len(set(together)) == partitions and all(held.values()):
            return held
        deadline.check(held)


@operation
def rebalances(name: str) -> list[list[Any]]:
    """Return what the consumer's rebalance listener was told so far, in order (`Member.moves`)."""
    return members[name].moves


@operation
def seek(name: str, topic: str, partition: int, offset: int) -> None:
    """Set where the consumer reads next."""
    members[name].seek(topic, partition, offset)


@operation
def commit(name: str) -> None:
    """Commit the consumer's positions and wait for the answer."""
    members[name].commit()


@operation
def close_consumer(name: str) -> None:
    """Close the consumer."""
    members.pop(name).close()


def close_all() -> None:
    """Close what a test left open."""
    for name in list(members):
        close_consumer(name)
