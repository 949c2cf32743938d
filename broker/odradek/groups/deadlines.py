"""Many deadlines, one sleeper: a heap in which a thing has at most one deadline that counts.

A thing whose deadline moves later is not moved in the heap: it comes up at the old time, is looked at, and goes in
again. So a group whose members send heartbeats costs nothing until its first deadline passes.
"""

import heapq
import math
from typing import Generic, TypeVar

__all__ = ["Deadlines"]

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
