"""Folders of a Kafka before 0.11: segments with messages of formats 0 and 1, without or with indexes."""

import json
from pathlib import Path

import pytest
from support.logs import EVERYTHING, NOW_MS, Opener, check_indexes, records

from odradek.cli import main
from odradek.log.conversion import convert_slice
from odradek.log.log import Log, Origin
from odradek.log.lookup import Lookup
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.formats import iter_any, read_any
from odradek_protocol.records.legacy import build_message_set
from odradek_protocol.records.read import Record


def old_records(start: int, count: int) -> list[Record]:
    return [Record(offset, NOW_MS + offset, b"k", b"%d" % offset, ()) for offset in range(start, start + count)]


def fill(folder: Path) -> None:
    """Two segments: format 0 with a wrapper, then format 1 with a wrapper; offsets 0 to 199."""
    folder.mkdir()
    first = build_message_set(old_records(0, 60), 0) + build_message_set(old_records(60, 40), 0, codec=Codec.LZ4)
    second = build_message_set(old_records(100, 60), 1) + build_message_set(old_records(160, 40), 1, codec=Codec.GZIP)
    (folder / f"{0:020d}.log").write_bytes(first)
    (folder / f"{100:020d}.log").write_bytes(second)


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    fill(tmp_path / "t-0")
    return Opener(tmp_path)


def contents(log: Log, offset: int = 0) -> list[tuple[int, bytes | None]]:
    found: list[tuple[int, bytes | None]] = []
    while (piece := log.read(offset, 700, log.log_end_offset, at_least_one=True)) is not None:
        data = memoryview(piece.read_bytes())
        for position, batch in iter_any(data):
            found += [(one.offset, one.value) for one in read_any(data[position : position + batch.size])]
        offset = piece.next_offset
    return found


def append(log: Log, value: bytes) -> int:
    return log.append_as_leader(records(value), 3, NOW_MS, Origin.CLIENT).base_offset


EXPECTED = [(offset, b"%d" % offset) for offset in range(200)]


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_read_and_appending_goes_on(opener: Opener, clean: bool) -> None:
    log = opener(clean=clean)
    assert (log.log_start_offset, log.log_end_offset) == (0, 200)
    assert contents(log) == EXPECTED
    assert append(log, b"new") == 200
    assert contents(log) == [*EXPECTED, (200, b"new")]
    check_indexes(log)
    log.close()
    assert contents(opener(clean=True)) == [*EXPECTED, (200, b"new")]


def test_recovery_of_all_formats_in_one_segment(opener: Opener) -> None:
    log = opener()
    append(log, b"new")
    log.discard()
    again = opener()
    assert contents(again) == [*EXPECTED, (200, b"new")]
    assert again.latest_epoch == 3


@pytest.mark.parametrize("position", [9, 13, 17, 28])
def test_a_damaged_message_ends_the_log(opener: Opener, position: int) -> None:
    path = opener.folder / "t-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    start = [at for at, _ in iter_any(bytes(data))][50]
    data[start + position] ^= 0xFF
    path.write_bytes(data)
    log = opener()
    assert contents(log) == EXPECTED[:50]
    assert append(log, b"new") == 50


def test_a_short_message_at_the_end(opener: Opener) -> None:
    path = opener.folder / "t-0" / f"{100:020d}.log"
    path.write_bytes(path.read_bytes() + build_message_set([Record(200, -1, None, None, ())], 0) + b"\0" * 30)
    for clean in (False, True):
        log = opener(clean=clean)
        assert log.log_end_offset == 201
        assert contents(log)[-1] == (200, None)
        log.close()


@pytest.mark.parametrize("offset", [0, 30, 59, 60, 75, 99, 100, 130, 159, 160, 199])
def test_any_offset_is_found(opener: Opener, offset: int) -> None:
    piece = opener().read(offset, EVERYTHING, 200, at_least_one=True)
    assert piece is not None
    data = piece.read_bytes()
    assert offset in [one.offset for one in read_any(data)], "the first batch holds it"


def test_timestamps(opener: Opener) -> None:
    log = opener()
    for offset in (100, 130, 160, 175, 199):
        found = log.offset_for_timestamp(NOW_MS + offset, 200)
        assert found is not None
        assert (found.timestamp, found.offset) == (NOW_MS + offset, offset)
    found = log.offset_for_timestamp(0, 200)
    assert found is not None
    assert found.offset == 100, "format 0 has no timestamps"
    assert log.offset_for_timestamp(NOW_MS + 200, 200) is None
    largest = log.max_timestamp(200)
    assert largest is not None
    assert largest.offset == 199


def test_old_consumers_get_their_format(opener: Opener) -> None:
    log = opener()
    append(log, b"new")
    piece = log.read(100, EVERYTHING, 201, at_least_one=True)
    assert piece is not None
    for magic, times in ((0, {-1}), (1, {NOW_MS + offset for offset in range(100, 200)} | {NOW_MS})):
        data = convert_slice(piece, magic, 100, EVERYTHING)
        batches = list(iter_any(data))
        assert {batch.magic for _, batch in batches} == {magic}
        told = [one for at, batch in batches for one in read_any(data[at : at + batch.size])]
        assert [one.offset for one in told] == list(range(100, 201))
        assert {one.timestamp_ms for one in told} == times
    small = convert_slice(piece, 1, 100, 100)
    assert [batch.last_offset for _, batch in iter_any(small)] == [100, 101]
    assert convert_slice(piece, 1, 100, 1) == small[: len(small) // 2]


def test_zstd_ends_what_an_old_consumer_gets(opener: Opener) -> None:
    log = opener()
    log.append_as_leader(records(b"z", codec=Codec.ZSTD), 3, NOW_MS, Origin.CLIENT)
    piece = log.read(160, EVERYTHING, 201, at_least_one=True)
    assert piece is not None
    assert [batch.last_offset for _, batch in iter_any(convert_slice(piece, 1, 160, EVERYTHING))] == [199]


def test_a_follower_takes_what_its_leader_has(opener: Opener, tmp_path: Path) -> None:
    leader, follower = opener(), opener("u-0")
    for offset in (0, 100):
        piece = leader.read(offset, EVERYTHING, 200, at_least_one=True)
        assert piece is not None
        follower.append_as_follower(memoryview(bytearray(piece.read_bytes())))
    assert contents(follower) == EXPECTED


class TestLookup:
    """The same answers as the log's own, from the files of sealed segments."""

    @pytest.mark.parametrize("timestamp", [0, NOW_MS + 100, NOW_MS + 199, NOW_MS + 200, NOW_MS + 201, None])
    def test_answers(self, opener: Opener, timestamp: int | None) -> None:
        log = opener(clean=True)
        log.roll(NOW_MS)
        batch = build_batch([NewRecord(b"k", b"new", timestamp_ms=NOW_MS + 200)])
        log.append_as_leader(memoryview(batch), 3, NOW_MS, Origin.CLIENT)
        lookup = Lookup(log, timestamp, 201)
        if lookup.needs_files:
            lookup.run()
        expected = log.max_timestamp(201) if timestamp is None else log.offset_for_timestamp(timestamp, 201)
        assert lookup.result() == expected

    def test_sealed_segments_are_read_once_for_their_timestamps(self, opener: Opener) -> None:
        log = opener(clean=True)
        log.roll(NOW_MS)
        late = NOW_MS + 10_000
        first = Lookup(log, late, 200)
        assert first.needs_files
        first.run()
        assert first.result() is None
        assert not Lookup(log, late, 200).needs_files

    def test_segments_that_go_meanwhile(self, opener: Opener) -> None:
        log = opener(clean=True)
        log.roll(NOW_MS)
        lookup = Lookup(log, NOW_MS + 150, 200)
        opener.config.retention_bytes = 1
        log.delete_old_segments(NOW_MS, 200)
        assert [segment.base_offset for segment in log.segments] == [100, 200]
        lookup.run()
        found = lookup.result()
        assert found is not None
        assert found.offset == 150


class TestLogCommand:
    def test_dump_tells_every_record(self, opener: Opener, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        opener().discard()
        assert main(["log", "dump", "--records", "--json", str(tmp_path / "t-0")]) == 0
        entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        found = [(entry["record"], entry["value"].encode()) for entry in entries if "record" in entry]
        assert found == EXPECTED
        assert {entry["magic"] for entry in entries if "magic" in entry} == {0, 1}

    def test_verify_finds_what_a_recovery_cuts_off(
        self, opener: Opener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        opener().discard()
        assert main(["log", "verify", str(tmp_path / "t-0")]) == 0
        last = tmp_path / "t-0" / f"{100:020d}.log"
        last.write_bytes(last.read_bytes()[:-1])
        capsys.readouterr()
        assert main(["log", "verify", "--json", str(last)]) == 1
        damage = json.loads(capsys.readouterr().out)
        assert damage["problem"] == "the file ends within a batch"
        assert opener().log_end_offset == 160
        assert last.stat().st_size == damage["position"]
