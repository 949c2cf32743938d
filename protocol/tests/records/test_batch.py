"""The header of a batch: read whole, cut and with bytes behind it; stamped in place; checked."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch_size,
    crc_matches,
    iter_batches,
    next_sequence,
    read_header,
    stamp,
    stamp_log_append_time,
)
from odradek_protocol.records.build import NewRecord, build_batch, encode_keyed, wrap_keyed
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.read import read_records

MAX_SEQUENCE = 0x7FFFFFFF

RECORDS = [NewRecord(b"a", b"1", timestamp_ms=1000), NewRecord(None, None, timestamp_ms=990)]


def batch_with_everything() -> bytearray:
    return build_batch(
        RECORDS,
        base_offset=7,
        leader_epoch=3,
        codec=Codec.GZIP,
        producer_id=11,
        producer_epoch=2,
        base_sequence=5,
        attributes=TRANSACTIONAL,
    )


def test_every_field_is_read() -> None:
    data = batch_with_everything()
    header = read_header(data)
    assert (header.base_offset, header.last_offset_delta, header.last_offset, header.record_count) == (7, 1, 8, 2)
    assert (header.size, header.partition_leader_epoch, header.magic) == (len(data), 3, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (11, 2, 5, 6)
    assert (header.codec, header.attributes) == (Codec.GZIP, Codec.GZIP | TRANSACTIONAL)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, False, False)
    assert read_header(build_batch(RECORDS, attributes=CONTROL)).is_control


def test_a_header_is_read_wherever_it_stands() -> None:
    data = batch_with_everything()
    for prefix in (b"", b"x", bytes(100)):
        header = read_header(prefix + data + b"behind", len(prefix))
        assert (header.base_offset, header.size) == (7, len(data))
        assert batch_size(prefix + data, len(prefix)) == len(data)


@pytest.mark.parametrize("end", range(HEADER_SIZE))
def test_a_cut_header_is_an_error(end: int) -> None:
    data = batch_with_everything()
    with pytest.raises(ProtocolError):
        read_header(data[:end])
    assert list(iter_batches(data[:end])) == []
    if end < 12:
        with pytest.raises(ProtocolError):
            batch_size(data[:end])
    else:
        assert batch_size(data[:end]) == len(data)


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, HEADER_SIZE - 12 - 1])
def test_a_length_below_the_header_is_an_error(length: int) -> None:
    data = batch_with_everything()
    data[8:12] = length.to_bytes(4, "big", signed=True)
    for read in (read_header, batch_size, lambda data: list(iter_batches(data))):
        with pytest.raises(ProtocolError):
            read(data)


def test_batches_are_walked_up_to_an_incomplete_one() -> None:
    one, two = build_batch(RECORDS, base_offset=1), build_batch(RECORDS[:1], base_offset=3)
    whole = one + two
    for end in range(len(whole) + 1):
        found = [(position, batch.base_offset) for position, batch in iter_batches(memoryview(whole)[:end])]
        assert found == [(0, 1), (len(one), 3)][: (end >= len(one)) + (end >= len(whole))]
    with pytest.raises(ProtocolError):
        list(iter_batches(whole + bytes(HEADER_SIZE)))


@given(st.binary(max_size=200))
def test_only_protocol_errors_escape(data: bytes) -> None:
    for read in (read_header, batch_size, lambda data: list(iter_batches(data))):
        with contextlib.suppress(ProtocolError):
            read(data)


def test_every_byte_behind_the_crc_is_under_it() -> None:
    data = batch_with_everything()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x40
        if at in range(8, 12):
            continue
        header = read_header(changed)
        assert crc_matches(memoryview(changed), 0, header) == (at < 17)


def test_the_crc_is_that_of_the_batch_alone() -> None:
    data = batch_with_everything()
    whole = memoryview(b"before" + data + b"behind")
    assert crc_matches(whole, 6, read_header(whole, 6))


def test_t26_stamping_leaves_the_crc_right() -> None:
    data = bytearray(b"head") + batch_with_everything()
    stamp(data, 4, 1 << 40, 9)
    header = read_header(data, 4)
    assert (header.base_offset, header.partition_leader_epoch) == (1 << 40, 9)
    assert crc_matches(memoryview(data), 4, header)
    assert [record.offset for record in read_records(memoryview(data)[4:])] == [1 << 40, (1 << 40) + 1]


def test_log_append_time_is_every_records_time() -> None:
    data = bytearray(b"head") + batch_with_everything()
    header = read_header(data, 4)
    stamp_log_append_time(memoryview(data), 4, header, 123456)
    again = read_header(data, 4)
    assert again.is_log_append_time
    assert (again.max_timestamp, again.base_timestamp) == (123456, 1000)
    assert (header.attributes, header.max_timestamp, header.crc) == (again.attributes, 123456, again.crc)
    assert again.attributes == LOG_APPEND_TIME | TRANSACTIONAL | Codec.GZIP
    assert crc_matches(memoryview(data), 4, again)
    assert [record.timestamp_ms for record in read_records(memoryview(data)[4:])] == [123456, 123456]


@pytest.mark.parametrize(
    ("sequence", "records", "expected"),
    [(0, 1, 1), (5, 0, 5), (MAX_SEQUENCE, 0, MAX_SEQUENCE), (MAX_SEQUENCE, 1, 0), (MAX_SEQUENCE - 1, 3, 1)],
)
def test_t33_sequences_wrap(sequence: int, records: int, expected: int) -> None:
    assert next_sequence(sequence, records) == expected


@pytest.mark.parametrize(
    ("base_sequence", "count", "last_sequence"),
    [
        (0, 1, 0),
        (MAX_SEQUENCE, 1, MAX_SEQUENCE),
        (MAX_SEQUENCE, 2, 0),
        (MAX_SEQUENCE - 1, 4, 1),
        (-1, 4, -1),
    ],
)
def test_t33_a_batch_may_span_the_wrap(base_sequence: int, count: int, last_sequence: int) -> None:
    header = read_header(build_batch(RECORDS[:1] * count, base_sequence=base_sequence))
    assert header.last_sequence == last_sequence


@given(
    pairs=st.lists(st.tuples(st.binary(max_size=700), st.none() | st.binary(max_size=700)), min_size=1, max_size=4),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
)
def test_keys_and_values_make_the_batch_that_their_records_make(
    pairs: list[tuple[bytes, bytes | None]], codec: Codec
) -> None:
    body = bytearray()
    encode_keyed(body, 0, pairs)
    made = wrap_keyed(body, len(pairs), 5, codec=codec, producer=(7, 3), attributes=TRANSACTIONAL)
    records = [NewRecord(key, value, timestamp_ms=5) for key, value in pairs]
    assert made == build_batch(records, codec=codec, producer_id=7, producer_epoch=3, attributes=TRANSACTIONAL)
