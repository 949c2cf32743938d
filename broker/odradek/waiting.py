"""Requests that wait for a partition: a Fetch for bytes, a Produce for replicas.

A waiter is one wait of one request. It is entered in each partition that it watches and leaves all of them when the
wait ends, whatever ended it. Every wait has a deadline.
"""

from collections.abc import Iterable
from typing import Protocol

import trio

__all__ = ["Waiter", "Watched", "wait_on"]


class Waiter:
    """A wait for `needed` bytes more. `notify` counts them down, `wake` ends the wait at once."""

    __slots__ = ("_event", "needed")

    def __init__(self, needed: int) -> None:
        self.needed = needed
        self._event = trio.Event()

    def notify(self, size_bytes: int) -> None:
        """Say that a watched partition has `size_bytes` more to read."""
        self.needed -= size_bytes
        if self.needed <= 0:
            self._event.set()

    def wake(self) -> None:
        """End the wait: something else than bytes came that the request has to look at."""
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


class Watched(Protocol):
    """What a waiter can be entered in."""

    @property
    def waiters(self) -> set[Waiter]: ...


async def wait_on(watched: Iterable[Watched], waiter: Waiter, timeout_s: float) -> None:
    """Wait until `waiter` is woken, or `timeout_s` seconds."""
    entered = list(watched)
    for one in entered:
        one.waiters.add(waiter)
    try:
        with trio.move_on_after(timeout_s):
            await waiter.wait()
    finally:
        for one in entered:
            one.waiters.discard(waiter)
