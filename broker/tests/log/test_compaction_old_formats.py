"""Compaction of segments with messages of formats 0 and 1, which keep their format."""

from pathlib import Path

import pytest
from support.cleaning import clean
from support.logs import EVERYTHING, NOW_MS, Opener, check_indexes

from odradek.log.log import Log
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.formats import iter_any, read_any
from odradek_protocol.records.legacy import build_message_set
from odradek_protocol.records.read import Record

DAY_MS = 86_400_000
KEYS = 7


def records(start: int, count: int) -> list[Record]:
    """Keys in turn; every fifth record is a tombstone, and every eleventh has no key."""
    return [
        Record(
            offset,
            NOW_MS + offset,
            None if offset % 11 == 0 else b"%d" % (offset % KEYS),
            None if offset % 5 == 0 else b"%d" % offset,
            (),
        )
        for offset in range(start, start + count)
    ]


def old_log(opener: Opener, magic: int, codec: Codec) -> Log:
    """Messages and a wrapper of 30 each in two segments, and an active one with a batch."""
    opener.config.cleanup_policy = ["compact"]
    folder = Path(opener.folder) / "t-0"
    folder.mkdir()
    for start in (0, 60):
        plain = build_message_set(records(start, 30), magic)
        wrapper = build_message_set(records(start + 30, 30), magic, codec=codec)
        (folder / f"{start:020d}.log").write_bytes(plain + wrapper)
    log = opener()
    log.roll(NOW_MS)
    return log


def held(log: Log) -> list[tuple[int, int, bytes | None, bytes | None]]:
    found = []
    offset = log.log_start_offset
    while (piece := log.read(offset, EVERYTHING, log.log_end_offset, at_least_one=True)) is not None:
        data = memoryview(piece.read_bytes())
        for position, batch in iter_any(data):
            found += [
                (one.offset, one.timestamp_ms, one.key, one.value)
                for one in read_any(data[position : position + batch.size])
            ]
        offset = piece.next_offset
    return found


def append(log: Log, key: bytes, value: bytes) -> None:
    log.append_as_leader(memoryview(build_batch([NewRecord(key, value, timestamp_ms=NOW_MS)])), 0, NOW_MS)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_the_last_record_of_each_key_stays_in_its_format(tmp_path: Path, magic: int, codec: Codec) -> None:
    log = old_log(Opener(tmp_path), magic, codec)
    append(log, b"3", b"new")
    log.roll(NOW_MS)
    before = {one[0]: one for one in held(log)}
    assert len(before) == 121
    answer = clean(log)
    last = {key: offset for offset, _, key, _ in before.values() if key is not None}
    assert held(log) == [before[offset] for offset in sorted(last.values())]
    assert answer.end_offset == 121
    check_indexes(log)
    for segment in log.segments[:1]:
        data = memoryview(Path(segment.path).read_bytes())
        formats = {(batch.magic, batch.codec) for _, batch in iter_any(data) if batch.magic < 2}
        assert formats == {(magic, codec)}


@pytest.mark.parametrize(("retention_ms", "stays"), [(DAY_MS + 1, True), (DAY_MS, False)])
def test_tombstones_go_by_the_age_of_their_segment(tmp_path: Path, retention_ms: int, stays: bool) -> None:
    opener = Opener(tmp_path)
    log = old_log(opener, 1, Codec.GZIP)
    append(log, b"new", b"1")
    log.roll(NOW_MS)
    for key in (b"newer", b"newest"):
        segment_bytes, opener.config.segment_bytes = opener.config.segment_bytes, 1
        clean(log)
        opener.config.segment_bytes = segment_bytes
        assert 115 in [offset for offset, _, _, value in held(log) if value is None]
        append(log, key, b"1")
        log.roll(NOW_MS)
    opener.config.delete_retention_ms = retention_ms
    for base, modified_ms in ((60, NOW_MS - DAY_MS), (121, NOW_MS)):
        opener.files.set_modified_ms(str(Path(log.directory) / f"{base:020d}.log"), modified_ms)
    clean(log)
    assert (115 in [offset for offset, _, _, value in held(log) if value is None]) is stays


def test_a_message_that_is_damaged_inside_its_wrapper_is_told(tmp_path: Path) -> None:
    log = old_log(Opener(tmp_path), 1, Codec.GZIP)
    path = Path(log.segments[0].path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(Exception, match="CRC"):
        clean(log)
