"""A log against a plain list, under random operations, failing files, crashes and restarts."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.logs import NOW_MS, FaultyFiles, Opener, check_indexes, contents, records

from odradek.log.log import Origin
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import iter_batches

PRODUCER_ID = 7


class LogMachine(RuleBasedStateMachine):
    """`model` holds what has been acknowledged: the values from `start` on, by offset."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.files = FaultyFiles()
        self.opener = Opener(self.folder, self.files)
        self.opener.config.segment_bytes = 1200
        self.model: dict[int, bytes | None] = {}
        self.start = 0
        self.end = 0
        self.count = 0
        self.epoch = 0
        self.sequence = 0
        self.last_idempotent: tuple[int, int, int] | None = None

    @initialize()
    def open(self) -> None:
        self.log = self.opener()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _values(self, count: int, size: int) -> list[bytes]:
        self.count += 1
        return [b"%d/%d " % (self.count, index) + b"x" * size for index in range(count)]

    def _acknowledged(self, offset: int, values: list[bytes]) -> None:
        assert offset == self.end
        self.model.update(enumerate(values, offset))
        self.end += len(values)

    @rule(count=st.integers(1, 5), size=st.integers(0, 200), age=st.integers(-5, 5))
    def append(self, count: int, size: int, age: int) -> None:
        values = self._values(count, size)
        data = records(*values, timestamp_ms=NOW_MS + age)
        result = self.log.append_as_leader(data, self.epoch, NOW_MS, Origin.CLIENT)
        self._acknowledged(result.base_offset, values)

    @rule(count=st.integers(1, 3))
    def append_idempotent(self, count: int) -> None:
        values = self._values(count, 10)
        data = records(*values, producer=(PRODUCER_ID, 0, self.sequence))
        result = self.log.append_as_leader(data, self.epoch, NOW_MS, Origin.CLIENT)
        self._acknowledged(result.base_offset, values)
        self.last_idempotent = (result.base_offset, self.sequence, count)
        self.sequence += count

    @precondition(lambda self: self.last_idempotent is not None)
    @rule()
    def repeat(self) -> None:
        offset, sequence, count = self.last_idempotent
        if offset + count > self.end:
            return
        data = records(*[b"again"] * count, producer=(PRODUCER_ID, 0, sequence))
        result = self.log.append_as_leader(data, self.epoch, NOW_MS, Origin.CLIENT)
        assert (result.duplicate, result.base_offset) == (True, offset)

    @rule(count=st.integers(1, 3), size=st.integers(0, 200), left=st.integers(0, 150))
    def append_to_full_disk(self, count: int, size: int, left: int) -> None:
        self.files.write_limit = left
        values = self._values(count, size)
        try:
            result = self.log.append_as_leader(records(*values), self.epoch, NOW_MS, Origin.CLIENT)
        except BrokerError as error:
            assert error.error is Error.KAFKA_STORAGE_ERROR  # noqa: PT017 - the disk may suffice
        else:
            self._acknowledged(result.base_offset, values)
        self.files.write_limit = None

    @rule(call=st.sampled_from(["pwrite", "ftruncate", "rename"]))
    def append_to_broken_disk(self, call: str) -> None:
        self.files.broken = {call}
        values = self._values(2, 300)
        try:
            result = self.log.append_as_leader(records(*values), self.epoch, NOW_MS, Origin.CLIENT)
        except BrokerError as error:
            assert error.error is Error.KAFKA_STORAGE_ERROR  # noqa: PT017 - not every append makes this call
        else:
            self._acknowledged(result.base_offset, values)
        self.files.broken = set()

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule(first=st.floats(0, 1), last=st.floats(0, 1), limit=st.integers(0, 2000))
    def read(self, first: float, last: float, limit: int) -> None:
        offset = self.start + int((self.end - self.start) * first)
        piece = self.log.read(offset, limit, self.end, at_least_one=True)
        if offset == self.end:
            assert piece is None
            return
        data = memoryview(piece.read_bytes())
        batches = list(iter_batches(data))
        assert sum(batch.size for _, batch in batches) == len(data)
        assert len(data) <= limit or len(batches) == 1
        assert batches[0][1].base_offset <= offset <= batches[0][1].last_offset
        assert piece.next_offset == batches[-1][1].last_offset + 1
        end = offset + int((self.end - offset) * last)
        bounded = self.log.read(offset, limit, end, at_least_one=True)
        if bounded is not None:
            assert offset < bounded.next_offset <= end

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        flush = self.log.prepare_flush()
        flush.run()
        self.log.flush_done(flush)
        assert self.log.recovery_point == self.end

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.start += int((self.end - self.start) * share)
        self.log.increment_log_start_offset(self.start)
        self.log.delete_old_segments(NOW_MS)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start + int((self.end - self.start) * share)
        self.log.truncate_to(offset)
        assert self.log.log_end_offset <= offset
        self._shrunk()

    def _shrunk(self) -> None:
        """The log has legally become shorter than the model."""
        self.end = self.log.log_end_offset
        self.start = min(self.start, self.end)
        self.model = {offset: value for offset, value in self.model.items() if offset < self.end}
        self.last_idempotent = None
        producer = self.log.producers.by_id.get(PRODUCER_ID)
        self.sequence = producer.batches[-1].last_sequence + 1 if producer and producer.batches else 0

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = self.opener(clean=True, log_start_offset=self.start)
        self.last_idempotent = None

    @rule()
    def crash(self) -> None:
        """The process dies: everything written is in the files, nothing was closed."""
        self._reopen_after_crash()
        assert self.log.log_end_offset == self.end

    @rule(lost=st.integers(1, 300), nonsense=st.binary(max_size=100))
    def lose_power(self, lost: int, nonsense: bytes) -> None:
        """The machine dies: the end of the last segment was not on the disk yet, or something else is there."""
        flushed = self.log.recovery_point
        path = Path(self.log.active.path)
        data = path.read_bytes()[: self.log.active.size]
        kept = 0
        for position, batch in self.log.active.walk(0):
            if batch.last_offset < flushed:
                kept = position + batch.size
        path.write_bytes(data[: max(kept, len(data) - lost)] + nonsense)
        self._reopen_after_crash()
        assert flushed <= self.log.log_end_offset <= self.end
        self._shrunk()

    def _reopen_after_crash(self) -> None:
        point = self.log.recovery_point
        self.log.discard()
        self.log = self.opener(recovery_point=point, log_start_offset=self.start)
        self.last_idempotent = None

    @invariant()
    def holds_what_was_acknowledged(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.log_end_offset == self.end
        assert self.log.log_start_offset == self.start
        assert contents(self.log) == [(offset, self.model[offset]) for offset in range(self.start, self.end)]
        check_indexes(self.log)


LogMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLog = LogMachine.TestCase
