"""Building and reading records, against golden bytes and against kafka-python's own classes, both ways."""

import contextlib
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    crc_matches,
    read_header,
)
from odradek_protocol.records.build import NewRecord, build_batch, recompress
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType, control_record, read_control_type, read_coordinator_epoch
from odradek_protocol.records.read import Record, read_records, scan

from .kafka_records import DefaultRecordBatchBuilder, MemoryRecords

NAMES = st.text(max_size=20).map(str.encode)
VALUES = st.none() | st.binary(max_size=200)
TIMESTAMPS = st.integers(-1, 1 << 42)

new_records = st.builds(
    NewRecord,
    VALUES,
    VALUES,
    timestamp_ms=TIMESTAMPS,
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=3),
)

GOLDEN = bytes.fromhex(
    "0000000000000005 0000004c 00000002 02 8c028b17 0000"
    "00000001 000000000000000a 0000000000000014 ffffffffffffffff ffff ffffffff 00000002"
    "1c 00 00 00 02 6b 04 7631 02 02 68 04 6876"
    "16 00 14 02 01 01 04 02 61 01 00 00"
)


def fields(record: Record | NewRecord) -> tuple[object, ...]:
    return record.timestamp_ms, record.key, record.value, [tuple(header) for header in record.headers]


def raw_batch(records: bytes, count: int, last_offset_delta: int, attributes: int = 0) -> bytearray:
    """A batch around records that no builder makes."""
    length = HEADER_SIZE - 12 + len(records)
    header = struct.pack(">qiibIhiqqqhii", 0, length, 0, 2, 0, attributes, last_offset_delta, 0, 0, -1, -1, -1, count)
    return bytearray(header + records)


def read_all(batch: bytes | bytearray) -> Iterator[list[object]]:
    """What each way of reading gives."""
    yield list(read_records(memoryview(batch), limit=1 << 20))
    yield list(scan(batch, limit=1 << 20))


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=60)
@given(records=st.lists(new_records, min_size=1, max_size=20), base_offset=st.integers(0, 1 << 50))
def test_what_is_built_is_read(codec: Codec, records: list[NewRecord], base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, codec=codec)
    header = read_header(batch)
    assert crc_matches(memoryview(batch), 0, header)
    assert header.max_timestamp == max(record.timestamp_ms for record in records)
    again = list(read_records(memoryview(batch)))
    assert [fields(record) for record in again] == [fields(record) for record in records]
    assert [record.offset for record in again] == list(range(base_offset, base_offset + len(records)))
    assert list(scan(batch)) == [
        (delta, record.timestamp_ms, record.key is not None) for delta, record in enumerate(records)
    ]


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=60)
@given(records=st.lists(new_records, min_size=1, max_size=20), transactional=st.booleans())
def test_kafka_python_reads_what_is_built(codec: Codec, records: list[NewRecord], transactional: bool) -> None:
    batch = build_batch(
        records,
        base_offset=3,
        leader_epoch=4,
        codec=codec,
        producer_id=9,
        producer_epoch=1,
        base_sequence=6,
        attributes=TRANSACTIONAL if transactional else 0,
    )
    theirs = MemoryRecords(bytes(batch)).next_batch()
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.leader_epoch, theirs.compression_type) == (3, 4, codec)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (9, 1, 6)
    assert theirs.is_transactional == transactional
    assert [
        (record.offset, record.timestamp, record.key, record.value, [(k.encode(), v) for k, v in record.headers])
        for record in theirs
    ] == [(3 + delta, *fields(record)) for delta, record in enumerate(records)]


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=60)
@given(
    records=st.lists(new_records, min_size=1, max_size=20),
    sequence=st.integers(-1, 0x7FFFFFFF),
    transactional=st.booleans(),
)
def test_what_kafka_python_builds_is_read(
    codec: Codec, records: list[NewRecord], sequence: int, transactional: bool
) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=9,
        producer_epoch=1,
        base_sequence=sequence,
        batch_size=1 << 20,
    )
    for delta, record in enumerate(records):
        headers = [(name.decode(), value) for name, value in record.headers]
        assert builder.append(delta, record.timestamp_ms, record.key, record.value, headers) is not None
    batch = memoryview(bytes(builder.build()))
    header = read_header(batch)
    assert crc_matches(batch, 0, header)
    assert (header.base_sequence, header.is_transactional) == (sequence, transactional)
    assert [fields(record) for record in read_records(batch)] == [fields(record) for record in records]


def test_golden_bytes() -> None:
    records = [
        NewRecord(b"k", b"v1", timestamp_ms=10, headers=[(b"h", b"hv")]),
        NewRecord(None, None, timestamp_ms=20, headers=[(b"a", None), (b"", b"")]),
    ]
    assert build_batch(records, base_offset=5, leader_epoch=2).hex(" ", -4) == GOLDEN.hex(" ", -4)
    assert [fields(record) for record in read_records(memoryview(GOLDEN))] == [fields(record) for record in records]


@pytest.mark.parametrize("timestamps", [[0], [-1], [-1, 1700000000000], [5, -1, 0], [1 << 62, 0]])
def test_t30_any_timestamp_is_legal(timestamps: list[int]) -> None:
    batch = build_batch([NewRecord(None, b"", timestamp_ms=timestamp) for timestamp in timestamps])
    assert [record.timestamp_ms for record in read_records(memoryview(batch))] == timestamps
    assert [timestamp for _, timestamp, _ in scan(batch)] == timestamps
    assert read_header(batch).max_timestamp == max(timestamps)


def test_log_append_time_is_one_time_for_all() -> None:
    records = [NewRecord(None, b"", timestamp_ms=timestamp) for timestamp in (30, 50, 40)]
    batch = build_batch(records, attributes=LOG_APPEND_TIME)
    assert [record.timestamp_ms for record in read_records(memoryview(batch))] == [50, 50, 50]


def test_a_batch_has_records() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


def test_a_batch_that_compaction_emptied_has_none() -> None:
    for codec in Codec:
        for found in read_all(raw_batch(b"", 0, 4, attributes=codec)):
            assert found == []


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_recompressing_changes_the_codec_alone(source: Codec, target: Codec) -> None:
    records = [NewRecord(b"k", b"v" * 300, timestamp_ms=time, headers=[(b"h", None)]) for time in (7, 5, 9)]
    old = build_batch(
        records,
        base_offset=8,
        leader_epoch=1,
        codec=source,
        producer_id=4,
        producer_epoch=3,
        base_sequence=2,
        attributes=TRANSACTIONAL,
    )
    new = recompress(memoryview(old + b"the next batch"), target)
    before, after = read_header(old), read_header(new)
    assert (after.codec, after.size) == (target, len(new))
    assert crc_matches(memoryview(new), 0, after)
    assert after.is_transactional
    assert bytes(new[:8] + new[12:17] + new[23:HEADER_SIZE]) == bytes(old[:8] + old[12:17] + old[23:HEADER_SIZE])
    assert before.base_offset == after.base_offset
    assert list(map(repr, read_records(memoryview(new)))) == list(map(repr, read_records(memoryview(old))))


def test_recompressing_is_bounded() -> None:
    bomb = build_batch([NewRecord(None, bytes(1 << 20), timestamp_ms=0)], codec=Codec.ZSTD)
    with pytest.raises(ProtocolError):
        recompress(bomb, Codec.NONE, limit=1 << 20)
    with pytest.raises(ProtocolError):
        recompress(bomb[:-1], Codec.NONE)


@pytest.mark.parametrize("codec", Codec)
def test_records_above_the_limit_are_not_read(codec: Codec) -> None:
    batch = memoryview(build_batch([NewRecord(None, bytes(1000), timestamp_ms=0)], codec=codec))
    size = 1000 + len(b"\xda\x0f\x00\x00\x00\x01\xd0\x0f\x00")
    assert len(list(read_records(batch, limit=size))) == 1
    for read in (read_records, scan):
        with pytest.raises(ProtocolError):
            list(read(batch, limit=size - 1))


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_cut_anywhere_is_an_error(codec: Codec) -> None:
    records = [NewRecord(b"key", b"value" * 5, timestamp_ms=3, headers=[(b"h", b"v")])] * 3
    batch = build_batch(records, codec=codec)
    for end in range(len(batch)):
        cut = batch[:end]
        with pytest.raises(ProtocolError):
            list(read_records(memoryview(cut)))
        if end >= HEADER_SIZE:
            cut[8:12] = (end - 12).to_bytes(4, "big")
            for read in (read_records, scan):
                with pytest.raises(ProtocolError):
                    list(read(memoryview(cut)))


def test_the_next_batch_is_left_alone() -> None:
    batch = build_batch([NewRecord(b"k", b"v", timestamp_ms=1)])
    for found in read_all(batch + batch):
        assert len(found) == 1


@pytest.mark.parametrize("records", [GOLDEN[HEADER_SIZE:] + b"\x00", b"\x00" + GOLDEN[HEADER_SIZE:], b"junk"])
def test_bytes_beside_the_records_are_an_error(records: bytes) -> None:
    for read in (read_records, scan):
        with pytest.raises(ProtocolError):
            list(read(raw_batch(records, 2, 1)))


@pytest.mark.parametrize(
    ("count", "last_offset_delta"), [(-1, 1), (0, 1), (1, 1), (3, 2), (0x7FFFFFFF, 0x7FFFFFFF), (2, 0), (2, -1)]
)
def test_counts_that_do_not_fit_are_an_error(count: int, last_offset_delta: int) -> None:
    for read in (read_records, scan):
        with pytest.raises(ProtocolError):
            list(read(raw_batch(GOLDEN[HEADER_SIZE:], count, last_offset_delta)))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("0c 00 00 00 01 01 00 00", "a length past the end"),
        ("00", "a length of nothing"),
        ("01 00 00 00 01 01 00", "a negative length"),
        ("0a 00 00 00 01 01 00", "a length below the content"),
        ("0e 00 00 00 01 01 00 00", "a length above the content"),
        ("0c 00 00 02 01 01 00", "an offset above the batch's"),
        ("0c 00 00 01 01 01 00", "a negative offset"),
        ("0c 00 00 00 03 01 00", "a key of -2 bytes"),
        ("0c 00 00 00 08 01 00", "a key longer than the record"),
        ("0c 00 00 00 01 03 00", "a value of -2 bytes"),
        ("0c 00 00 00 01 0c 00", "a value longer than the record"),
        ("0c 00 00 00 01 01 01", "-1 headers"),
        ("0c 00 00 00 01 01 02", "a header that is not there"),
        ("10 00 00 00 01 01 02 01 00", "a header without a name"),
        ("10 00 00 00 01 01 02 00 08", "a header value longer than the record"),
        ("02 00 00 00 01 01 00", "fields behind the record's end"),
        ("20 00 ffffffffffffffffffff01 00 01 01 00", "a varint of eleven bytes"),
        ("0c 00 00 00 01 01", "one byte less"),
        ("ff", "half a varint"),
        ("", "nothing"),
    ],
)
def test_a_broken_record_is_an_error(record: str, why: str) -> None:
    with pytest.raises(ProtocolError):
        list(read_records(raw_batch(bytes.fromhex(record), 1, 0)))


@pytest.mark.parametrize(
    "record", ["02 00 00 00 01", "06 00 00 00 01", "06 00 00 00 02 6b", "00", "0c 00 00 02 01 01 00"]
)
def test_a_scan_stays_in_the_record(record: str) -> None:
    with pytest.raises(ProtocolError):
        list(scan(raw_batch(bytes.fromhex(record), 1, 0)))


@given(
    records=st.binary(max_size=80), count=st.integers(-1, 5), last=st.integers(-1, 5), attributes=st.integers(0, 0x7F)
)
def test_only_protocol_errors_escape(records: bytes, count: int, last: int, attributes: int) -> None:
    for batch in (raw_batch(records, count, last, attributes), bytearray(records)):
        for read in (read_records, scan):
            with contextlib.suppress(ProtocolError):
                list(read(memoryview(batch), limit=10000))


@pytest.mark.parametrize("codec", Codec)
@given(at=st.integers(8, 300), value=st.integers(0, 255))
def test_only_protocol_errors_escape_from_a_changed_batch(codec: Codec, at: int, value: int) -> None:
    records = [NewRecord(b"key", b"value" * 5, timestamp_ms=3, headers=[(b"h", b"v")])] * 3
    batch = build_batch(records, codec=codec)
    batch[at % len(batch)] = value
    for read in (read_records, scan):
        with contextlib.suppress(ProtocolError):
            list(read(memoryview(batch), limit=10000))


@pytest.mark.parametrize(("kind", "key"), [(ControlType.ABORT, "00000000"), (ControlType.COMMIT, "00000001")])
def test_t43_control_records(kind: ControlType, key: str) -> None:
    record = control_record(kind, 17, timestamp_ms=5)
    assert (record.key, record.value) == (bytes.fromhex(key), bytes.fromhex("000000000011"))
    batch = build_batch([record], producer_id=8, producer_epoch=1, attributes=TRANSACTIONAL | CONTROL)
    header = read_header(batch)
    assert (header.attributes, header.base_sequence) == (0x30, -1)
    (again,) = read_records(memoryview(batch))
    assert (read_control_type(again.key), read_coordinator_epoch(again.value)) == (kind, 17)
    (theirs,) = MemoryRecords(bytes(batch)).next_batch()
    assert (theirs.abort, theirs.commit) == (kind == ControlType.ABORT, kind == ControlType.COMMIT)


def test_t43_later_versions_of_control_records_are_read() -> None:
    assert read_control_type(bytes.fromhex("0001 0005 ff")) == 5
    assert read_coordinator_epoch(bytes.fromhex("0003 00000009 ff")) == 9


@pytest.mark.parametrize("data", [None, b"", b"\x00\x00\x00", bytes.fromhex("ffff0000"), bytes.fromhex("ffff00000000")])
def test_t43_broken_control_records_are_an_error(data: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        read_control_type(data)
    with pytest.raises(ProtocolError):
        read_coordinator_epoch(data)
