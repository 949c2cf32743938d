"""Group commit: one flush brings to the disk what everybody waits for who appended before it began.

Rules:

- The logs of a folder are flushed in rounds. A round takes every log that has something to be flushed; what is appended
  meanwhile is for the next one. So the slower the disk, or the busier the loop, the more records one flush serves.
- A round begins when trio's loop comes round, not with the first append that asks for it: what other connections have
  sent by then is appended too. On a disk that is as quick as the loop, there would be a flush for nearly each append.
- The flushes of a round run side by side in as many threads as the disk is slow. A thread reports with one wake-up of
  trio, however many logs it flushed and however many tasks wait for them.
- Whoever waits when a flush fails is told that it failed.
"""

import math
import time
from collections.abc import Callable
from functools import partial

import trio

from odradek.log.flush import PendingFlush
from odradek.log.log import Log
from odradek_protocol.errors import BrokerError

__all__ = ["FlushRounds", "FlushWaiter", "GroupCommit"]

MAX_THREADS = 8
"""Flushes at a time in a folder."""

THREAD_S = 0.001
"""How long a thread is to flush: one that ends at once costs more than it saves, and a slow disk needs several."""

SMOOTHING = 8
"""Over about how many jobs the time of a flush is averaged."""


class FlushRounds:
    """The rounds of one folder."""

    __slots__ = ("_at_work", "_beginning", "_flush_s", "_wanting")

    def __init__(self) -> None:
        self._beginning = False
        self._flush_s = 0.0
        self._wanting: list[GroupCommit] = []
        self._at_work = 0

    def add(self, commit: "GroupCommit") -> None:
        """Have a log in the next round, which begins soon when none is at work."""
        self._wanting.append(commit)
        if not self._at_work:
            self._begin_soon()

    def _begin_soon(self) -> None:
        if not self._beginning:
            self._beginning = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._begin)

    def _begin(self) -> None:
        self._beginning = False
        commits, self._wanting = self._wanting, []
        flushes = [(commit, flush) for commit in commits if (flush := commit.prepare()) is not None]
        self._at_work = min(math.ceil(len(flushes) * self._flush_s / THREAD_S) or 1, MAX_THREADS, len(flushes))
        token = trio.lowlevel.current_trio_token()
        for first in range(self._at_work):
            job = _Job(flushes[first :: self._at_work])
            trio.lowlevel.start_thread_soon(job.run, partial(self._deliver, token, job))

    def _deliver(self, token: trio.lowlevel.TrioToken, job: "_Job", _result: object) -> None:
        """In the thread."""
        try:
            token.run_sync_soon(self._end, job)
        except trio.RunFinishedError:
            return  # the broker has stopped, and nobody waits

    def _end(self, job: "_Job") -> None:
        self._at_work -= 1
        self._flush_s += (job.seconds / len(job.ended) - self._flush_s) / SMOOTHING
        for commit, flush, error in job.ended:
            if commit.end(flush, error):
                self._wanting.append(commit)
        if not self._at_work and self._wanting:
            self._begin_soon()


class _Job:
    """Flushes for one thread, how each of them ended, and how many seconds they took together."""

    __slots__ = ("_flushes", "ended", "seconds")

    def __init__(self, flushes: "list[tuple[GroupCommit, PendingFlush]]") -> None:
        self._flushes = flushes
        self.ended: list[tuple[GroupCommit, PendingFlush, Exception | None]] = []
        self.seconds = 0.0

    def run(self) -> None:
        began = time.perf_counter()
        for commit, flush in self._flushes:
            failure = None
            try:
                flush.run()
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                failure = error
            self.ended.append((commit, flush, failure))
        self.seconds = time.perf_counter() - began


class FlushWaiter:
    """A wait for everything below `end_offset`. `woken` is called when it is over; `error` is why it was in vain."""

    __slots__ = ("_woken", "done", "end_offset", "error")

    def __init__(self, end_offset: int, woken: Callable[[], object]) -> None:
        self.end_offset = end_offset
        self.done = False
        self.error: Exception | None = None
        self._woken = woken

    def end(self, error: Exception | None = None) -> None:
        """End the wait."""
        self.done = True
        self.error = error
        self._woken()


class GroupCommit:
    """The flushes of one log. `on_flushed` is called after each that succeeded."""

    __slots__ = ("_entered", "_log", "_on_flushed", "_rounds", "_waiters", "_wanted")

    def __init__(self, log: Log, rounds: FlushRounds, on_flushed: Callable[[], None]) -> None:
        self._log = log
        self._rounds = rounds
        self._on_flushed = on_flushed
        self._wanted = 0
        self._entered = False
        self._waiters: list[FlushWaiter] = []

    def want(self, end_offset: int) -> None:
        """Have everything below `end_offset` flushed in the next round."""
        self._wanted = max(self._wanted, end_offset)
        if not self._entered:
            self._entered = True
            self._rounds.add(self)

    def enter(self, end_offset: int, woken: Callable[[], object]) -> FlushWaiter:
        """Have everything below `end_offset` flushed, and `woken` called then, unless `leave` comes first."""
        waiter = FlushWaiter(end_offset, woken)
        if self._log.recovery_point >= end_offset:
            waiter.end()
        else:
            self._waiters.append(waiter)
            self.want(end_offset)
        return waiter

    def leave(self, waiter: FlushWaiter) -> None:
        """Wait no longer."""
        if not waiter.done:
            self._waiters.remove(waiter)

    async def wait(self, end_offset: int) -> None:
        """Have everything below `end_offset` flushed, and wait for it. Raises KAFKA_STORAGE_ERROR."""
        if self._log.recovery_point >= end_offset:
            return
        woken = trio.Event()
        waiter = self.enter(end_offset, woken.set)
        try:
            await woken.wait()
        finally:
            self.leave(waiter)
        if waiter.error is not None:
            raise waiter.error

    def prepare(self) -> PendingFlush | None:
        """What a round has to do for this log; the active segment is always flushed as a whole."""
        log = self._log
        wanted, self._wanted = min(self._wanted, log.log_end_offset), 0
        if wanted > log.recovery_point:
            try:
                return log.prepare_flush(None if wanted > log.active.base_offset else wanted)
            except BrokerError as error:
                self._fail(error)
        self._entered = False
        self._wake()
        return None

    def end(self, flush: PendingFlush, error: Exception | None) -> bool:
        """Take how a flush ended; gives whether there is more to be flushed by now."""
        if error is None:
            self._log.flush_done(flush)
            self._wake()
            self._on_flushed()
        else:
            self._fail(error)
        # Who still waits is for the next round: they came later, or this flush was in vain, as the log has changed.
        self._wanted = max((waiter.end_offset for waiter in self._waiters), default=self._wanted)
        self._entered = self._wanted > 0
        return self._entered

    def _wake(self) -> None:
        """Wake those whose records are on the disk, or were truncated meanwhile."""
        log = self._log
        waiting = []
        for waiter in self._waiters:
            if waiter.end_offset <= log.recovery_point or waiter.end_offset > log.log_end_offset:
                waiter.end()
            else:
                waiting.append(waiter)
        self._waiters = waiting

    def _fail(self, error: Exception) -> None:
        self._wanted = 0
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.end(error)
