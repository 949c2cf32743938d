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
from odradek_protocol.varint import encode_varint

__all__ = [
    "NO_HEADERS",
    "NewRecord",
    "build_batch",
    "encode_keyed",
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


def wrap_keyed(
    body: bytearray,
    count: int,
    timestamp_ms: int,
    *,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int] = (NO_PRODUCER_ID, -1),
    attributes: int = 0,
) -> bytearray:
    """Make one batch of the `count` records that `encode_keyed` has put into `body`.

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
