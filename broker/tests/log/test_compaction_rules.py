"""The guarantees of compaction, against the whole history as a plain list: random batches, transactions, tombstones,
rolls and rounds, with crashes at every change of a file, also while a start clears up after another crash.

Whatever happened: a record that is there is the one that was written, at its offset and in its order; everything that
no round has come to is there; who reads committed records from the start arrives at the final state of every key; a
tombstone is there for `delete.retention.ms` after a round first met it; each producer's last sequence number is known.
"""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.cleaning import Crash, CrashingFiles, Held, batches, clean, held
from support.logs import NOW_MS, Opener, check_indexes, marker

from odradek.log.compaction.offset_map import SLOT_BYTES
from odradek.log.log import Origin
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType
from odradek_protocol.records.control import read_control_type as control_type
from odradek_protocol.records.read import read_records

TRANSACTIONAL = 0x10
RETENTION_MS = 1000
IDEMPOTENT_ID = 1
TRANSACTIONAL_IDS = (11, 12)


class CompactionMachine(RuleBasedStateMachine):
    """`history` is everything that was ever appended, `owner` the open or ended transaction of an offset's record."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.files = CrashingFiles()
        self.opener = Opener(self.folder, self.files)
        self.opener.config.cleanup_policy = ["compact"]
        self.opener.config.segment_bytes = 700
        self.opener.config.delete_retention_ms = RETENTION_MS
        self.history: list[Held] = []
        self.owner: dict[int, int] = {}
        self.aborted: set[int] = set()
        self.open: dict[int, int] = {}
        self.transactions = 0
        self.sequences: dict[int, int] = {}
        self.met: dict[int, int] = {}
        """When a round first met a tombstone, by its offset."""
        self.now_ms = NOW_MS
        self.rounds_end = 0
        self.epoch = 0

    @initialize()
    def make(self) -> None:
        self.log = self.opener()

    def teardown(self) -> None:
        self.log.discard()
        shutil.rmtree(self.folder)

    # -- appending --------------------------------------------------------------------------------------------------

    @rule(
        keys=st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"long" * 20]), min_size=1, max_size=5),
        tombstones=st.integers(0, 31),
        producer_id=st.sampled_from([-1, -1, IDEMPOTENT_ID, *TRANSACTIONAL_IDS]),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.ZSTD]),
        size=st.integers(0, 40),
    )
    def append(self, keys: list[bytes], tombstones: int, producer_id: int, codec: Codec, size: int) -> None:
        first = self.log.log_end_offset
        records = [
            NewRecord(
                key,
                None if tombstones >> index & 1 else b"%d" % (first + index) + b"x" * size,
                timestamp_ms=self.now_ms + index,
            )
            for index, key in enumerate(keys)
        ]
        attributes = 0
        if producer_id in TRANSACTIONAL_IDS:
            attributes = TRANSACTIONAL
            if producer_id not in self.open:
                self.transactions += 1
                self.open[producer_id] = self.transactions
        data = build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=self.sequences.get(producer_id, 0) if producer_id >= 0 else -1,
            attributes=attributes,
        )
        self.log.append_as_leader(memoryview(data), self.epoch, self.now_ms)
        if producer_id >= 0:
            self.sequences[producer_id] = self.sequences.get(producer_id, 0) + len(records)
        for offset, record in enumerate(records, first):
            self.history.append(Held(offset, record.key, record.value, record.timestamp_ms, self.epoch, producer_id))
            if attributes:
                self.owner[offset] = self.open[producer_id]

    @precondition(lambda self: self.open)
    @rule(committed=st.booleans(), pick=st.randoms(use_true_random=False))
    def end_transaction(self, committed: bool, pick: object) -> None:
        producer_id = pick.choice(sorted(self.open))  # type: ignore[attr-defined]
        transaction = self.open.pop(producer_id)
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        self.log.append_as_leader(marker(kind, producer_id, 0), self.epoch, self.now_ms, Origin.COORDINATOR)
        if not committed:
            self.aborted.add(transaction)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule(by_ms=st.sampled_from([RETENTION_MS - 1, RETENTION_MS]))
    def time_goes_on(self, by_ms: int) -> None:
        self.now_ms += by_ms

    # -- cleaning ---------------------------------------------------------------------------------------------------

    @rule(slots=st.sampled_from([5, 1 << 16]), segment_bytes=st.sampled_from([300, 700, 2000]))
    def clean(self, slots: int, segment_bytes: int) -> None:
        self.opener.config.segment_bytes = max(segment_bytes, 700)
        self._meet_tombstones(
            clean(self.log, self.now_ms, memory_bytes=SLOT_BYTES * slots, files=self.files).end_offset
        )

    def _meet_tombstones(self, end_offset: int) -> None:
        self.rounds_end = max(self.rounds_end, end_offset)
        for record in self.history:
            if record.value is None and record.offset < self.log.active.base_offset:
                self.met.setdefault(record.offset, self.now_ms)

    @rule(left=st.integers(0, 40), again=st.none() | st.integers(0, 8), whole=st.booleans())
    def crash_while_cleaning(self, left: int, again: int | None, whole: bool) -> None:
        self.files.left = left
        checkpoint = self.log.cleaned_offset
        try:
            end_offset = clean(self.log, self.now_ms, files=self.files).end_offset
        except Crash:
            end_offset = self.log.active.base_offset
        self.files.left = None
        self._meet_tombstones(end_offset)
        self.log.discard()
        point = 0 if whole else self.log.active.base_offset
        if again is not None:
            self.files.left = again
            try:
                self.opener(recovery_point=point).discard()
            except Crash:
                point = 0
            self.files.left = None
        self.log = self.opener(recovery_point=point)
        self.log.cleaned_offset = checkpoint
        names = self.files.names(self.log.directory)
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted", ".tmp"))]

    @rule()
    def start_without_snapshots(self) -> None:
        end, cleaned = self.log.log_end_offset, self.log.cleaned_offset
        self.log.discard()
        for path in Path(self.log.directory).glob("*.snapshot"):
            path.unlink()
        self.log = self.opener()
        self.log.cleaned_offset = cleaned
        assert self.log.log_end_offset == end

    @rule()
    def clean_everything(self) -> None:
        """With every transaction decided and memory enough, only the last record of each key is left."""
        for producer_id in sorted(self.open):
            self.log.append_as_leader(marker(ControlType.COMMIT, producer_id, 0), 0, self.now_ms, Origin.COORDINATOR)
        self.open.clear()
        self.log.roll(self.now_ms)
        self._meet_tombstones(clean(self.log, self.now_ms).end_offset)
        keys = [record.key for record in held(self.log)]
        assert len(keys) == len(set(keys))
        assert not [record for record in held(self.log) if self._was_aborted(record)]

    # -- what holds -------------------------------------------------------------------------------------------------

    def _was_aborted(self, record: Held) -> bool:
        return self.owner.get(record.offset) in self.aborted

    def _final_state(self, records: list[Held]) -> dict[bytes | None, Held]:
        state = {record.key: record for record in records}
        return {key: record for key, record in state.items() if record.value is not None}

    def _committed(self) -> list[Held]:
        """What a consumer of committed records sees, by the aborted transactions that a Fetch reply tells."""
        end = self.log.last_stable_offset(self.log.log_end_offset)
        coming = sorted(self.log.aborted_transactions(0, end), key=lambda one: one.first_offset)
        skipped: set[int] = set()
        seen = []
        for batch, data in batches(self.log):
            if batch.last_offset >= end:
                break
            while coming and coming[0].first_offset <= batch.last_offset:
                skipped.add(coming.pop(0).producer_id)
            if batch.is_control:
                if batch.record_count and control_type(next(read_records(data)).key) == ControlType.ABORT:
                    skipped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipped):
                offsets = {record.offset for record in read_records(data)}
                seen += [record for record in self.history if record.offset in offsets]
        return seen

    @invariant()
    def guarantees_hold(self) -> None:
        if not hasattr(self, "log"):
            return
        there = held(self.log)
        written = {record.offset: record for record in self.history}
        assert there == [written[record.offset] for record in sorted(there)]
        gone = [record for record in self.history if record.offset >= self.rounds_end and record not in there]
        assert all(self._was_aborted(record) and record.offset < self.log.active.base_offset for record in gone)
        stable = self.log.last_stable_offset(self.log.log_end_offset)
        decided = [one for one in self.history if one.offset < stable and not self._was_aborted(one)]
        committed = self._committed()
        assert not [record for record in committed if self._was_aborted(record)]
        assert self._final_state(committed) == self._final_state(decided)
        last = {record.key: record for record in decided}
        offsets = {record.offset for record in there}
        for record in last.values():
            if record.value is None and self.now_ms < self.met.get(record.offset, self.now_ms) + RETENTION_MS:
                assert record.offset in offsets
        for producer_id, sequence in self.sequences.items():
            assert self.log.producers.by_id[producer_id].batches[-1].last_sequence == sequence - 1
        check_indexes(self.log)

    @invariant()
    def every_offset_can_be_read_from(self) -> None:
        if not hasattr(self, "log"):
            return
        last_offsets = [batch.last_offset for batch, _ in batches(self.log)]
        for offset in range(0, self.log.log_end_offset, 3):
            piece = self.log.read(offset, 1, self.log.log_end_offset, at_least_one=True)
            expected = next((last for last in last_offsets if last >= offset), None)
            assert (None if piece is None else piece.next_offset - 1) == expected


CompactionMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30)
TestCompaction = CompactionMachine.TestCase
