"""A log against a plain model, under random operations, faults of every call, crashes and restarts.

What is acknowledged is never lost, doubled or changed: by a crash of the process nothing that was written, by a loss of
power nothing that was flushed. What was not acknowledged is there as it was sent, or not at all. No offset is given
twice, and the indexes tell the truth.
"""

import errno
from collections.abc import Callable
from random import Random
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.cleaning import clean
from support.disk import Fault, SimulatedDisk
from support.logs import NOW_MS, Opener, check_indexes, contents, records

from odradek.log.log import Log, Origin
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import iter_batches

FOLDER = "/data"
PRODUCER_ID = 7
SHORT_WRITE = 0
DAY_MS = 86_400_000

T = TypeVar("T")


class LogMachine(RuleBasedStateMachine):
    """`model` holds the values that were acknowledged, by offset, and those that a crash left although they were not.

    Everything below `flushed` is on the disk. `sent` holds what a crash may leave instead: whatever was sent for an
    offset since the last flush.
    """

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk(NOW_MS)
        self.disk.make_directories(FOLDER)
        self.disk.root.sync()
        self.opener = Opener(FOLDER, self.disk)
        self.opener.config.cleanup_policy = ["compact", "delete"]
        self.opener.config.segment_bytes = 1200
        self.opener.config.file_delete_delay_ms = 0
        self.model: dict[int, bytes | None] = {}
        self.sent: dict[int, set[bytes | None]] = {}
        self.start = 0
        self.end = 0
        self.flushed = 0
        self.count = 0
        self.epoch = 0
        self.sequence = 0
        self.last_idempotent: tuple[int, int, int] | None = None
        self.random = Random(0)

    @initialize(random=st.randoms(use_true_random=False))
    def open(self, random: Random) -> None:
        self.random = random
        self.log = self.opener()

    # -- what goes wrong --------------------------------------------------------------------------------------------

    @rule(after=st.integers(0, 12), error=st.sampled_from([errno.EIO, errno.ENOSPC, SHORT_WRITE]))
    def break_disk(self, after: int, error: int) -> None:
        """The next operation meets a fault at one of its calls, if it makes so many."""
        self.disk.set_fault(Fault(after, error))

    def _attempt(self, operation: Callable[[], T]) -> T | None:
        """Do it; None when the disk did not let it be done."""
        try:
            return operation()
        except BrokerError as error:
            assert error.error is Error.KAFKA_STORAGE_ERROR  # noqa: PT017 - whether it fails depends on the fault
            assert self.disk.failed
        finally:
            self.disk.set_fault(None)
        if self.log.failed is not None:
            self._crash(power_lost=self.random.random() < 0.5)
        return None

    # -- appending --------------------------------------------------------------------------------------------------

    def _values(self, count: int, size: int) -> list[bytes]:
        self.count += 1
        return [b"%d/%d " % (self.count, index) + b"x" * size for index in range(count)]

    def _append(self, data: memoryview, values: list[bytes]) -> int | None:
        """Append; the offset, None when that failed."""
        log = self.log
        for offset, value in enumerate(values, self.end):
            self.sent.setdefault(offset, set()).add(value)
        result = self._attempt(lambda: log.append_as_leader(data, self.epoch, NOW_MS, Origin.CLIENT))
        if result is None:
            return None
        assert result.base_offset == self.end
        self.model.update(enumerate(values, self.end))
        self.end += len(values)
        return result.base_offset

    @rule(count=st.integers(1, 5), size=st.integers(0, 200), age=st.integers(-5, 5))
    def append(self, count: int, size: int, age: int) -> None:
        values = self._values(count, size)
        self._append(records(*values, timestamp_ms=NOW_MS + age, key=None), values)

    @rule(count=st.integers(1, 3))
    def append_idempotent(self, count: int) -> None:
        values = self._values(count, 10)
        offset = self._append(records(*values, producer=(PRODUCER_ID, 0, self.sequence), key=None), values)
        if offset is not None:
            self.last_idempotent = (offset, self.sequence, count)
            self.sequence += count

    @precondition(lambda self: self.last_idempotent is not None)
    @rule()
    def repeat(self) -> None:
        assert self.last_idempotent is not None
        offset, sequence, count = self.last_idempotent
        data = records(*[b"again"] * count, producer=(PRODUCER_ID, 0, sequence))
        result = self.log.append_as_leader(data, self.epoch, NOW_MS, Origin.CLIENT)
        assert (result.duplicate, result.base_offset) == (True, offset)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule(first=st.floats(0, 1), last=st.floats(0, 1), limit=st.integers(0, 2000))
    def read(self, first: float, last: float, limit: int) -> None:
        offset = self.start + int((self.end - self.start) * first)
        self.disk.set_fault(None)
        piece = self.log.read(offset, limit, self.end, at_least_one=True)
        if piece is None:
            assert not any(offset <= held for held in self.model)
            return
        data = memoryview(piece.read_bytes())
        batches = list(iter_batches(data))
        assert sum(batch.size for _, batch in batches) == len(data)
        assert len(data) <= limit or len(batches) == 1
        assert offset <= batches[0][1].last_offset
        behind = range(batches[-1][1].last_offset + 1, piece.next_offset)
        assert piece.next_offset >= behind.start
        assert not self.model.keys() & set(behind)
        end = offset + int((self.end - offset) * last)
        bounded = self.log.read(offset, limit, end, at_least_one=True)
        if bounded is not None:
            assert offset < bounded.next_offset <= end

    # -- shrinking, flushing, ending ---------------------------------------------------------------------------------

    @rule()
    def roll(self) -> None:
        self._attempt(lambda: self.log.roll(NOW_MS))

    @rule()
    def flush(self) -> None:
        log, end = self.log, self.end

        def flush() -> bool:
            pending = log.prepare_flush()
            pending.run()
            log.flush_done(pending)
            return True

        if self._attempt(flush):
            assert log.recovery_point == end
            self.flushed = end
            self.sent.clear()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.start += int((self.end - self.start) * share)
        self.disk.set_fault(None)
        self.log.increment_log_start_offset(self.start)

    @rule()
    def delete_old_segments(self) -> None:
        """The log may start later then: where a segment began that was kept."""
        log = self.log
        self._attempt(lambda: log.delete_old_segments(NOW_MS))
        assert self.log.log_start_offset == self.start

    @rule()
    def compact(self) -> None:
        """Every record has a key of its own, so all are kept: small segments become one."""
        log = self.log
        try:
            self._attempt(lambda: clean(log, files=self.disk))
        except OSError:
            # The cleaning process met it, and has changed nothing.
            assert self.disk.fault is None

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start + int((self.end - self.start) * share)
        log = self.log
        self.flushed = min(self.flushed, self._batch_start(offset))
        wanted = {held for held in self.model if held >= offset}
        self._attempt(lambda: log.truncate_to(offset))
        if self.log is log:
            assert log.log_end_offset <= offset
        self._take_over(may_lack=wanted | set(range(log.log_end_offset, self.end)))

    def _batch_start(self, offset: int) -> int:
        """The first offset of the batch that holds `offset`: batches are truncated as a whole."""
        fault, self.disk.fault = self.disk.fault, None
        piece = self.log.read(offset, 0, self.end, at_least_one=True)
        batches = [] if piece is None else list(iter_batches(piece.read_bytes()))
        self.disk.fault = fault
        return min([offset, *(batch.base_offset for _, batch in batches)])

    @rule()
    def restart(self) -> None:
        log = self.log
        end = self.end

        def close() -> bool:
            log.close()
            return True

        if self._attempt(close):
            self.flushed = end
            self.sent.clear()
            power_lost = self.random.random() < 0.5
            self.disk.restart(self.random, power_lost=power_lost)
            self.log = self.opener(clean=True, log_start_offset=self.start)
            self.last_idempotent = None
            assert self.log.log_end_offset == end

    @rule()
    def kill(self) -> None:
        """The process dies: everything written is in the files, nothing was closed."""
        self._crash(power_lost=False)

    @rule()
    def lose_power(self) -> None:
        """The machine dies: of what was not flushed anything may be there."""
        self._crash(power_lost=True)

    @rule(after=st.integers(0, 12), error=st.sampled_from([errno.EIO, errno.ENOSPC, SHORT_WRITE]))
    def crash_and_recover_with_fault(self, after: int, error: int) -> None:
        """The first start after a crash fails, and the next one must not be misled by what it left."""
        self._crash(power_lost=True, fault=Fault(after, error))

    def _crash(self, *, power_lost: bool, fault: Fault | None = None) -> None:
        distrusted = self.log.failed is not None
        point = self.log.recovery_point
        self.log.discard()
        self.disk.restart(self.random, power_lost=power_lost)
        self.disk.set_fault(fault)
        try:
            self.log = self._reopen(point)
        except OSError:
            assert self.disk.failed
            self.disk.set_fault(None)
            self.log = self._reopen(point)
        self.disk.set_fault(None)
        first_unsafe = self.flushed if power_lost or distrusted else self.end
        self._take_over(may_lack={offset for offset in self.model if offset >= first_unsafe})

    def _reopen(self, recovery_point: int) -> Log:
        return self.opener(recovery_point=recovery_point, log_start_offset=self.start)

    def _take_over(self, may_lack: set[int]) -> None:
        """Go on from what the log holds: all that it must, and nothing that was never sent."""
        found = dict(contents(self.log))
        held = {offset: value for offset, value in self.model.items() if offset >= self.start}
        lost = held.keys() - found.keys()
        assert lost <= may_lack, f"lost {sorted(lost - may_lack)}"
        for offset, value in found.items():
            assert value == held.get(offset) or value in self.sent.get(offset, ())
        self.end = self.log.log_end_offset
        # A crash may have taken whole segments that were not flushed, the first ones too.
        self.start = max(min(self.start, self.end), self.log.log_start_offset)
        self.flushed = min(self.flushed, self.end)
        for offset, value in (self.model | found).items():
            self.sent.setdefault(offset, set()).add(value)
        # What lies below the start can come back: a truncation may go behind it, and be undone by a crash.
        self.model = {offset: value for offset, value in self.model.items() if offset < self.start} | found
        self.last_idempotent = None
        producer = self.log.producers.by_id.get(PRODUCER_ID)
        self.sequence = producer.batches[-1].last_sequence + 1 if producer and producer.batches else 0

    @invariant()
    def holds_what_was_acknowledged(self) -> None:
        if not hasattr(self, "log"):
            return
        fault, self.disk.fault = self.disk.fault, None
        assert self.log.log_end_offset == self.end
        assert self.log.log_start_offset == self.start
        assert contents(self.log) == [
            (offset, self.model[offset]) for offset in sorted(self.model) if offset >= self.start
        ]
        check_indexes(self.log)
        self.disk.fault = fault


LogMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestLog = LogMachine.TestCase
