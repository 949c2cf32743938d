"""What a round of compaction leaves of a log, rule by rule; `test_compaction_rules` tries them together."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.cleaning import Crash, CrashingFiles, batches, clean, held, make_round
from support.logs import NOW_MS, Opener, check_indexes, marker

from odradek.log.compaction.choice import examine, filthiest
from odradek.log.compaction.cleaner import Cleaner
from odradek.log.compaction.offset_map import SLOT_BYTES, OffsetMap
from odradek.log.compaction.requests import CleanedGroup
from odradek.log.files import Files
from odradek.log.log import Log, Origin
from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import DELETE_HORIZON, LOG_APPEND_TIME
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType

DAY_MS = 86_400_000
CODECS = list(Codec)


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    made = Opener(tmp_path)
    made.config.cleanup_policy = ["compact"]
    return made


@pytest.fixture
def log(opener: Opener) -> Log:
    return opener()


def append(
    log: Log,
    *pairs: tuple[bytes | None, bytes | None],
    timestamp_ms: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
    codec: Codec = Codec.NONE,
    epoch: int = 0,
) -> None:
    """One batch of these keys and values, whose timestamps ascend by a second."""
    records = [
        NewRecord(key, value, timestamp_ms=timestamp_ms + 1000 * number, headers=[(b"h", b"x" * 70)])
        for number, (key, value) in enumerate(pairs)
    ]
    data = build_batch(
        records,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        attributes=attributes,
        codec=codec,
    )
    keyless = any(key is None for key, _ in pairs)
    if keyless:
        log.config.cleanup_policy = ["delete"]  # type: ignore[misc]
    log.append_as_leader(memoryview(data), epoch, NOW_MS, Origin.CLIENT)
    if keyless:
        log.config.cleanup_policy = ["compact"]  # type: ignore[misc]


def end_transaction(log: Log, kind: ControlType, producer_id: int, epoch: int = 0) -> None:
    log.append_as_leader(marker(kind, producer_id, epoch), 0, NOW_MS, Origin.COORDINATOR)


def roll(log: Log) -> None:
    log.roll(NOW_MS)


def offsets(log: Log) -> list[int]:
    return [record.offset for record in held(log)]


class TestKeys:
    def test_the_last_record_of_each_key_stays(self, log: Log) -> None:
        append(log, (b"a", b"1"), (b"b", b"1"))
        append(log, (b"a", b"2"), (b"c", b"1"))
        append(log, (b"b", b"2"))
        roll(log)
        before = {record.offset: record for record in held(log)}
        answer = clean(log)
        assert offsets(log) == [2, 3, 4]
        assert held(log) == [before[offset] for offset in (2, 3, 4)]
        assert answer.end_offset == log.cleaned_offset == 5
        check_indexes(log)

    @pytest.mark.parametrize("codec", CODECS)
    def test_inside_a_batch(self, log: Log, codec: Codec) -> None:
        append(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", b"2"), codec=codec)
        roll(log)
        before = {record.offset: record for record in held(log)}
        clean(log)
        assert held(log) == [before[offset] for offset in (2, 3, 4)]
        (batch, _) = batches(log)[0]
        assert (batch.base_offset, batch.last_offset, batch.codec, batch.record_count) == (0, 4, codec, 3)
        assert batch.max_timestamp == NOW_MS + 4000

    def test_the_largest_timestamp_is_that_of_what_is_left(self, log: Log) -> None:
        append(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), timestamp_ms=NOW_MS)
        append(log, (b"a", b"3"), timestamp_ms=NOW_MS - 5000)
        roll(log)
        clean(log)
        assert [batch.max_timestamp for batch, _ in batches(log)] == [NOW_MS + 1000, NOW_MS - 5000]
        assert log.segments[0].max_timestamp == NOW_MS + 1000

    def test_batches_that_lose_nothing_keep_their_bytes(self, log: Log) -> None:
        append(log, (b"a", b"1"), (b"b", b"1"), codec=Codec.ZSTD)
        append(log, (b"c", b"1"))
        roll(log)
        before = [data for _, data in batches(log)]
        clean(log)
        assert [data for _, data in batches(log)] == before

    def test_records_without_a_key_go(self, log: Log) -> None:
        append(log, (b"a", b"1"), (None, b"1"))
        append(log, (None, b"1"))
        append(log, (b"b", b"1"))
        roll(log)
        clean(log)
        assert offsets(log) == [0, 3]

    def test_the_active_segment_stays_and_counts_for_nothing(self, log: Log) -> None:
        append(log, (b"a", b"1"))
        roll(log)
        append(log, (b"a", b"2"), (b"a", b"3"))
        clean(log)
        assert offsets(log) == [0, 1, 2]

    def test_leader_epochs_stay(self, log: Log) -> None:
        append(log, (b"a", b"1"), epoch=1)
        append(log, (b"b", b"1"), epoch=2)
        append(log, (b"a", b"2"), epoch=5)
        roll(log)
        clean(log)
        assert [record.leader_epoch for record in held(log)] == [2, 5]
        assert log.end_offset_for_epoch(1) == (1, 1)

    def test_the_last_batch_of_the_round_stays_without_records(self, log: Log) -> None:
        append(log, (b"a", b"1"))
        append(log, (None, b"1"), timestamp_ms=NOW_MS + 7)
        roll(log)
        clean(log)
        last, data = batches(log)[-1]
        assert (last.base_offset, last.record_count, last.max_timestamp, len(data)) == (1, 0, NOW_MS + 7, 61)
        assert log.offset_for_timestamp(NOW_MS + 1, 2) is None
        append(log, (b"c", b"1"))
        roll(log)
        clean(log)
        assert [batch.base_offset for batch, _ in batches(log)] == [0, 2]

    def test_log_append_time(self, opener: Opener, log: Log) -> None:
        opener.config.message_timestamp_type = "LogAppendTime"
        append(log, (b"a", b"1"), (b"b", None), timestamp_ms=0)
        append(log, (b"a", b"2"), timestamp_ms=0)
        roll(log)
        clean(log)
        first, _ = batches(log)[0]
        assert first.attributes == LOG_APPEND_TIME | DELETE_HORIZON
        assert [record.timestamp_ms for record in held(log)] == [NOW_MS, NOW_MS]
        found = log.offset_for_timestamp(NOW_MS, 3)
        assert found is not None
        assert (found.offset, found.timestamp) == (1, NOW_MS)


class TestTombstones:
    def test_they_go_when_their_delete_horizon_is_over(self, log: Log) -> None:
        append(log, (b"a", b"1"), (b"b", b"1"))
        append(log, (b"a", None), (b"c", b"1"))
        roll(log)
        before = held(log)
        clean(log, NOW_MS)
        assert held(log) == before[1:]
        batch, _ = batches(log)[1]
        assert batch.attributes & DELETE_HORIZON
        assert batch.base_timestamp == NOW_MS + DAY_MS
        append(log, (b"d", b"1"))
        roll(log)
        clean(log, NOW_MS + DAY_MS - 1)
        assert offsets(log) == [1, 2, 3, 4]
        append(log, (b"e", b"1"))
        roll(log)
        clean(log, NOW_MS + DAY_MS)
        assert held(log)[:2] == [before[1], before[3]]
        assert offsets(log) == [1, 3, 4, 5]

    def test_delete_retention_is_read_when_the_horizon_is_set(self, opener: Opener, log: Log) -> None:
        opener.config.delete_retention_ms = 1000
        append(log, (b"a", None))
        roll(log)
        clean(log)
        opener.config.delete_retention_ms = DAY_MS
        append(log, (b"b", b"1"))
        roll(log)
        clean(log, NOW_MS + 1000)
        assert offsets(log) == [1]

    def test_one_that_is_superseded_goes_at_once(self, log: Log) -> None:
        append(log, (b"a", None))
        append(log, (b"a", b"1"))
        roll(log)
        clean(log)
        assert offsets(log) == [1]


class TestTransactions:
    def test_aborted_records_go_and_the_marker_follows_in_its_time(self, log: Log) -> None:
        append(log, (b"a", b"0"))
        append(log, (b"a", b"1"), producer=(7, 0, 0), attributes=0x10)
        append(log, (b"b", b"1"), producer=(7, 0, 1), attributes=0x10)
        end_transaction(log, ControlType.ABORT, 7)
        append(log, (b"c", b"1"), producer=(7, 0, 2), attributes=0x10)
        end_transaction(log, ControlType.COMMIT, 7)
        roll(log)
        clean(log)
        # The last record of the producer is at 4; what was aborted is gone, and 0 is the last of its key.
        assert offsets(log) == [0, 4]
        assert [batch.base_offset for batch, _ in batches(log)] == [0, 3, 4, 5]
        assert [entry.producer_id for entry in log.segments[0].indexes.aborted.entries] == [7]
        append(log, (b"x", b"1"))
        roll(log)
        clean(log)
        abort, _ = batches(log)[1]
        assert abort.base_timestamp == NOW_MS + DAY_MS
        assert abort.attributes & DELETE_HORIZON
        assert log.segments[0].indexes.aborted.entries == []
        append(log, (b"y", b"1"))
        roll(log)
        clean(log, NOW_MS + DAY_MS)
        assert [batch.base_offset for batch, _ in batches(log)] == [0, 4, 5, 6, 7]

    def test_nothing_from_the_first_unstable_offset_on_is_touched(self, log: Log) -> None:
        append(log, (b"a", b"1"))
        roll(log)
        append(log, (b"a", b"2"))
        append(log, (b"a", b"3"), producer=(7, 0, 0), attributes=0x10)
        roll(log)
        append(log, (b"a", b"4"))
        roll(log)
        clean(log)
        assert offsets(log) == [0, 1, 2, 3]

    def test_the_marker_of_an_abort_may_lie_in_the_active_segment(self, log: Log) -> None:
        append(log, (b"a", b"1"))
        append(log, (b"a", b"2"), producer=(7, 0, 0), attributes=0x10)
        append(log, (b"z", b"1"))
        roll(log)
        end_transaction(log, ControlType.ABORT, 7)
        clean(log)
        assert offsets(log) == [0, 2]
        assert [one.first_offset for one in log.aborted_transactions(0, 4)] == [1]


class TestProducers:
    def test_the_last_sequence_number_outlives_the_records(self, opener: Opener, log: Log) -> None:
        append(log, (b"a", b"1"), (b"b", b"1"), producer=(7, 0, 0))
        append(log, (b"a", b"2"), producer=(7, 0, 2))
        append(log, (b"a", b"3"))
        append(log, (b"b", b"2"))
        roll(log)
        clean(log)
        kept = [(batch.base_offset, batch.base_sequence, batch.record_count) for batch, _ in batches(log)]
        assert kept == [(2, 2, 0), (3, -1, 1), (4, -1, 1)]
        for path in Path(log.directory).glob("*.snapshot"):
            path.unlink()
        log.discard()
        again = opener()
        again.append_as_leader(
            memoryview(
                build_batch(
                    [NewRecord(b"a", b"2", timestamp_ms=NOW_MS)], producer_id=7, producer_epoch=0, base_sequence=3
                )
            ),
            0,
            NOW_MS,
        )
        assert again.log_end_offset == 6


class TestSegments:
    def test_small_ones_are_merged(self, opener: Opener, log: Log) -> None:
        for number in range(6):
            append(log, (b"%d" % number, b"1"))
            roll(log)
        one = log.segments[0].size
        opener.config.segment_bytes = 3 * one
        clean(log)
        assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
        assert offsets(log) == list(range(6))
        check_indexes(log)
        log.close()
        again = opener(clean=True)
        assert offsets(again) == list(range(6))
        assert again.log_end_offset == 6

    def test_but_only_as_far_as_their_indexes_fit(self, opener: Opener, log: Log) -> None:
        opener.config.index_interval_bytes = 0
        for _ in range(4):
            append(log, (b"a%d" % log.log_end_offset, b"1"))
            append(log, (b"b%d" % log.log_end_offset, b"1"))
            roll(log)
        opener.config.segment_index_bytes = 24
        clean(log)
        assert len(log.segments) == 3

    def test_one_that_lost_everything_does_not_hold_up_retention(self, opener: Opener, log: Log) -> None:
        append(log, (b"a", b"1"))
        roll(log)
        append(log, (b"a", b"2"))
        roll(log)
        opener.config.segment_bytes = log.segments[0].size
        clean(log)
        assert [segment.size > 0 for segment in log.segments] == [False, True, False]
        log.increment_log_start_offset(2)
        assert log.delete_old_segments(NOW_MS) == 2

    def test_old_files_stay_for_readers(self, opener: Opener, log: Log) -> None:
        append(log, (b"a", b"1"))
        append(log, (b"a", b"2"))
        roll(log)
        piece = log.read(0, 10_000, 2, at_least_one=True)
        assert piece is not None
        clean(log)
        assert len(piece.read_bytes()) == piece.size
        assert list(Path(log.directory).glob("*.deleted"))
        opener.deletions.run(NOW_MS + 60_000)
        assert not list(Path(log.directory).glob("*.deleted"))


class TestMemory:
    def test_a_round_goes_as_far_as_the_map_holds(self, log: Log) -> None:
        for number in range(40):
            append(log, (b"%d" % (number % 20), b"%d" % number))
        roll(log)
        answer = clean(log, memory_bytes=SLOT_BYTES * 15)
        assert answer.end_offset == 9
        assert offsets(log) == list(range(40))
        ends = [clean(log, memory_bytes=SLOT_BYTES * 15).end_offset for _ in range(3)]
        assert ends == [18, 29, 40]
        assert offsets(log) == list(range(20, 40))

    @pytest.mark.parametrize("memory_bytes", [1 << 20, 24 * 400, 208 * 100])
    def test_the_map_tells_keys_of_any_length_apart(self, memory_bytes: int) -> None:
        keys = [b"k" * length for length in range(100)] + [b"%d" % number for number in range(100)]
        found = OffsetMap(memory_bytes, 0.9, 200)
        for first in range(0, 400, 8):
            some = [keys[number % 200] for number in range(first, first + 8)]
            found.put(some, range(first, first + 8), max(map(len, some)))
        assert len(found) == 200
        assert found.capacity >= 200
        assert found.get(keys, 99) == list(range(200, 400))
        assert sorted(found.offsets()) == list(range(200, 400))
        assert found.get([b"other", b"o" * 50], 50) == [-1, -1]


class TestChoice:
    def test_the_dirtiest_of_those_that_are_due(self, opener: Opener) -> None:
        half, much = opener("half-0"), opener("much-0")
        for log in (half, much):
            append(log, (b"a", b"1"))
            roll(log)
            clean(log)
        append(half, (b"a", b"2"))
        append(much, (b"a", b"2"), (b"a", b"3"), (b"a", b"4"))
        for log in (half, much):
            roll(log)
        candidates = [examine(log, log.log_end_offset, NOW_MS) for log in (half, much)]
        found = [candidate for candidate in candidates if candidate is not None]
        assert [candidate.is_due for candidate in found] == [False, True]
        assert filthiest(found) is found[1]
        opener.config.min_cleanable_dirty_ratio = 0.49
        assert filthiest(found) is found[1]
        opener.config.min_cleanable_dirty_ratio = 0.9
        assert filthiest(found) is None

    def test_max_compaction_lag_forces(self, opener: Opener, log: Log) -> None:
        opener.config.min_cleanable_dirty_ratio = 1.0
        opener.config.max_compaction_lag_ms = 1000
        append(log, (b"a", b"1"))
        roll(log)
        for now_ms, due in ((NOW_MS + 1000, False), (NOW_MS + 1001, True)):
            candidate = examine(log, 1, now_ms)
            assert candidate is not None
            assert candidate.is_due is due

    def test_min_compaction_lag_protects_from_the_first_young_segment_on(self, opener: Opener, log: Log) -> None:
        opener.config.min_compaction_lag_ms = 1000
        for timestamp in (NOW_MS - 1000, NOW_MS - 999, NOW_MS - 5000):
            append(log, (b"a", b"1"), timestamp_ms=timestamp)
            roll(log)
        clean(log)
        assert log.cleaned_offset == 1
        clean(log, NOW_MS + 1)
        assert offsets(log) == [2]

    def test_logs_that_are_left_alone(self, opener: Opener, log: Log) -> None:
        append(log, (b"a", b"1"))
        roll(log)
        log.uncleanable = "it is damaged"
        assert examine(log, 1, NOW_MS) is None
        log.uncleanable = None
        opener.config.cleanup_policy = ["delete"]
        assert examine(log, 1, NOW_MS) is None
        opener.config.cleanup_policy = ["compact", "delete"]
        assert examine(log, 1, NOW_MS) is not None

    def test_a_checkpoint_that_does_not_fit_the_log(self, log: Log) -> None:
        append(log, (b"a", b"1"))
        roll(log)
        log.cleaned_offset = 7
        candidate = examine(log, 1, NOW_MS)
        assert candidate is not None
        assert candidate.first_dirty_offset == 0
        log.cleaned_offset = 0
        log.increment_log_start_offset(1)
        candidate = examine(log, 1, NOW_MS)
        assert candidate is not None
        assert candidate.first_dirty_offset == 1


class TestChangesMeanwhile:
    """The log changes between the request and the answer: new files of what is gone are not put in place."""

    def start(self, log: Log) -> None:
        for number in range(4):
            append(log, (b"a", b"%d" % number))
            roll(log)
        log.config.segment_bytes = 1  # type: ignore[misc]
        self.round, request = make_round(log)
        self.answers = Cleaner(request, Files(), lambda _: None).run()

    def step(self, change: Callable[[], object] = lambda: None) -> bool:
        answer = next(self.answers)
        assert isinstance(answer, CleanedGroup)
        change()
        return self.round.replace(answer.base_offsets, NOW_MS)

    def test_retention(self, log: Log) -> None:
        def shorten() -> None:
            log.increment_log_start_offset(2)
            log.delete_old_segments(NOW_MS)

        self.start(log)
        assert not self.step(shorten)
        self.answers.close()
        assert not list(Path(log.directory).glob("*.cleaned"))
        assert offsets(log) == [2, 3]

    def test_truncation(self, log: Log) -> None:
        self.start(log)
        assert self.step()
        log.cleaned_offset = 4
        log.truncate_to(3)
        assert log.cleaned_offset == 3
        assert self.round.hindrance == "it was truncated or moved"
        assert not self.step()
        assert offsets(log) == [1, 2]

    def test_deletion(self, log: Log) -> None:
        self.start(log)
        log.failed = "it is deleted"
        assert not self.step()

    def test_another_policy(self, opener: Opener, log: Log) -> None:
        self.start(log)
        opener.config.cleanup_policy = ["delete"]
        assert not self.step()


@pytest.mark.parametrize("whole", [False, True], ids=["trusted segments", "everything read again"])
def test_a_crash_at_any_step_leaves_the_old_segments_or_the_new_ones(tmp_path: Path, whole: bool) -> None:
    left = 0
    while True:
        files = CrashingFiles()
        opener = Opener(tmp_path / str(left), files)
        opener.folder.mkdir()
        opener.config.cleanup_policy = ["compact"]
        opener.config.index_interval_bytes = 0
        log = opener()
        for number in range(9):
            append(log, (b"a%d" % (number % 4), b"x" * 40 * number), (b"b", b"%d" % number))
            if number % 2:
                roll(log)
        opener.config.segment_bytes = 1000
        before, log.recovery_point = held(log), log.active.base_offset
        files.left = left
        try:
            clean(log, files=files)
            crashed = False
        except Crash:
            crashed = True
        files.left = None
        log.discard()
        again = opener(recovery_point=0 if whole else 16)
        check_indexes(again)
        assert again.log_end_offset == 18
        found = held(again)
        assert found == [record for record in before if record in found]
        assert {record.key: record for record in found} == {record.key: record for record in before}
        names = [path.name for path in Path(again.directory).iterdir()]
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted", ".tmp"))]
        clean(again)
        kept = [record.key for record in held(again) if record.offset < 16]
        assert len(kept) == len(set(kept))
        again.discard()
        if not crashed:
            break
        left += 1
    assert left > 40


@pytest.mark.parametrize("position", [20, 100], ids=["the CRC", "the records"])
def test_damage_ends_the_round(log: Log, position: int) -> None:
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"))
    roll(log)
    path = Path(log.segments[0].path)
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ProtocolError, match="CRC"):
        clean(log)
    path.write_bytes(data[:-5])
    with pytest.raises(ProtocolError):
        clean(log)
    assert not list(Path(log.directory).glob("*.cleaned"))
