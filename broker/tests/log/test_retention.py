"""When segments begin, and when they go: by time, size and the log's start, with a clock that the test sets."""

from pathlib import Path

import pytest
from support.batches import batch
from support.logs import NOW_MS, FaultyFiles, Opener, contents, records

from odradek.log.log import Log, Origin
from odradek.log.segment import MAX_RELATIVE_OFFSET
from odradek_protocol.errors import BrokerError, Error

DAY_MS = 86_400_000


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


@pytest.fixture
def log(opener: Opener) -> Log:
    return opener()


def append(log: Log, timestamp_ms: int = NOW_MS, *, now_ms: int = NOW_MS, size: int = 100) -> None:
    log.append_as_leader(records(b"x" * size, timestamp_ms=timestamp_ms), 0, now_ms, Origin.CLIENT)


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


class TestRoll:
    def test_by_size(self, opener: Opener, log: Log) -> None:
        append(log)
        opener.config.segment_bytes = 2 * log.size
        append(log)
        assert bases(log) == [0]
        append(log)
        assert bases(log) == [0, 2]

    def test_by_time_between_records(self, opener: Opener, log: Log) -> None:
        opener.config.segment_ms = DAY_MS
        append(log, NOW_MS)
        append(log, NOW_MS - 5 * DAY_MS)
        append(log, NOW_MS + 3_600_000)
        assert bases(log) == [0]
        append(log, NOW_MS + DAY_MS + 1, now_ms=NOW_MS + DAY_MS)
        assert bases(log) == [0, 3]

    def test_by_time_since_creation_without_timestamps(self, opener: Opener, log: Log) -> None:
        opener.config.segment_ms = DAY_MS
        append(log, -1)
        append(log, -1, now_ms=NOW_MS + DAY_MS)
        assert bases(log) == [0]
        append(log, -1, now_ms=NOW_MS + DAY_MS + 1)
        assert bases(log) == [0, 2]

    def test_jitter_comes_off_the_time(self, opener: Opener, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        opener.config.segment_ms = DAY_MS
        opener.config.segment_jitter_ms = DAY_MS // 2
        monkeypatch.setattr("random.random", lambda: 0.5)
        append(log)
        log.roll(NOW_MS)
        append(log)
        edge = NOW_MS + DAY_MS * 3 // 4
        append(log, edge, now_ms=edge)
        assert bases(log) == [0, 1]
        append(log, edge + 1, now_ms=edge)
        assert bases(log) == [0, 1, 3]

    def test_by_full_index(self, opener: Opener, log: Log) -> None:
        opener.config.index_interval_bytes = 0
        opener.config.segment_index_bytes = 48
        for _ in range(10):
            append(log)
        assert bases(log) == [0, 7]

    def test_by_offset_too_far_from_the_base(self, log: Log) -> None:
        far = MAX_RELATIVE_OFFSET
        for base in (0, far, far + 1):
            log.append_as_follower(memoryview(batch(base_offset=base, timestamps=[NOW_MS])))
        assert bases(log) == [0, far + 1]
        assert [offset for offset, _ in contents(log)] == [0, far, far + 1]

    def test_large_offsets(self, opener: Opener) -> None:
        log = opener("far-0", log_start_offset=2**62)
        append(log)
        log.close()
        assert [offset for offset, _ in contents(opener("far-0", clean=True))] == [2**62]

    def test_asked_for(self, log: Log) -> None:
        log.roll(NOW_MS)
        assert bases(log) == [0]
        append(log)
        log.roll(NOW_MS)
        assert bases(log) == [0, 1]

    @pytest.mark.parametrize("call", ["ftruncate", "rename"])
    def test_that_fails_changes_nothing(self, tmp_path: Path, call: str) -> None:
        files = FaultyFiles()
        log = Opener(tmp_path, files)()
        append(log)
        files.broken = {call}
        with pytest.raises(BrokerError) as caught:
            log.roll(NOW_MS)
        assert caught.value.error is Error.KAFKA_STORAGE_ERROR
        files.broken = set()
        assert bases(log) == [0]
        append(log)
        log.roll(NOW_MS)
        assert bases(log) == [0, 2]


class TestRetention:
    def test_by_time_of_the_newest_record(self, opener: Opener, log: Log) -> None:
        opener.config.retention_ms = 1000
        for timestamp in (0, 500, 900):
            append(log, NOW_MS + timestamp)
            append(log, NOW_MS + timestamp - 400)
            log.roll(NOW_MS)
        assert log.delete_old_segments(NOW_MS + 1000) == 0
        assert log.delete_old_segments(NOW_MS + 1001) == 1
        assert log.delete_old_segments(NOW_MS + 1501) == 1
        assert log.log_start_offset == 4

    def test_expired_active_segment_is_rolled_first(self, opener: Opener, log: Log) -> None:
        opener.config.retention_ms = 1000
        append(log)
        assert log.delete_old_segments(NOW_MS + 1001) == 1
        assert (bases(log), log.log_start_offset, log.log_end_offset, log.size) == ([1], 1, 1, 0)
        assert log.delete_old_segments(NOW_MS + 5000) == 0
        append(log)
        assert [offset for offset, _ in contents(log)] == [1]

    def test_by_size(self, opener: Opener, log: Log) -> None:
        for _ in range(4):
            append(log)
            log.roll(NOW_MS)
        one = log.segments[0].size
        opener.config.retention_bytes = 3 * one + 1
        assert log.delete_old_segments(NOW_MS) == 0
        opener.config.retention_bytes = 3 * one
        assert log.delete_old_segments(NOW_MS) == 1
        assert log.size == 3 * one

    def test_neither_where_the_policy_is_compact(self, opener: Opener, log: Log) -> None:
        opener.config.cleanup_policy = ["compact"]
        opener.config.retention_ms = opener.config.retention_bytes = 0
        append(log)
        log.roll(NOW_MS)
        assert log.delete_old_segments(NOW_MS + DAY_MS) == 0

    def test_unlimited(self, opener: Opener, log: Log) -> None:
        opener.config.retention_ms = opener.config.retention_bytes = -1
        append(log)
        log.roll(NOW_MS)
        assert log.delete_old_segments(NOW_MS + 10_000 * DAY_MS) == 0

    def test_before_the_start_of_the_log(self, opener: Opener, log: Log) -> None:
        opener.config.cleanup_policy = ["compact"]
        for _ in range(4):
            append(log)
            log.roll(NOW_MS)
        log.increment_log_start_offset(2)
        assert log.delete_old_segments(NOW_MS) == 2
        assert bases(log) == [2, 3, 4]

    def test_nothing_above_the_high_watermark(self, opener: Opener, log: Log) -> None:
        opener.config.retention_bytes = 0
        for _ in range(4):
            append(log)
            log.roll(NOW_MS)
        assert log.delete_old_segments(NOW_MS, high_watermark=2) == 2
        assert log.log_start_offset == 2

    def test_seven_days_of_records(self, opener: Opener, log: Log) -> None:
        """Ten days of hourly records, a check every five minutes: seven days are kept, by whole segments."""
        opener.config.segment_ms = DAY_MS
        hour_ms, check_ms = DAY_MS // 24, 300_000
        for now_ms in range(NOW_MS, NOW_MS + 10 * DAY_MS, check_ms):
            if (now_ms - NOW_MS) % hour_ms == 0:
                append(log, now_ms, now_ms=now_ms)
            log.delete_old_segments(now_ms)
            opener.deletions.run(now_ms)
            oldest = NOW_MS + log.log_start_offset * hour_ms
            assert now_ms - oldest <= 7 * DAY_MS + DAY_MS + hour_ms + check_ms
            assert log.log_start_offset == 0 or now_ms - oldest > 6 * DAY_MS
        assert 24 <= log.log_start_offset < 3 * 24
        assert [offset for offset, _ in contents(log)] == list(range(log.log_start_offset, 240))
        assert len(list(Path(log.directory).glob("*.log"))) == len(log.segments)

    def test_files_that_cannot_be_renamed_are_not_the_logs_any_more(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        log = Opener(tmp_path, files)()
        for _ in range(3):
            append(log)
            log.roll(NOW_MS)
        log.increment_log_start_offset(2)
        files.broken = {"rename"}
        with pytest.raises(BrokerError) as raised:
            log.delete_old_segments(NOW_MS)
        assert raised.value.error is Error.KAFKA_STORAGE_ERROR
        assert log.segments[0].base_offset == 2
        assert [offset for offset, _ in contents(log)] == [2]

    def test_files_go_after_the_delay(self, opener: Opener, log: Log) -> None:
        opener.config.retention_bytes = 0
        append(log)
        log.roll(NOW_MS)
        log.delete_old_segments(NOW_MS)
        folder = Path(log.directory)
        assert {path.name for path in folder.glob("*0.*") if ".snapshot" not in path.name} == {
            f"{0:020d}{suffix}.deleted" for suffix in (".log", ".index", ".timeindex")
        }
        opener.deletions.run(NOW_MS + 59_999)
        assert list(folder.glob("*.deleted"))
        opener.deletions.run(NOW_MS + 60_000)
        assert not list(folder.glob("*.deleted"))

    def test_start_behind_the_end(self, log: Log) -> None:
        append(log)
        with pytest.raises(BrokerError) as caught:
            log.increment_log_start_offset(2)
        assert caught.value.error is Error.OFFSET_OUT_OF_RANGE


class TestFollower:
    def test_takes_offsets_and_epochs_as_they_come(self, opener: Opener, log: Log) -> None:
        leader = opener("leader-0")
        for epoch in (0, 0, 3):
            leader.append_as_leader(records(b"a", b"b", timestamp_ms=NOW_MS), epoch, NOW_MS, Origin.CLIENT)
        piece = leader.read(0, 1 << 20, 6, at_least_one=True)
        assert piece is not None
        result = log.append_as_follower(memoryview(piece.read_bytes()))
        assert (result.base_offset, result.last_offset) == (0, 5)
        assert contents(log) == contents(leader)
        assert (log.epochs.epochs, log.epochs.start_offsets) == ([0, 3], [0, 4])

    def test_cut_batch_is_left_out(self, log: Log) -> None:
        data = bytes(batch(b"a", timestamps=[NOW_MS])) + bytes(batch(b"b", base_offset=1, timestamps=[NOW_MS]))
        assert log.append_as_follower(memoryview(data[:-1])).last_offset == 0
        assert log.append_as_follower(memoryview(data[:50])).base_offset == -1

    @pytest.mark.parametrize(
        ("data", "error"),
        [(batch(base_offset=0), Error.OFFSET_OUT_OF_RANGE), (batch(base_offset=1, crc=5), Error.CORRUPT_MESSAGE)],
    )
    def test_refuses(self, log: Log, data: bytearray, error: Error) -> None:
        append(log)
        with pytest.raises(BrokerError) as caught:
            log.append_as_follower(memoryview(data))
        assert caught.value.error is error
        assert log.log_end_offset == 1

    def test_run_over_several_segments(self, opener: Opener, log: Log) -> None:
        opener.config.segment_bytes = 400
        run = b"".join(bytes(batch(b"x" * 100, base_offset=n, timestamps=[NOW_MS])) for n in range(10))
        log.append_as_follower(memoryview(run))
        assert len(log.segments) == 5
        assert [offset for offset, _ in contents(log)] == list(range(10))

    def test_truncation_forgets_epochs_and_producers(self, log: Log) -> None:
        for sequence, epoch in enumerate((0, 0, 4)):
            log.append_as_leader(records(b"v", producer=(2, 0, sequence)), epoch, NOW_MS, Origin.CLIENT)
        log.truncate_to(1)
        assert (log.log_end_offset, log.latest_epoch) == (1, 0)
        assert log.producers.by_id[2].batches[-1].last_sequence == 0
        log.truncate_fully_and_start_at(50)
        assert (log.log_start_offset, log.log_end_offset, log.latest_epoch, len(log.producers)) == (50, 50, -1, 0)
        append(log)
        assert [offset for offset, _ in contents(log)] == [50]
