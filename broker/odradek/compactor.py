"""Compaction as the broker sees it: which log is next, a process that cleans it, new segments put in place.

Rules:

- A process cleans one log at a time, and is started when there is one. It only makes new files; every change of a log
  is made here, in one step without an `await`, when the log is still what the process was told it is. A log that was
  deleted, truncated, or lost segments to retention keeps what it has then.
- A log that turns out to be damaged is left alone from then on (`Log.uncleanable`) and reported; the others go on. So
  is one that a process died of twice.
- A process that says nothing for `SILENCE_S` hangs, and is killed.
"""

import logging
import sys
import time
from typing import TYPE_CHECKING

import trio

from odradek.log.compaction import replacement
from odradek.log.compaction.choice import Candidate, examine, filthiest
from odradek.log.compaction.requests import (
    GO_ON,
    STOP,
    Cleaned,
    CleanedGroup,
    Failed,
    Message,
    decode,
    encode,
)
from odradek.log.compaction.rounds import Round
from odradek.log.files import Files
from odradek.log.log import Log
from odradek_protocol.errors import BrokerError

if TYPE_CHECKING:
    from odradek.node import Node

__all__ = ["Compactor"]

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "odradek.log.compaction")
SILENCE_S = 300.0
"""A working process says so every two seconds, but for the flush of a whole segment to a slow disk."""
LEAST_CHUNK_BYTES = 64 * 1024
MOST_DEATHS = 2
GIVEN_UP_S = 1.0
"""Until a process is started again that died, or whose log changed: no loop may be busy with that."""
THREADS_S = 1.0
"""How often to look whether `log.cleaner.threads` has changed."""
LONGEST_SLEEP_S = 86_400.0


class _ProcessDiedError(Exception):
    """The cleaning process ended, or hangs."""


class _AbandonedError(Exception):
    """The log is not what it was when its cleaning began."""


class _Process:
    """A running cleaning process, and the lines that it sends."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._received = bytearray()

    @classmethod
    async def start(cls) -> "_Process":
        return cls(await trio.lowlevel.open_process(COMMAND, stdin=-1, stdout=-1))

    async def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with trio.fail_after(SILENCE_S):
                await self._process.stdin.send_all(line)
        except (trio.BrokenResourceError, trio.TooSlowError) as error:
            raise _ProcessDiedError("it takes no requests") from error

    async def receive(self) -> Message:
        assert self._process.stdout is not None
        received = self._received
        while (end := received.find(b"\n")) < 0:
            try:
                with trio.fail_after(SILENCE_S):
                    data = await self._process.stdout.receive_some()
            except trio.TooSlowError as error:
                raise _ProcessDiedError(f"it said nothing for {SILENCE_S} s") from error
            if not data:
                raise _ProcessDiedError("it ended")
            received += data
        line = bytes(received[:end])
        del received[: end + 1]
        return decode(line)

    async def kill(self) -> None:
        self._process.kill()
        with trio.CancelScope(shield=True):
            await self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                await pipe.aclose()


class Compactor:
    """Keeps the compacted logs of a broker clean."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._busy: set[Log] = set()
        self._working: set[int] = set()
        self._deaths: dict[Log, int] = {}

    async def run(self) -> None:
        """Clean until cancelled, with `log.cleaner.threads` processes."""
        async with trio.open_nursery() as nursery:
            while True:
                for number in range(self._node.config.log_cleaner_threads):
                    if number not in self._working:
                        self._working.add(number)
                        nursery.start_soon(self._work, number)
                await trio.sleep(THREADS_S)

    async def _work(self, number: int) -> None:
        process: _Process | None = None
        config = self._node.config
        try:
            while number < config.log_cleaner_threads:
                candidate = self._choose()
                if candidate is None:
                    await trio.sleep(min(config.log_cleaner_backoff_ms / 1000, LONGEST_SLEEP_S))
                    continue
                self._busy.add(candidate.log)
                try:
                    process = process or await _Process.start()
                    await self._clean(process, candidate)
                except (_ProcessDiedError, _AbandonedError, BrokerError, OSError) as error:
                    log.warning("the cleaning of %s is given up: %s", candidate.log.directory, error)
                    if isinstance(error, _ProcessDiedError):
                        self._count_death(candidate.log)
                    if process is not None:
                        await process.kill()
                        process = None
                    await self._remove_cleaned(candidate.log)
                    await trio.sleep(GIVEN_UP_S)
                finally:
                    self._busy.discard(candidate.log)
        finally:
            self._working.discard(number)
            if process is not None:
                await process.kill()

    def _choose(self) -> Candidate | None:
        now_ms = self._node.clock.now_ms()
        candidates = []
        for partition in self._node.partitions.all():
            if partition.log in self._busy:
                continue
            try:
                candidate = examine(partition.log, partition.last_stable_offset, now_ms)
            except OSError as error:
                log.warning("%r cannot be judged: %s", partition.log, error)
                continue
            if candidate is not None:
                candidates.append(candidate)
        return filthiest(candidates)

    async def _clean(self, process: _Process, candidate: Candidate) -> None:
        """One round. Raises _ProcessDiedError, and _AbandonedError when there is no use in going on."""
        config, clock = self._node.config, self._node.clock
        began, share = time.monotonic(), max(config.log_cleaner_threads, 1)
        current = Round(candidate)
        request = current.request(
            clock.now_ms(),
            memory_bytes=config.log_cleaner_dedupe_buffer_size // share,
            load_factor=config.log_cleaner_io_buffer_load_factor,
            chunk_bytes=max(config.log_cleaner_io_buffer_size // share // 2, LEAST_CHUNK_BYTES),
            bytes_per_s=max(config.log_cleaner_io_max_bytes_per_second / share, 1.0),
        )
        await process.send(encode(request))
        while True:
            answer = await process.receive()
            if current.hindrance is not None:
                raise _AbandonedError(current.hindrance)
            if isinstance(answer, CleanedGroup):
                if not current.replace(answer.base_offsets, clock.now_ms()):
                    await process.send(STOP)
                    return
                await process.send(GO_ON)
            elif isinstance(answer, Failed):
                self._note_failure(candidate.log, answer)
                if not answer.damaged:
                    await trio.sleep(min(config.log_cleaner_backoff_ms / 1000, LONGEST_SLEEP_S))
                return
            elif isinstance(answer, Cleaned):
                current.finish(answer)
                self._deaths.pop(candidate.log, None)
                _report(candidate.log, answer, time.monotonic() - began)
                await self._checkpoint()
                return

    def _count_death(self, target: Log) -> None:
        deaths = self._deaths[target] = self._deaths.get(target, 0) + 1
        if deaths == MOST_DEATHS:
            del self._deaths[target]
            self._note_failure(target, Failed(f"{deaths} cleaning processes died of it", damaged=True))

    def _note_failure(self, target: Log, failure: Failed) -> None:
        if failure.damaged:
            target.uncleanable = failure.reason
            log.error("%s is not compacted any more: %s", target.directory, failure.reason)
        else:
            log.warning("%s could not be compacted: %s", target.directory, failure.reason)

    async def _remove_cleaned(self, target: Log) -> None:
        try:
            await trio.to_thread.run_sync(replacement.remove_cleaned, Files(), target.directory)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s: unfinished segments could not be removed: %s", target.directory, error)

    async def _checkpoint(self) -> None:
        try:
            await trio.to_thread.run_sync(self._node.logs.checkpoint_cleaning)
        except OSError as error:
            log.warning("the checkpoint of compaction could not be written: %s", error)


def _report(target: Log, answer: Cleaned, seconds: float) -> None:
    log.info(
        "%s is clean up to %d: %.1f MB of %d records became %.1f MB of %d records in %.1f s (%.1f MB/s)",
        target.directory,
        answer.end_offset,
        answer.bytes_read / 1e6,
        answer.records_read,
        answer.bytes_written / 1e6,
        answer.records_written,
        seconds,
        answer.bytes_read / 1e6 / max(seconds, 1e-9),
    )
