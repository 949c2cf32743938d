"""Message sets of formats 0 and 1: layout, offsets and timestamps in wrappers, and that nothing breaks the reader."""

import zlib

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import LOG_APPEND_TIME
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec, compress
from odradek_protocol.records.formats import any_crc_matches, iter_any, read_any, read_any_header
from odradek_protocol.records.legacy import (
    build_message_set,
    iter_messages,
    message_crc_matches,
    read_message_header,
    read_messages,
)
from odradek_protocol.records.read import Record
from odradek_protocol.records.xxhash import xxh32

from .kafka_records import LegacyRecordBatch, LegacyRecordBatchBuilder

CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
RECORDS = [Record(5, 1000, b"k", b"v", ()), Record(6, 3000, None, b"", ()), Record(9, 2000, b"", None, ())]


def told(records: list[Record] | list[object]) -> list[tuple[object, ...]]:
    return [(one.offset, one.timestamp_ms, one.key, one.value) for one in records]  # type: ignore[attr-defined]


def read_all(data: bytes) -> list[tuple[object, ...]]:
    return [row for position, _ in iter_messages(data) for row in told(read_messages(data, position))]


class TestLayout:
    def test_format_0(self) -> None:
        data = build_message_set(RECORDS[:1], 0)
        body = bytes.fromhex("0000 00000001 6b 00000001 76")
        assert data == bytes.fromhex("0000000000000005 00000010") + zlib.crc32(body).to_bytes(4, "big") + body

    def test_format_1(self) -> None:
        data = build_message_set(RECORDS[2:], 1, log_append_time=True)
        body = bytes.fromhex("0108 00000000000007d0 00000000 ffffffff")
        assert data == bytes.fromhex("0000000000000009 00000016") + zlib.crc32(body).to_bytes(4, "big") + body

    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize("magic", [0, 1])
    def test_what_is_written_is_read(self, magic: int, codec: Codec) -> None:
        data = build_message_set(RECORDS, magic, codec=codec)
        expected = told(RECORDS) if magic else [(offset, -1, key, value) for offset, _, key, value in told(RECORDS)]
        assert read_all(data) == expected
        for position, header in iter_messages(data):
            assert message_crc_matches(data, position, header)
        if codec:
            header = read_message_header(data)
            assert (header.last_offset, header.max_timestamp, header.codec) == (9, 3000 if magic else -1, codec)
            assert (header.record_count, header.producer_id) == (-1, -1)

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_kafka_python_reads_and_writes_the_same(self, magic: int, codec: Codec) -> None:
        ours = build_message_set(RECORDS[:1], magic, codec=codec)
        [theirs] = LegacyRecordBatch(memoryview(ours), magic)
        assert (theirs.offset, theirs.key, theirs.value) == (5, b"k", b"v")
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
        for offset, record in enumerate(RECORDS):
            builder.append(offset, record.timestamp_ms, record.key, record.value)
        rows = [(offset, one.timestamp_ms if magic else -1, one.key, one.value) for offset, one in enumerate(RECORDS)]
        assert read_all(bytes(builder.build())) == rows


class TestWrappers:
    def test_offsets_of_format_1_count_from_the_wrapper(self) -> None:
        inside = build_message_set([Record(0, 1, None, b"a", ()), Record(3, 2, None, b"b", ())], 1)
        assert [row[0] for row in read_all(wrapper(1, Codec.GZIP, inside, offset=103))] == [100, 103]

    def test_a_producers_wrapper_at_0(self) -> None:
        inside = build_message_set([Record(7, 1, None, b"a", ()), Record(8, 2, None, b"b", ())], 1)
        assert [row[0] for row in read_all(wrapper(1, Codec.GZIP, inside))] == [7, 8]

    def test_log_append_time_is_the_wrappers(self) -> None:
        inside = build_message_set(RECORDS, 1)
        data = wrapper(1, Codec.GZIP, inside, offset=9, timestamp=77, attributes=LOG_APPEND_TIME)
        assert [row[1] for row in read_all(data)] == [77, 77, 77]

    def test_a_wrong_crc_inside_is_told(self) -> None:
        inside = bytearray(build_message_set(RECORDS, 1))
        inside[12] ^= 1
        data = wrapper(1, Codec.GZIP, bytes(inside), offset=9)
        assert [one.is_valid for one in read_messages(data)] == [False, True, True]

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(lambda: wrapper(1, Codec.GZIP, b""), id="nothing"),
            pytest.param(lambda: wrapper(1, Codec.GZIP, build_message_set(RECORDS, 1)[:-1][:20]), id="cut short"),
            pytest.param(lambda: wrapper(1, Codec.GZIP, wrapper(1, Codec.GZIP, b"")), id="a wrapper"),
            pytest.param(lambda: wrapper(1, Codec.ZSTD, build_message_set(RECORDS, 1)), id="zstd"),
            pytest.param(lambda: wrapper(1, Codec.GZIP, build_message_set(RECORDS, 1), offset=3), id="offset"),
            pytest.param(lambda: wrapper(1, Codec.GZIP, b"", value=None), id="null"),
            pytest.param(lambda: wrapper(1, Codec.GZIP, b"", value=b"nonsense"), id="nonsense"),
        ],
    )
    def test_broken_wrappers(self, data: object) -> None:
        assert callable(data)
        with pytest.raises(ProtocolError):
            read_messages(data())

    def test_a_bomb_is_not_inflated(self) -> None:
        inside = build_message_set([Record(0, 1, None, bytes(1 << 20), ())], 1)
        with pytest.raises(ProtocolError, match="more than 1000 bytes"):
            read_messages(wrapper(1, Codec.GZIP, inside), limit=1000)

    def test_zstd_cannot_be_written(self) -> None:
        with pytest.raises(ProtocolError):
            build_message_set(RECORDS, 1, codec=Codec.ZSTD)


class TestLz4:
    """Format 0 has LZ4 frames whose header checksum covers the magic number too (KAFKA-3160)."""

    def test_checksum_of_format_0_is_the_broken_one(self) -> None:
        frame = value_of(build_message_set(RECORDS, 0, codec=Codec.LZ4))
        assert frame[6] == xxh32(frame[:6]) >> 8 & 0xFF
        with pytest.raises(RuntimeError):
            lz4.frame.decompress(frame)
        assert lz4.frame.decompress(value_of(build_message_set(RECORDS, 1, codec=Codec.LZ4)))

    @pytest.mark.parametrize("sized", [True, False])
    def test_either_checksum_is_read_in_format_0(self, sized: bool) -> None:
        inside = build_message_set(RECORDS, 0)
        right = lz4.frame.compress(inside, store_size=sized)
        end = 14 if sized else 6
        broken = right[:end] + bytes((xxh32(right[:end]) >> 8 & 0xFF,)) + right[end + 1 :]
        for value in (right, broken):
            assert len(read_messages(wrapper(0, Codec.LZ4, b"", value=value))) == 3

    @pytest.mark.parametrize(
        ("data", "expected"),
        [(b"", 0x02CC5D05), (b"abc", 0x32D153FF), (b"Nobody inspects the spammish repetition", 0xE2293B2F)],
    )
    def test_xxh32(self, data: bytes, expected: int) -> None:
        assert xxh32(data) == expected


class TestAnyFormat:
    def test_a_log_of_all_three_formats(self) -> None:

        new = build_batch([NewRecord(b"k", b"v2", timestamp_ms=4000)], base_offset=12)
        data = build_message_set(RECORDS, 0) + build_message_set(RECORDS, 1, codec=Codec.GZIP) + bytes(new)
        found = list(iter_any(data + data[:20]))
        assert [(batch.magic, batch.last_offset) for _, batch in found] == [(0, 5), (0, 6), (0, 9), (1, 9), (2, 12)]
        view = memoryview(data)
        assert all(any_crc_matches(view, position, batch) for position, batch in found)
        records = [one.value for position, batch in found for one in read_any(view[position : position + batch.size])]
        assert records == [b"v", b"", None, b"v", b"", None, b"v2"]


@given(st.binary(max_size=200), st.sampled_from([0, 1]), st.sampled_from([0, 1, 2, 3, 4, 7]))
def test_only_protocol_errors_escape(noise: bytes, magic: int, codec: int) -> None:
    for data in (noise, wrapper(magic, codec, b"", value=noise), noise[:16] + bytes((magic, codec)) + noise[18:]):
        try:
            for position, _ in iter_messages(data):
                read_messages(data, position, limit=1 << 16)
            for position, _ in iter_any(data):
                read_any_header(data, position)
        except ProtocolError:
            pass


def wrapper(
    magic: int,
    codec: int,
    inside: bytes,
    *,
    offset: int = 0,
    timestamp: int = -1,
    attributes: int = 0,
    value: bytes | None = b"",
) -> bytes:
    """A message that holds `inside` compressed, or `value` as it is."""
    held = compress(codec, inside) if value == b"" and codec in (*CODECS, Codec.ZSTD) else value
    checked = bytes((magic, codec | attributes)) + (timestamp.to_bytes(8, "big", signed=True) if magic else b"")
    checked += b"\xff" * 4 + (b"\xff" * 4 if held is None else len(held).to_bytes(4, "big") + held)
    body = zlib.crc32(checked).to_bytes(4, "big") + checked
    return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body


def value_of(message: bytes) -> bytes:
    """The value of a message without a key."""
    return message[(34 if message[16] else 26) :]
