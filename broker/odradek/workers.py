"""Tasks that are kept for the next work: waking one costs a fraction of what starting one does.

There are as many as were at work at the same time, but at most `MOST_IDLE` wait for more.
"""

from collections.abc import Awaitable, Callable

import trio

__all__ = ["Workers"]

MOST_IDLE = 32
"""Tasks that wait for work: each holds some kilobytes."""

Work = Callable[[], Awaitable[None]]


class Workers:
    """Starts work in tasks of a nursery. Work may be started wherever trio runs, also outside a task."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._idle: list[trio.lowlevel.Task] = []
        self._given: dict[trio.lowlevel.Task, Work] = {}

    def start(self, work: Work) -> None:
        """Have a task do `work`, which lets no exception but a cancellation out."""
        if self._idle:
            task = self._idle.pop()
            self._given[task] = work
            trio.lowlevel.reschedule(task)
        else:
            self._nursery.start_soon(self._run, work)

    async def _run(self, work: Work) -> None:
        task = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._idle.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        while True:
            await work()
            if len(self._idle) >= MOST_IDLE:
                return
            self._idle.append(task)
            await trio.lowlevel.wait_task_rescheduled(abort)
            work = self._given.pop(task)
