"""Which connections have something to read, and the moment in which they are served: when trio has nothing to do.

An epoll of its own holds all connections. trio calls `before_io_wait` when no task can run, and would sleep then until
something happens or a deadline comes; the poller sleeps in its place, in an epoll that holds trio's too, and serves
the connections that wake it. So a request that waits for nothing passes no task and no round of trio's loop, which
would cost more than it does. trio goes on as soon as a task can run, at its next deadline, and when its own epoll has
something for it.
"""

import select
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from odradek.channel import TURNS_IN_A_ROW
from odradek.deadlines import Deadlines

if TYPE_CHECKING:
    from odradek.channel import Channel

__all__ = ["Poller"]

READY_AT_ONCE = 32
"""Connections that are served between two looks at what else there is: a millisecond with small requests."""

HELD_S = 0.0005
"""How long replies may be held while others that came at the same time are answered. They are sent in a row then: a
client with several connections wakes once, and the way through the kernel stays in the caches.
"""

TURNS_BESIDE_OTHERS = 1
"""Requests in a row of a connection that has more to do, while others come with one now and then: they wait for as many
of its requests, where they would wait for six. It costs the busy one some of its throughput.
"""

OTHERS_REMAINED = 100
"""How many of these short turns it takes, some milliseconds, until others are thought to be gone."""

LONGEST_SLEEP_S = 86_400.0
"""trio's own sleeps are longer than epoll takes when there is no deadline."""


class Poller(trio.abc.Instrument):
    """Serves the connections that are parked with it, as bytes come for them.

    To be made where trio runs; `run` has to run while connections are to be served.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._channels: dict[int, Channel] = {}
        self._unfinished: list[Channel] = []
        """Connections that have more to do at once."""
        self._short_turns = 0
        self._answered: list[Channel] = []
        """Connections that have replies to be sent."""
        self._trio_fd = _trio_epoll_fd()
        self._trio_token = trio.lowlevel.current_trio_token()
        self._now = trio.lowlevel.current_clock().current_time
        self._task_can_run = False
        self._woken: list[Channel] = []
        self._deadlines: Deadlines[Channel] = Deadlines()
        self._sleep = trio.CancelScope()

    def add(self, channel: "Channel") -> None:
        """Look after a connection from now on, until `remove`."""
        fd = channel.sock.fileno()
        self._channels[fd] = channel
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, channel: "Channel") -> None:
        """Look away: the connection is busy, or is about to be closed."""
        fd = channel.sock.fileno()
        del self._channels[fd]
        self._epoll.unregister(fd)

    def await_room(self, channel: "Channel") -> None:
        """Serve a connection when its socket takes bytes, whatever comes in."""
        self._epoll.modify(channel.sock.fileno(), select.EPOLLOUT)

    def await_bytes(self, channel: "Channel") -> None:
        """Serve it when bytes come, again."""
        self._epoll.modify(channel.sock.fileno(), select.EPOLLIN)

    def wake(self, channel: "Channel") -> None:
        """Let a connection look for the answer that it waits for."""
        self._woken.append(channel)
        if self._trio_fd is None:
            self._sleep.cancel()

    def send_soon(self, channel: "Channel") -> None:
        """Have a connection that is served now send its replies in a row with those of others."""
        self._answered.append(channel)

    def schedule(self, channel: "Channel", deadline: float) -> None:
        """Let a connection look for its answer at that time of trio's, if nothing wakes it before."""
        self._deadlines.schedule(channel, deadline)

    def forget(self, channel: "Channel") -> None:
        """Let a connection look no more."""
        self._deadlines.forget(channel)

    async def run(self) -> None:
        """Serve until cancelled."""
        if self._trio_fd is None:
            await self._serve_in_a_task()
        else:
            self._epoll.register(self._trio_fd, select.EPOLLIN)
            trio.lowlevel.add_instrument(self)
            try:
                await trio.sleep_forever()
            finally:
                trio.lowlevel.remove_instrument(self)

    def close(self) -> None:
        """Let go of the epoll, when no connection is left."""
        self._epoll.close()

    async def _serve_in_a_task(self) -> None:
        """What works without trio's epoll: a round of trio's loop for each round of requests."""
        while True:
            if not self._unfinished and not self._woken:
                with trio.CancelScope(deadline=self._deadlines.next) as self._sleep:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
            self._serve(0)
            self._look_again(self._deadlines.pop_due(self._now()))
            await trio.lowlevel.checkpoint()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 - trio's signature
        """trio tells that a task can run."""
        self._task_can_run = True

    def before_io_wait(self, timeout: float) -> None:
        """trio tells that it has nothing to do for `timeout` seconds; 0 where it only looks what has come."""
        if timeout <= 0:
            self._serve(0)
            self._look_again(self._deadlines.pop_due(self._now()))
            return
        self._task_can_run = False
        now = self._now()
        end = now + min(timeout, LONGEST_SLEEP_S)
        while now < end and not self._task_can_run:
            due = self._deadlines.next
            if self._serve(max(min(end, due) - now, 0)):
                return
            now = self._now()
            if due <= now:
                self._look_again(self._deadlines.pop_due(now))
        # trio has settled how long it sleeps after this; a call of its own ends that.
        self._trio_token.run_sync_soon(_nothing, idempotent=True)

    def _serve(self, timeout_s: float) -> bool:
        """Wait for connections and serve them once; whether trio's epoll has something for trio."""
        unfinished, channels = self._unfinished, self._channels
        trios_turn = False
        ready = []
        for fd, _ in self._epoll.poll(0 if unfinished or self._woken else timeout_s, READY_AT_ONCE):
            if fd == self._trio_fd:
                trios_turn = True
            elif (channel := channels[fd]) not in unfinished:
                ready.append(channel)
        self._unfinished = []
        send_at = perf_counter() + HELD_S
        for channel in ready:
            if channel.serve_now():
                self._unfinished.append(channel)
            if self._answered and perf_counter() >= send_at:
                self._send()
                send_at = perf_counter() + HELD_S
        if self._answered:
            self._send()
        if unfinished:
            self._go_on(unfinished, beside_others=bool(ready))
        if self._woken:
            woken, self._woken = self._woken, []
            self._look_again(woken)
        return trios_turn

    def _go_on(self, unfinished: "list[Channel]", *, beside_others: bool) -> None:
        """Serve on those who have had a turn and have more to do, when the others have their answers."""
        if beside_others:
            self._short_turns = OTHERS_REMAINED
        turns = TURNS_IN_A_ROW
        if self._short_turns:
            self._short_turns -= 1
            turns = TURNS_BESIDE_OTHERS
        for channel in unfinished:
            if channel.is_parked and channel.serve_now(turns):
                self._unfinished.append(channel)
        if self._answered:
            self._send()

    def _send(self) -> None:
        """Send the replies of those who were answered."""
        for channel in self._answered:
            channel.send_replies()
        self._answered.clear()

    def _look_again(self, channels: "list[Channel]") -> None:
        """Let those look for their answers who were woken, or whose time is over."""
        for channel in dict.fromkeys(channels):
            if channel.look_again():
                self._unfinished.append(channel)


def _trio_epoll_fd() -> int | None:
    """The epoll in which trio sleeps. trio has no public name for it; without one there is a slower way."""
    try:
        runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner  # noqa: SLF001 - see above
        fd: int = runner.io_manager._epoll.fileno()  # noqa: SLF001 - see above
    except AttributeError:
        return None
    return fd


def _nothing() -> None:
    """What trio is woken with."""
