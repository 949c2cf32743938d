"""What the members of a group have to do in time.

No clock is here: `Now` comes in, and `deadline` says when to ask who is `due`. It is a lower bound, so that what a
member does in time costs the same in a group of five thousand as in a group of two; `due`, which looks at all of them,
makes it exact.
"""

import enum
import math
from collections.abc import Container, Iterable
from typing import NamedTuple

__all__ = ["MemberTimers", "Now", "Timer"]


class Now(NamedTuple):
    """The time: in seconds of a monotonic clock, and in milliseconds of the wall clock."""

    at: float
    wall_ms: int


class Timer(enum.Enum):
    """What a member has to do in time, or is fenced."""

    SESSION = enum.auto()
    """Say that it is alive."""
    REVOCATION = enum.auto()
    """Give up what it was asked to."""
    JOIN = enum.auto()
    """A member of the classic protocol: join again."""
    SYNC = enum.auto()
    """A member of the classic protocol that has joined: ask for its assignment."""


class MemberTimers:
    """The timers of one group."""

    __slots__ = ("_running", "deadline")

    def __init__(self) -> None:
        self.deadline = math.inf
        """When to ask who is `due`; nobody is before."""
        self._running: dict[Timer, dict[str, float]] = {timer: {} for timer in Timer}

    def start(self, timer: Timer, member_id: str, timeout_ms: int, now: Now) -> None:
        """Give a member that long, from now on."""
        deadline = self._running[timer][member_id] = now.at + timeout_ms / 1000
        self.deadline = min(self.deadline, deadline)

    def end(self, timer: Timer, member_id: str) -> None:
        """A member has done what it had to."""
        self._running[timer].pop(member_id, None)

    def is_running(self, timer: Timer, member_id: str) -> bool:
        """Whether a member has to do something by some time."""
        return member_id in self._running[timer]

    def sessions(self) -> Iterable[tuple[str, float]]:
        """Until when each member, or former member, may be silent."""
        return self._running[Timer.SESSION].items()

    def due(self, members: Container[str], now: Now) -> list[str]:
        """Those of `members` whose time is up. Makes `deadline` exact, as if they were gone, and forgets all others."""
        overdue: dict[str, None] = {}
        times = [math.inf]
        for running in self._running.values():
            for member_id, deadline in list(running.items()):
                if member_id not in members:
                    del running[member_id]
                elif deadline <= now.at:
                    overdue[member_id] = None
                else:
                    times.append(deadline)
        self.deadline = min(times)
        return list(overdue)

    def clear(self) -> None:
        """Nobody has to do anything any more."""
        for running in self._running.values():
            running.clear()
        self.deadline = math.inf
