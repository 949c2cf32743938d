"""Between message sets and batches as Kafka 3.9 does it; `compat-tests/test_wire_formats.py` compares with it."""

import pytest

from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import LOG_APPEND_TIME, read_header
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType, control_record
from odradek_protocol.records.conversion import convert_down, convert_up
from odradek_protocol.records.legacy import build_message_set, iter_messages, read_messages
from odradek_protocol.records.read import Record, read_records

RECORDS = [Record(0, 1000, b"k", b"v", ()), Record(1, 3000, None, b"", ()), Record(2, 2000, b"", None, ())]
NEW = [NewRecord(b"k", b"v", timestamp_ms=1000, headers=((b"h", b"x"),)), NewRecord(None, None, timestamp_ms=3000)]
LARGE = 1 << 20


def up(data: bytes, codec: Codec | None = None, *, most: int = LARGE, record: int = LARGE) -> bytearray:
    return convert_up(data, max_message_bytes=most, max_record_bytes=record, codec=codec)


def refusal(data: bytes, *, most: int = LARGE, record: int = LARGE, codec: Codec | None = None) -> Error:
    with pytest.raises(BrokerError) as caught:
        up(data, codec, most=most, record=record)
    return caught.value.error


def down(data: bytes, magic: int, first_offset: int = 0) -> list[tuple[int, int, bytes | None, bytes | None]]:
    out = b"".join(convert_down(data, magic, first_offset))
    return [
        (one.offset, one.timestamp_ms, one.key, one.value)
        for position, _ in iter_messages(out)
        for one in read_messages(out, position)
    ]


class TestUp:
    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_one_batch_of_all(self, magic: int, codec: Codec) -> None:
        batch = up(build_message_set(RECORDS, magic, codec=codec))
        header = read_header(batch)
        assert (header.base_offset, header.record_count, header.codec, header.producer_id) == (0, 3, codec, -1)
        assert (header.base_timestamp, header.max_timestamp) == ((1000, 3000) if magic else (-1, -1))
        read = [(one.offset, one.key, one.value, one.headers) for one in read_records(batch)]
        assert read == [(0, b"k", b"v", ()), (1, None, b"", ()), (2, b"", None, ())]

    def test_the_topics_codec(self) -> None:
        batch = up(build_message_set(RECORDS, 1, codec=Codec.GZIP), Codec.ZSTD)
        assert read_header(batch).codec == Codec.ZSTD
        assert len(list(read_records(batch))) == 3

    def test_log_append_time_is_kept_for_the_log_to_judge(self) -> None:
        batch = up(build_message_set(RECORDS, 1, log_append_time=True))
        assert read_header(batch).attributes == LOG_APPEND_TIME

    def test_limits(self) -> None:
        data = build_message_set(RECORDS, 1)
        size = len(up(data))
        assert refusal(data, most=35) is Error.MESSAGE_TOO_LARGE
        assert len(up(data, most=size)) == size
        assert refusal(build_message_set(RECORDS * 100, 1), most=300) is Error.MESSAGE_TOO_LARGE
        bomb = build_message_set([Record(0, 1, None, bytes(5000), ())], 1, codec=Codec.GZIP)
        assert refusal(bomb, record=4000) is Error.INVALID_RECORD
        assert refusal(bomb, codec=Codec.NONE, most=4000) is Error.MESSAGE_TOO_LARGE
        assert len(up(bomb, record=6000)) < 200
        plain = build_message_set([Record(0, 1, None, bytes(5000), ())], 1)
        assert len(up(plain, record=4000)) > 5000, "what came uncompressed is bounded by the batch's limit"

    def test_refusals(self) -> None:
        plain = build_message_set(RECORDS[:1], 1)
        wrapped = build_message_set(RECORDS, 1, codec=Codec.GZIP)
        damaged = bytearray(plain)
        damaged[-1] ^= 1
        assert refusal(bytes(damaged)) is Error.CORRUPT_MESSAGE
        assert refusal(plain[:-1]) is Error.INVALID_RECORD
        assert refusal(wrapped + wrapped) is Error.INVALID_RECORD
        assert refusal(plain + build_message_set(RECORDS[:1], 0)) is Error.INVALID_RECORD
        assert refusal(plain + bytes(build_batch(NEW))) is Error.INVALID_RECORD


class TestDown:
    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_records_without_headers(self, magic: int, codec: Codec) -> None:
        data = bytes(build_batch(NEW, base_offset=40, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0))
        times = (1000, 3000) if magic else (-1, -1)
        assert down(data, magic) == [(40, times[0], b"k", b"v"), (41, times[1], None, None)]

    def test_uncompressed_records_before_the_wanted_one_are_left_out(self) -> None:
        data = bytes(build_batch(NEW, base_offset=40))
        assert [row[0] for row in down(data, 1, 41)] == [41]
        packed = bytes(build_batch(NEW, base_offset=40, codec=Codec.GZIP))
        assert [row[0] for row in down(packed, 1, 41)] == [40, 41]
        assert down(data, 1, 42) == []

    def test_control_batches_are_left_out(self) -> None:
        marker = build_batch([control_record(ControlType.ABORT, 0, 5)], base_offset=42, attributes=0x30, producer_id=7)
        data = bytes(build_batch(NEW, base_offset=40)) + bytes(marker) + bytes(build_batch(NEW, base_offset=43))
        assert [row[0] for row in down(data, 1)] == [40, 41, 43, 44]
        assert down(bytes(marker), 1) == []

    def test_log_append_time(self) -> None:
        data = bytes(build_batch(NEW, attributes=LOG_APPEND_TIME))
        assert [row[1] for row in down(data, 1)] == [3000, 3000]
        assert all(header.is_log_append_time for _, header in iter_messages(b"".join(convert_down(data, 1, 0))))

    def test_zstd_has_no_older_form(self) -> None:
        data = bytes(build_batch(NEW)) + bytes(build_batch(NEW, base_offset=2, codec=Codec.ZSTD))
        pieces = convert_down(data, 1, 0)
        assert next(pieces)
        with pytest.raises(BrokerError) as caught:
            next(pieces)
        assert caught.value.error is Error.UNSUPPORTED_COMPRESSION_TYPE

    def test_older_formats_stay_and_newer_ones_are_lowered(self) -> None:
        data = build_message_set(RECORDS, 0)
        assert b"".join(convert_down(data, 0, 0)) == b"".join(convert_down(data, 1, 0)) == data
        assert [row[1] for row in down(build_message_set(RECORDS, 1), 0)] == [-1, -1, -1]

    def test_what_is_broken(self) -> None:
        data = bytearray(build_batch(NEW))
        data[70] = 0xFF
        with pytest.raises(BrokerError) as caught:
            list(convert_down(data, 1, 0))
        assert caught.value.error is Error.CORRUPT_MESSAGE
