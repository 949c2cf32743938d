"""What a start makes of the files: after a crash, with torn tails, nonsense, lost indexes, and after a clean close."""

import shutil
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.batches import batch
from support.logs import EVERYTHING, NOW_MS, FaultyFiles, Opener, check_indexes, contents, records

from odradek.log.log import Log, Origin
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.read import read_records


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


def fill(log: Log, *values: bytes, epoch: int = 0) -> None:
    for number, value in enumerate(values):
        log.append_as_leader(records(value, timestamp_ms=NOW_MS + number), epoch, NOW_MS, Origin.CLIENT)


def values(log: Log) -> list[bytes | None]:
    return [value for _, value in contents(log)]


class TestDamage:
    def test_torn_tail_of_every_length(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"first", b"second", b"third")
        path = Path(log.active.path)
        whole = path.read_bytes()
        edges = [position + batch.size for position, batch in log.active.walk(0)]
        log.discard()
        for length in range(len(whole) + 1):
            shutil.rmtree(path.parent)
            path.parent.mkdir()
            path.write_bytes(whole[:length])
            reopened = opener()
            kept = sum(edge <= length for edge in edges)
            assert values(reopened) == [b"first", b"second", b"third"][:kept]
            assert path.stat().st_size == ([0, *edges])[kept]
            fill(reopened, b"more")
            assert contents(reopened)[-1] == (kept, b"more")
            reopened.discard()

    @pytest.mark.parametrize("nonsense", [b"\0" * 4096, b"\xff" * 4096, bytes(range(256)) * 16])
    def test_nonsense_behind_the_end(self, opener: Opener, nonsense: bytes, caplog: pytest.LogCaptureFixture) -> None:
        log = opener()
        fill(log, b"a", b"b")
        path = Path(log.active.path)
        end = log.active.size
        log.discard()
        with path.open("ab") as file:
            file.write(nonsense)
        reopened = opener()
        assert values(reopened) == [b"a", b"b"]
        assert path.stat().st_size == end
        assert f"{path} is damaged at position {end}" in caplog.text

    def test_nonsense_in_the_middle_ends_the_log_there(self, opener: Opener) -> None:
        opener.config.segment_bytes = 350
        log = opener()
        fill(log, *[b"%d" % number * 60 for number in range(8)])
        second = log.segments[1]
        _, (position, batch) = second.walk(0)
        log.discard()
        path = Path(second.path)
        data = bytearray(path.read_bytes())
        data[position + 70] ^= 1
        path.write_bytes(data)
        reopened = opener()
        assert reopened.log_end_offset == batch.base_offset
        assert [segment.base_offset for segment in reopened.segments] == [0, second.base_offset]
        assert not list(path.parent.glob("0000000000000000000[4-9].*"))
        fill(reopened, b"more")
        assert contents(reopened)[-1] == (batch.base_offset, b"more")

    def test_rest_of_a_failed_write_does_not_come_back(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        opener = Opener(tmp_path, files)
        log = opener()
        run = [batch(b"x", base_offset=offset, timestamps=[NOW_MS]) for offset in range(3)]
        files.write_limit = 2 * len(run[0]) + 1
        with pytest.raises(BrokerError):
            log.append_as_follower(memoryview(b"".join(run)))
        files.write_limit = None
        log.append_as_follower(memoryview(run[0]))
        log.discard()
        assert values(opener()) == [b"x"]

    def test_repeated_offsets_are_nonsense(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a", b"b")
        path = Path(log.active.path)
        log.discard()
        path.write_bytes(path.read_bytes() * 2)
        assert values(opener()) == [b"a", b"b"]

    def test_nothing_before_the_recovery_point_is_read(self, opener: Opener) -> None:
        opener.config.segment_bytes = 250
        log = opener()
        fill(log, *[b"x" * 60] * 8)
        flush = log.prepare_flush()
        flush.run()
        log.flush_done(flush)
        log.discard()
        opener.files = files = FaultyFiles()
        reopened = opener(recovery_point=flush.offset)
        assert files.calls.count("pread") < 12
        assert reopened.log_end_offset == 8

    def test_damage_after_a_clean_close_is_cut_off(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a", b"b")
        log.close()
        path = Path(log.active.path)
        path.write_bytes(path.read_bytes()[:-1])
        assert values(opener(clean=True)) == [b"a"]


class TestIndexes:
    @pytest.mark.parametrize("damage", ["missing", "torn", "nonsense"])
    def test_rebuilt(self, opener: Opener, damage: str) -> None:
        opener.config.segment_bytes = 4000
        log = opener()
        fill(log, *[b"%d" % number * 30 for number in range(100)])
        before = contents(log)
        log.close()
        for suffix in (".index", ".timeindex"):
            for path in Path(log.directory).glob(f"*{suffix}"):
                if damage == "missing":
                    path.unlink()
                elif damage == "torn":
                    path.write_bytes(path.read_bytes()[:-1])
                else:
                    path.write_bytes(b"\xff" * 24)
        reopened = opener(clean=True)
        assert contents(reopened) == before
        assert reopened.max_timestamp(100) == log.max_timestamp(100)
        check_indexes(reopened)

    @pytest.mark.parametrize("entry", [(0, 6), (0, 4000), (1, 1)])
    def test_that_lie_are_rebuilt_when_they_are_asked(self, opener: Opener, entry: tuple[int, int]) -> None:
        """A plausible index of a sealed segment whose positions are no batches'."""
        opener.config.segment_bytes = 5000
        log = opener()
        fill(log, *[b"%d" % number * 30 for number in range(100)])
        before = contents(log)
        log.close()
        for segment in log.segments[:-1]:
            Path(segment.path).with_suffix(".index").write_bytes(struct.pack(">ii", *entry))
        reopened = opener(clean=True)
        for offset, value in before:
            found = reopened.read(offset, 300, 100, at_least_one=True)
            assert found is not None
            assert (found.first_offset, next(iter(read_records(memoryview(found.read_bytes())))).value) == (
                offset,
                value,
            )
        assert contents(reopened) == before

    def test_of_no_segment_are_removed(self, opener: Opener) -> None:
        log = opener()
        log.close()
        orphan = Path(log.directory) / "00000000000000000077.index"
        orphan.write_bytes(b"")
        opener(clean=True)
        assert not orphan.exists()


class TestLeftovers:
    def test_deleted_and_half_cleaned_files_go(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a")
        log.close()
        folder = Path(log.directory)
        names = ("00000000000000000000.log.deleted", "00000000000000000000.log.cleaned", "leader-epoch-checkpoint.tmp")
        for name in names:
            (folder / name).write_bytes(b"x")
        assert values(opener(clean=True)) == [b"a"]
        assert not any((folder / name).exists() for name in names)

    def test_finished_compaction_takes_its_place(self, opener: Opener) -> None:
        opener.config.segment_bytes = 250
        log = opener()
        fill(log, *[b"%d" % number * 60 for number in range(6)])
        first, second, third = log.segments[:3]
        last_of_second = list(second.walk(0))[-1]
        data = second.read(last_of_second[0], last_of_second[1].size)
        log.close()
        (Path(log.directory) / f"{first.base_offset:020d}.log.swap").write_bytes(data)
        reopened = opener(clean=True)
        assert [segment.base_offset for segment in reopened.segments][:2] == [0, third.base_offset]
        assert contents(reopened)[0][0] == last_of_second[1].base_offset

    def test_start_behind_the_end_empties_the_log(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a")
        log.close()
        reopened = opener(clean=True, log_start_offset=9)
        assert (reopened.log_start_offset, reopened.log_end_offset, contents(reopened)) == (9, 9, [])


class TestRestart:
    def test_everything_is_there_again(self, opener: Opener) -> None:
        opener.config.segment_bytes = 400
        log = opener()
        fill(log, *[b"%d" % number * 40 for number in range(20)], epoch=2)
        log.increment_log_start_offset(3)
        before = contents(log)
        log.close()
        reopened = opener(clean=True, log_start_offset=3)
        assert contents(reopened) == before
        assert reopened.latest_epoch == 2
        assert reopened.recovery_point == 20
        check_indexes(reopened)

    def test_epochs_come_back_from_the_batches(self, opener: Opener) -> None:
        log = opener()
        for epoch in (1, 5):
            fill(log, b"a", epoch=epoch)
        log.discard()
        Path(log.epochs.path).unlink()
        reopened = opener()
        assert (reopened.latest_epoch, reopened.end_offset_for_epoch(1)) == (5, (1, 1))

    def test_producers_come_back_without_their_snapshot(self, opener: Opener) -> None:
        opener.config.segment_bytes = 300
        log = opener()
        for sequence in range(10):
            log.append_as_leader(records(b"x" * 40, producer=(3, 0, sequence)), 0, NOW_MS, Origin.CLIENT)
        log.discard()
        for path in Path(log.directory).glob("*.snapshot"):
            path.write_bytes(b"nonsense")
        reopened = opener(recovery_point=8)
        assert reopened.append_as_leader(records(b"x" * 40, producer=(3, 0, 9)), 0, NOW_MS, Origin.CLIENT).duplicate
        assert reopened.append_as_leader(records(b"y", producer=(3, 0, 10)), 0, NOW_MS, Origin.CLIENT).base_offset == 10

    def test_only_snapshots_that_a_recovery_needs_are_kept(self, opener: Opener) -> None:
        opener.config.segment_bytes = 300
        log = opener()
        for sequence in range(30):
            log.append_as_leader(records(b"x" * 40, producer=(3, 0, sequence)), 0, NOW_MS, Origin.CLIENT)
        assert len(list(Path(log.directory).glob("*.snapshot"))) == len(log.segments) - 1
        flush = log.prepare_flush()
        flush.run()
        log.flush_done(flush)
        names = [path.name for path in Path(log.directory).glob("*.snapshot")]
        assert names == [f"{log.active.base_offset:020d}.snapshot"]


class TestFlush:
    def test_failed_fsync_stops_the_log(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        log = Opener(tmp_path, files)()
        fill(log, b"a")
        files.broken = {"fsync"}
        with pytest.raises(BrokerError) as caught:
            log.prepare_flush().run()
        assert caught.value.error is Error.KAFKA_STORAGE_ERROR
        assert log.recovery_point == 0
        files.broken = set()
        for change in (
            lambda: fill(log, b"b"),
            lambda: log.read(0, EVERYTHING, 1, at_least_one=True),
            log.prepare_flush,
        ):
            with pytest.raises(BrokerError) as caught:
                change()
            assert caught.value.error is Error.KAFKA_STORAGE_ERROR

    def test_appends_during_a_flush_are_not_counted(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a", b"b")
        flush = log.prepare_flush()
        fill(log, b"c")
        flush.run()
        log.flush_done(flush)
        assert (log.recovery_point, log.unflushed_messages) == (2, 1)

    def test_flush_before_a_truncation_says_nothing_of_what_came_later(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a", b"b")
        flush = log.prepare_flush()
        log.truncate_to(1)
        fill(log, b"c", b"d")
        flush.run()
        log.flush_done(flush)
        assert log.recovery_point == 0


WRITER = """
    import sys
    from pathlib import Path
    from odradek.log.log import Origin
    from support.logs import NOW_MS, Opener, records

    opener = Opener(Path(sys.argv[1]))
    opener.config.segment_bytes = 5000
    log = opener()
    for number in range(1_000_000):
        data = records(b"%d" % number, b"x" * (number % 97), producer=(1, 0, 2 * number))
        result = log.append_as_leader(data, 0, NOW_MS, Origin.CLIENT)
        print(result.base_offset, flush=True)
"""


class TestUndoneByACrash:
    """What was removed, renamed or cut off comes back when the power fails before it is on the disk."""

    def test_segment_within_the_one_before(self, opener: Opener) -> None:
        log = opener()
        fill(log, b"a", b"b", b"c")
        position, second = list(log.active.walk(0))[1]
        old = Path(log.directory) / f"{1:020d}.log"
        old.write_bytes(log.active.read(position, second.size))
        log.discard()
        assert values(opener()) == [b"a", b"b", b"c"]
        assert not old.exists()

    def test_snapshot_of_records_that_were_cut_off(self, opener: Opener) -> None:
        log = opener()
        log.append_as_leader(records(b"a", b"b", producer=(7, 0, 0)), 0, NOW_MS, Origin.CLIENT)
        log.roll(NOW_MS)
        snapshot = Path(log.directory) / f"{2:020d}.snapshot"
        content = snapshot.read_bytes()
        log.truncate_to(0)
        fill(log, b"c", b"d")
        log.discard()
        snapshot.write_bytes(content)
        log = opener()
        assert log.producers.by_id == {}
        log.close()
        assert opener(clean=True).producers.by_id == {}

    def test_end_of_a_segment_that_was_flushed_before_it_was_sealed(self, tmp_path: Path) -> None:
        """A recovery begins behind it, and believes its files: they are on the disk before there is a next one."""
        files = FaultyFiles()
        log = Opener(tmp_path, files)()
        fill(log, b"a")
        flush = log.prepare_flush()
        flush.run()
        log.flush_done(flush)
        files.calls.clear()
        log.roll(NOW_MS)
        assert files.calls.count("fsync") == 3
        fill(log, b"b")
        files.calls.clear()
        log.roll(NOW_MS)
        assert "fsync" not in files.calls

    def test_truncation_that_fails_half_way(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        log = Opener(tmp_path, files)()
        fill(log, b"a", b"b", b"c")
        flush = log.prepare_flush()
        flush.run()
        log.flush_done(flush)
        files.broken = {"ftruncate"}
        with pytest.raises(BrokerError):
            log.truncate_to(1)
        assert log.failed
        assert log.recovery_point == 1


def test_killed_writer_loses_nothing(opener: Opener) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(opener.folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(2000)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line]
    writer.wait()
    writer.stdout.close()
    log = opener()
    found = contents(log)
    assert acknowledged == [2 * number for number in range(len(acknowledged))]
    assert [offset for offset, _ in found] == list(range(log.log_end_offset))
    assert log.log_end_offset >= 2 * len(acknowledged)
    assert all(value == b"%d" % (offset // 2) for offset, value in found if offset % 2 == 0)
    check_indexes(log)
