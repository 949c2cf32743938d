"""Reading a log: traps T36, T37 and T48, positions with and without memory of earlier reads, files in use."""

from pathlib import Path

import pytest
from support.batches import batch
from support.logs import EVERYTHING, NOW_MS, FaultyFiles, Opener, contents, records

from odradek.log.files import FileCache
from odradek.log.log import Log, LogSlice, Origin
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import iter_batches, read_header


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def opener(tmp_path: Path, files: FaultyFiles) -> Opener:
    return Opener(tmp_path, files)


@pytest.fixture
def log(opener: Opener) -> Log:
    return opener()


def fill(log: Log, batches: int, per_batch: int = 3, size: int = 20, *, epoch: int = 0) -> list[int]:
    """Write batches; gives their sizes."""
    sizes = []
    for number in range(batches):
        data = records(*[b"%d" % number * size] * per_batch, timestamp_ms=NOW_MS + number)
        log.append_as_leader(data, epoch, NOW_MS, Origin.CLIENT)
        sizes.append(len(data))
    return sizes


def offsets(piece: LogSlice | None) -> list[int]:
    assert piece is not None
    data = piece.read_bytes()
    assert len(data) == piece.size == len(piece)
    headers = [header for _, header in iter_batches(data)]
    assert sum(header.size for header in headers) == len(data)
    assert piece.next_offset == headers[-1].last_offset + 1
    assert piece.first_offset == headers[0].base_offset
    return [header.base_offset for header in headers]


class TestExtent:
    def test_first_batch_is_given_whole(self, log: Log) -> None:
        fill(log, 3)
        assert offsets(log.read(0, 1, 9, at_least_one=True)) == [0]
        assert log.read(0, 1, 9, at_least_one=False) is None

    def test_cut_at_the_edge_of_a_batch(self, log: Log) -> None:
        first, second, _ = fill(log, 3)
        assert offsets(log.read(0, first + second, 9, at_least_one=False)) == [0, 3]
        assert offsets(log.read(0, first + second - 1, 9, at_least_one=False)) == [0]
        assert log.read(0, first - 1, 9, at_least_one=False) is None

    def test_offset_inside_a_batch(self, log: Log) -> None:
        fill(log, 3)
        assert offsets(log.read(4, EVERYTHING, 9, at_least_one=True)) == [3, 6]
        assert offsets(log.read(8, EVERYTHING, 9, at_least_one=True)) == [6]

    def test_nothing_at_or_above_the_end(self, log: Log) -> None:
        fill(log, 3)
        assert offsets(log.read(0, EVERYTHING, 6, at_least_one=True)) == [0, 3]
        assert offsets(log.read(0, EVERYTHING, 8, at_least_one=True)) == [0, 3]
        assert log.read(3, EVERYTHING, 3, at_least_one=True) is None
        assert log.read(3, EVERYTHING, 5, at_least_one=True) is None
        assert log.read(9, EVERYTHING, 9, at_least_one=True) is None

    def test_every_limit_and_start(self, log: Log) -> None:
        sizes = fill(log, 40, 2, 30)
        starts = [sum(sizes[:number]) for number in range(41)]
        for first in (0, 1, 7, 39):
            for last in {first + 1, min(first + 2, 40), 40}:
                for limit in range(0, starts[last] - starts[first] + 3, 53):
                    fits = [n for n in range(first, last) if starts[n + 1] - starts[first] <= limit] or [first]
                    piece = log.read(2 * first, limit, 2 * last, at_least_one=True)
                    assert offsets(piece) == [2 * n for n in fits]

    def test_out_of_range(self, log: Log) -> None:
        fill(log, 3)
        log.increment_log_start_offset(4)
        for offset in (-1, 3, 10):
            with pytest.raises(BrokerError) as caught:
                log.read(offset, 1, 9, at_least_one=True)
            assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
        assert offsets(log.read(4, 1, 9, at_least_one=True)) == [3]


class TestSegments:
    def test_reading_on_crosses_segments(self, opener: Opener, log: Log) -> None:
        opener.config.segment_bytes = 500
        fill(log, 20)
        assert len(log.segments) > 3
        assert [offset for offset, _ in contents(log)] == list(range(60))

    def test_a_slice_ends_with_its_segment(self, opener: Opener, log: Log) -> None:
        opener.config.segment_bytes = 500
        fill(log, 20)
        piece = log.read(0, EVERYTHING, 60, at_least_one=True)
        assert piece is not None
        assert piece.next_offset == log.segments[1].base_offset

    def test_sequential_reading_needs_no_search(self, files: FaultyFiles, log: Log) -> None:
        sizes = fill(log, 50)
        assert log.read(0, sizes[0], 150, at_least_one=True) is not None
        files.calls.clear()
        piece = log.read(3, EVERYTHING, 150, at_least_one=True)
        assert piece is not None
        assert piece.next_offset == 150
        assert files.calls == []

    def test_hole_in_the_offsets(self, opener: Opener, log: Log) -> None:
        opener.config.segment_bytes = 300
        for base in (0, 10, 20, 30):
            log.append_as_follower(memoryview(batch(b"v" * 100, base_offset=base, timestamps=[NOW_MS])))
        assert len(log.segments) == 4
        for offset, found in ((0, 0), (1, 10), (15, 20), (21, 30), (30, 30)):
            assert offsets(log.read(offset, EVERYTHING, 31, at_least_one=True)) == [found]
        assert [offset for offset, _ in contents(log)] == [0, 10, 20, 30]

    def test_open_files_are_bounded(self, opener: Opener) -> None:
        opener.cache = FileCache(3)
        opener.config.segment_bytes = 300
        log = opener()
        fill(log, 30)
        contents(log)
        assert len(opener.cache) == 3
        assert sum(segment.handle is not None for segment in log.segments) <= 3
        assert [offset for offset, _ in contents(log)] == list(range(90))

    def test_slice_outlives_its_segment(self, opener: Opener, log: Log) -> None:
        opener.config.file_delete_delay_ms = 0
        fill(log, 3)
        piece = log.read(0, EVERYTHING, 9, at_least_one=True)
        assert piece is not None
        log.truncate_fully_and_start_at(100)
        assert [header.base_offset for _, header in iter_batches(piece.read_bytes())] == [0, 3, 6]

    @pytest.mark.parametrize(("call", "offset"), [("pread", 30), ("peek", 0)])
    def test_failing_disk(self, files: FaultyFiles, log: Log, call: str, offset: int) -> None:
        fill(log, 50, 1, 500)
        files.broken = {call}
        with pytest.raises(BrokerError) as caught:
            log.read(offset, 20_000, 50, at_least_one=True)
        assert caught.value.error is Error.KAFKA_STORAGE_ERROR


class TestByTheIndex:
    """Where a read ends at a batch that the index knows, which it has every 4 KiB, that batch's first bytes will do."""

    def test_large_batches_are_cut_without_a_search(self, files: FaultyFiles, log: Log) -> None:
        sizes = fill(log, 20, 1, 6000)
        start = 0
        while start < 18:
            files.calls.clear()
            piece = log.read(start, sum(sizes[start : start + 3]) - 1, 20, at_least_one=True)
            assert files.calls == ["peek"]
            assert offsets(piece) == [start, start + 1]
            assert piece is not None
            assert piece.in_memory
            start += 2

    def test_small_batches_are_cut_a_little_early(self, files: FaultyFiles, log: Log) -> None:
        sizes = fill(log, 8000, 1, 10)
        limit = 300_000
        files.calls.clear()
        piece = log.read(0, limit, 8000, at_least_one=True)
        assert files.calls == ["peek"]
        assert limit * 63 // 64 < sum(sizes[: len(offsets(piece))]) < limit
        assert [offset for offset, _ in contents(log)] == list(range(8000))

    def test_they_are_not_where_little_is_asked_for(self, log: Log) -> None:
        sizes = fill(log, 1000, 1, 10)
        for limit in range(4000, 5000, 97):
            given = len(offsets(log.read(0, limit, 1000, at_least_one=True)))
            assert sum(sizes[:given]) <= limit < sum(sizes[: given + 1])

    @pytest.mark.parametrize("end_offset", [1, 2, 39, 40])
    def test_what_is_not_committed_is_not_given(self, log: Log, end_offset: int) -> None:
        sizes = fill(log, 20, 2, 3000)
        for limit in (2 * sizes[0], 7 * sizes[0] + 5, 50 * sizes[0]):
            given = log.read(0, limit, end_offset, at_least_one=True)
            fits = min(end_offset // 2, limit // sizes[0])
            assert given is None if not fits else offsets(given) == [2 * number for number in range(fits)]

    def test_the_disk_is_not_waited_for(self, files: FaultyFiles, log: Log) -> None:
        sizes = fill(log, 20, 1, 6000)
        files.cold = True
        piece = log.read(0, sum(sizes[:3]) + 1, 20, at_least_one=True)
        assert offsets(piece) == [0, 1, 2]
        assert piece is not None
        assert piece.in_memory is False


class TestTimestamps:
    def test_first_record_at_or_after(self, opener: Opener, log: Log) -> None:
        opener.config.segment_bytes = 2000
        for number in range(40):
            times = [NOW_MS + 10 * number, NOW_MS + 10 * number + 5]
            data = memoryview(batch(b"a" * 30, b"b" * 30, timestamps=times))
            log.append_as_leader(data, number // 10, NOW_MS, Origin.CLIENT)
        for number in range(80):
            found = log.offset_for_timestamp(NOW_MS + 5 * number - 2, 80)
            assert found == (NOW_MS + 5 * number, number, number // 20)
        assert log.offset_for_timestamp(NOW_MS + 396, 80) is None
        assert log.offset_for_timestamp(NOW_MS + 300, 60) is None
        assert log.offset_for_timestamp(0, 80) == (NOW_MS, 0, 0)

    def test_times_out_of_order(self, log: Log) -> None:
        for timestamp in (50, 10, 70, 20):
            log.append_as_leader(records(b"v", timestamp_ms=NOW_MS + timestamp), 0, NOW_MS, Origin.CLIENT)
        assert log.offset_for_timestamp(NOW_MS + 10, 4) == (NOW_MS + 50, 0, 0)
        assert log.offset_for_timestamp(NOW_MS + 60, 4) == (NOW_MS + 70, 2, 0)
        assert log.max_timestamp(4) == (NOW_MS + 70, 2, 0)
        assert log.max_timestamp(2) is None

    def test_before_the_start_does_not_count(self, log: Log) -> None:
        fill(log, 3)
        log.increment_log_start_offset(4)
        assert log.offset_for_timestamp(0, 9) == (NOW_MS + 1, 4, 0)

    def test_empty_log(self, log: Log) -> None:
        assert log.offset_for_timestamp(0, 0) is None
        assert log.max_timestamp(0) is None

    def test_log_append_time(self, opener: Opener, log: Log) -> None:
        opener.config.message_timestamp_type = "LogAppendTime"
        for step in (1, 2, 2):
            log.append_as_leader(records(b"a", b"b", timestamp_ms=5), 0, NOW_MS + step, Origin.CLIENT)
        assert log.offset_for_timestamp(NOW_MS + 2, 6) == (NOW_MS + 2, 2, 0)
        assert log.max_timestamp(6) == (NOW_MS + 2, 2, 0)

    def test_after_restart(self, opener: Opener, log: Log) -> None:
        opener.config.segment_bytes = 500
        fill(log, 20)
        log.close()
        reopened = opener(clean=True)
        assert reopened.max_timestamp(60) == (NOW_MS + 19, 57, 0)
        assert reopened.offset_for_timestamp(NOW_MS + 7, 60) == (NOW_MS + 7, 21, 0)


class TestEpochs:
    def test_end_of_an_epoch(self, log: Log) -> None:
        for epoch in (1, 1, 4, 6):
            fill(log, 1, epoch=epoch)
        answers = {epoch: log.end_offset_for_epoch(epoch) for epoch in range(-1, 8)}
        assert answers == {
            -1: None,
            0: (0, 0),
            1: (1, 6),
            2: (1, 6),
            3: (1, 6),
            4: (4, 9),
            5: (4, 9),
            6: (6, 12),
            7: None,
        }

    def test_record_keeps_its_epoch(self, log: Log) -> None:
        fill(log, 2, epoch=3)
        piece = log.read(3, EVERYTHING, 6, at_least_one=True)
        assert piece is not None
        assert read_header(piece.read_bytes()).partition_leader_epoch == 3
