"""Many deadlines, one sleeper: a heap in which a thing has at most one deadline that counts.

A thing whose deadline moves later is not moved in the heap: it comes up at the old time, is looked at, and goes in
again. So a group whose members send heartbeats costs nothing until its first deadline passes.
"""

import heapq
import math
from typing import Generic, TypeVar

import trio

__all__ = ["Alarms", "Deadlines"]

K = TypeVar("K")


class Deadlines(Generic[K]):
    """The earliest deadline of each thing. Things are told apart by identity or equality, as dictionary keys are."""

    __slots__ = ("_at", "_heap", "_tie")

    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._tie = 0

    def schedule(self, key: K, at: float) -> None:
        """Bring `key` up at `at` unless it comes up earlier already."""
        if at < self._at.get(key, math.inf):
            self._at[key] = at
            self._tie += 1
            heapq.heappush(self._heap, (at, self._tie, key))

    def forget(self, key: K) -> None:
        """Do not bring `key` up."""
        self._at.pop(key, None)

    @property
    def next(self) -> float:
        """When something comes up; infinite when nothing does."""
        while self._heap:
            at, _, key = self._heap[0]
            if self._at.get(key) == at:
                return at
            heapq.heappop(self._heap)
        return math.inf

    def pop_due(self, now: float) -> list[K]:
        """What has come up by `now`; each of it is to be scheduled again if it has another deadline."""
        due = []
        while self.next <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._at[key]
            due.append(key)
        return due


class Alarms(Deadlines[K]):
    """Deadlines, by trio's clock, that one task waits for."""

    __slots__ = ("_sleeps_until", "_sooner")

    def __init__(self) -> None:
        super().__init__()
        self._sooner = trio.Event()
        self._sleeps_until = -math.inf
        """-inf while nobody has slept yet: then nobody is to be woken."""

    def schedule(self, key: K, at: float) -> None:
        """Bring `key` up at `at` unless it comes up earlier already; who sleeps for longer wakes."""
        super().schedule(key, at)
        if at < self._sleeps_until:
            self._sooner.set()

    async def due(self) -> list[K]:
        """Sleep until something comes up; each of it is to be scheduled again if it has another deadline."""
        while True:
            self._sleeps_until = self.next
            self._sooner = trio.Event()
            with trio.move_on_at(self._sleeps_until):
                await self._sooner.wait()
            if due := self.pop_due(trio.current_time()):
                return due
