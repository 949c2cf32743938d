"""Record batches from records: for the broker's own topics, its markers, and for changing a batch's codec.

A record, behind the 61 bytes of the header that `batch` draws; all numbers but the attributes are zig-zag varints:

    length            bytes behind this field
    attributes        int8    0: no use is made of it
    timestamp_delta   to the batch's base timestamp
    offset_delta      to the batch's base offset
    key_length, key           length -1: null
    value_length, value       length -1: null
    header_count, each        key_length, key, value_length (-1: null), value

Source: Kafka documentation, "Record"; KIP-98.
"""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from odradek_protocol.records.batch import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    read_header,
    update_crc,
)
from odradek_protocol.records.compression import MAX_RECORDS_BYTES, Codec, compress, decompress
from odradek_protocol.varint import encode_varint, varint_size

__all__ = [
    "NO_HEADERS",
    "Difference",
    "NewRecord",
    "build_batch",
    "encode_alike",
    "encode_keyed",
    "encode_prepared",
    "prepare_keyed",
    "recompress",
    "wrap_keyed",
]

Headers = Sequence[tuple[bytes, bytes | None]]

NO_HEADERS: Headers = ()

_LENGTH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")


class _Varints(dict[int, bytes]):
    """The encodings of nearly every length, count and delta; others are made when they are asked for, and not kept."""

    def __missing__(self, value: int) -> bytes:
        return encode_varint(value)


_VARINTS = _Varints((value, encode_varint(value)) for value in range(-1, 512))
_NULL = _VARINTS[-1]

_DELTAS_END = tuple(1 << 7 * width - 1 for width in range(1, 6))
"""Behind the last offset delta that takes one byte, two, and so on."""


class Difference(NamedTuple):
    """Where records differ that are alike: in an integer of their values or keys.

    `column` is what each of them has at `position`, in a row; they differ in the last `differing` bytes of that only.
    """

    in_value: bool
    position: int
    column: bytes
    differing: int

    @classmethod
    def of(cls, values: Sequence[int], code: str, position: int, *, in_value: bool) -> "Difference":
        """That of integers which `code` writes as `struct` does. struct.error for a value that does not fit."""
        column = struct.pack(f">{len(values)}{code}", *values)
        smallest, largest = min(values), max(values)
        width = len(column) // len(values)
        differing = width if smallest < 0 <= largest else ((smallest ^ largest).bit_length() + 7) // 8
        return cls(in_value, position, column, differing)


class NewRecord:
    """A record that is to be written; it gets its offset from its place in the batch."""

    __slots__ = ("headers", "key", "timestamp_ms", "value")

    def __init__(self, key: bytes | None, value: bytes | None, *, timestamp_ms: int, headers: Headers = NO_HEADERS):
        self.key = key
        self.value = value
        self.timestamp_ms = timestamp_ms
        self.headers = headers


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytearray:
    """Make one batch of `records`, whose offsets follow one another from `base_offset`.

    `attributes` are flags of `batch` (TRANSACTIONAL, CONTROL, LOG_APPEND_TIME: the records then all have the newest
    of their timestamps); the codec's bits are set by `codec`. `level` as in `compression.compress`. Raises ValueError
    when there are no records.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    base_timestamp = max_timestamp = records[0].timestamp_ms
    body = bytearray()
    for offset_delta, record in enumerate(records):
        timestamp = record.timestamp_ms
        max_timestamp = max(max_timestamp, timestamp)
        _append_record(body, record.key, record.value, record.headers, timestamp - base_timestamp, offset_delta)
    return _headed(
        body if codec == Codec.NONE else compress(codec, body, level),
        len(records),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes & ~CODEC_MASK | codec,
        timestamps=(base_timestamp, max_timestamp),
        producer=(producer_id, producer_epoch),
        base_sequence=base_sequence,
    )


def encode_keyed(body: bytearray, first: int, records: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Append keys and values to `body`, which has `first` records already: records without headers, all of one time.

    That is what coordinators store; `wrap_keyed` makes a batch of it.
    """
    for offset_delta, (key, value) in enumerate(records, first):
        _append_record(body, key, value, NO_HEADERS, 0, offset_delta)


def prepare_keyed(key: bytes, value: bytes) -> bytes:
    """What a record of `encode_keyed` has behind its offset delta: key, value, and one byte for no headers."""
    return b"".join((_VARINTS[len(key)], key, _VARINTS[len(value)], value, _VARINTS[0]))


def encode_prepared(body: bytearray, offset_delta: int, prepared: bytes) -> int:
    """Append one record, as `encode_keyed` does, of what `prepare_keyed` gave; where that begins now."""
    delta = _VARINTS[offset_delta]
    body += _VARINTS[2 + len(delta) + len(prepared)]
    body += b"\x00\x00"
    body += delta
    start = len(body)
    body += prepared
    return start


def encode_alike(
    body: bytearray, first: int, count: int, key: bytes, value: bytes, differences: Sequence[Difference]
) -> None:
    """Append `count` records to `body`, as `encode_keyed` does, that differ little from `key` and `value` of one.

    They are laid out as copies of that one, into which the differences are put by column: the work is that of one
    record and of a slice for each byte that differs.
    """
    prepared = prepare_keyed(key, value)
    start = 0
    while start < count:
        width = varint_size(first + start)
        stop = min(count, _DELTAS_END[width - 1] - first)
        row = bytearray()
        prepared_at = encode_prepared(row, first + start, prepared)
        size = len(row)
        rows = row * (stop - start)
        key_at, value_at = prepared_at + len(_VARINTS[len(key)]), size - len(value) - 1
        _put_column(rows, size, prepared_at - width, _deltas(first + start, first + stop), width, width)
        for in_value, position, column, differing in differences:
            each = len(column) // count
            part = column[start * each : stop * each]
            _put_column(rows, size, position + (value_at if in_value else key_at), part, each, differing)
        body += rows
        start = stop


@lru_cache(maxsize=64)
def _deltas(start: int, stop: int) -> bytes:
    """The offset deltas of records, which all take the same number of bytes; who writes many, does so again."""
    return b"".join(map(encode_varint, range(start, stop)))


def _put_column(rows: bytearray, row_size: int, position: int, column: bytes, width: int, differing: int) -> None:
    """Write the last `differing` of `width` bytes of `column` to the same position of each row."""
    for byte in range(width - differing, width):
        rows[position + byte :: row_size] = column[byte::width]


def wrap_keyed(
    body: bytearray,
    count: int,
    timestamp_ms: int,
    *,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int] = (NO_PRODUCER_ID, -1),
    attributes: int = 0,
) -> bytearray:
    """Make one batch of the `count` records that `encode_keyed` and `encode_alike` have put into `body`.

    `producer` is the id and the epoch of one; all else as for `build_batch`.
    """
    if not count:
        raise ValueError("a batch has at least one record")
    return _headed(
        body if codec == Codec.NONE else compress(codec, body),
        count,
        attributes=attributes & ~CODEC_MASK | codec,
        timestamps=(timestamp_ms, timestamp_ms),
        producer=producer,
    )


def _headed(
    payload: bytes | bytearray,
    count: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int,
    timestamps: tuple[int, int],
    producer: tuple[int, int],
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """A batch of `count` records that are encoded: the header, with the CRC, and the payload."""
    batch = bytearray(HEADER_SIZE)
    batch += payload
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        count - 1,
        *timestamps,
        *producer,
        base_sequence,
        count,
    )
    update_crc(batch, 0, len(batch))
    return batch


def recompress(
    batch: memoryview | bytes | bytearray, codec: Codec, level: int | None = None, *, limit: int = MAX_RECORDS_BYTES
) -> bytearray:
    """The same batch with its records compressed by `codec`: for topics whose `compression.type` is not "producer".

    Every field but the length, the codec and the CRC stays what it is. Raises ProtocolError when the records cannot be
    read with the codec that they have, or take more than `limit` bytes.
    """
    header = read_header(batch)
    view = memoryview(batch)[: header.size]
    records = decompress(header.codec, view[HEADER_SIZE:], limit)
    out = bytearray(view[:HEADER_SIZE])
    out += compress(codec, records, level)
    _LENGTH.pack_into(out, 8, len(out) - LOG_OVERHEAD)
    _ATTRIBUTES.pack_into(out, 21, header.attributes & ~CODEC_MASK | codec)
    update_crc(out, 0, len(out))
    return out


def _append_record(
    body: bytearray, key: bytes | None, value: bytes | None, headers: Headers, timestamp_delta: int, offset_delta: int
) -> None:
    varints = _VARINTS
    parts = [
        b"\x00",
        varints[timestamp_delta],
        varints[offset_delta],
        _NULL if key is None else varints[len(key)],
        key or b"",
        _NULL if value is None else varints[len(value)],
        value or b"",
        varints[len(headers)],
    ]
    for name, content in headers:
        parts += (varints[len(name)], name)
        parts += (_NULL,) if content is None else (varints[len(content)], content)
    encoded = b"".join(parts)
    body += varints[len(encoded)]
    body += encoded
