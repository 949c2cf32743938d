"""Requests that wait for a partition: a Fetch for bytes, a Produce for replicas and for the disk.

A waiter is one wait of one request. It is entered in each partition that it watches and leaves all of them when the
wait ends, whatever ended it. Every wait has a deadline.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import trio

__all__ = ["Postponed", "Waiter", "Watched", "answer_of", "wait_on"]


class Waiter:
    """A wait for `needed` bytes more; `woken` is called when they are there. `notify` counts them down, `wake` ends
    the wait at once.
    """

    __slots__ = ("_woken", "needed")

    def __init__(self, needed: int, woken: Callable[[], object]) -> None:
        self.needed = needed
        self._woken = woken

    def notify(self, size_bytes: int) -> None:
        """Say that a watched partition has `size_bytes` more to read."""
        self.needed -= size_bytes
        if self.needed <= 0:
            self._woken()

    def wake(self) -> None:
        """End the wait: something else than bytes came that the request has to look at."""
        self._woken()


class Watched(Protocol):
    """What a waiter can be entered in."""

    @property
    def waiters(self) -> set[Waiter]: ...


async def wait_on(watched: Iterable[Watched], needed: int, timeout_s: float) -> None:
    """Wait until there are `needed` bytes more in `watched`, until something else wakes it, or `timeout_s` seconds."""
    woken = trio.Event()
    waiter = Waiter(needed, woken.set)
    entered = list(watched)
    for one in entered:
        one.waiters.add(waiter)
    try:
        with trio.move_on_after(timeout_s):
            await woken.wait()
    finally:
        for one in entered:
            one.waiters.discard(waiter)


class Postponed:
    """An answer that is not there yet, and that is waited for without a task.

    Whoever is given one calls `begin` at once, then `look` each time that `woken` was called and at `deadline`, in
    trio's time, until it has the answer; or `end`, when nobody wants it any more. The request's bytes are not kept
    meanwhile, so nothing in it may be a view of them.

    It is no abstract base class: each answer of a handler is asked whether it is one, which costs four times as much
    then.
    """

    deadline: float

    def begin(self, woken: Callable[[], object]) -> None:
        """Have `woken` called when it is worth a look."""
        raise NotImplementedError

    def look(self) -> Any | None:
        """The answer, which ends the wait; None when it is not there yet, which is never so after the deadline."""
        raise NotImplementedError

    def end(self) -> None:
        """Wait no more."""
        raise NotImplementedError


async def answer_of(postponed: Postponed) -> Any:
    """The answer that is waited for, for a task that has to have it."""
    woken = trio.Event()

    def wake() -> None:
        woken.set()

    postponed.begin(wake)
    try:
        while (answer := postponed.look()) is None:
            with trio.move_on_at(postponed.deadline):
                await woken.wait()
            woken = trio.Event()
    finally:
        postponed.end()
    return answer
