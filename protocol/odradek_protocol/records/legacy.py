"""Messages of formats 0 and 1, which Kafka wrote before RecordBatch v2: reading and writing message sets.

      0  offset      int64    its own; of a wrapper, that of the last message inside
      8  size        int32    bytes behind this field
     12  crc         uint32   CRC-32 of everything behind it
     16  magic       int8     0 or 1
     17  attributes  int8     bits 0-2 codec, 3 log append time (format 1)
     18  timestamp   int64    ms; format 1 only
      .  key         int32 length (-1: null), bytes
      .  value       int32 length (-1: null), bytes

A message set is messages one behind the other; it has no header of its own. A message with a codec is a wrapper: its
value is a compressed message set, which holds no wrappers. Rules:

- Inside a wrapper of format 0 offsets are the messages' own; in format 1 they count from the wrapper's first message,
  and the wrapper's offset, less that of the last message inside, is added. A wrapper with offset 0 is a producer's,
  whatever it holds (librdkafka), and its messages count from 0.
- A wrapper of format 1 with log append time gives its timestamp to all messages inside; otherwise its timestamp is
  the largest of theirs. Format 0 has no timestamps: they are -1.
- There is no zstd, no header, no producer and no transaction. LZ4 in format 0 has a frame whose header checksum is
  computed over the magic number too, against the LZ4 specification; readers of format 0 expect that.
- Whatever the bytes, only ProtocolError is raised; what is made of compressed bytes is bounded by `limit`.

Sources: Kafka documentation, "Old Message Format"; KIP-31 (relative offsets), KIP-32 (timestamps), KIP-57 (LZ4).
"""

import struct
import zlib
from collections.abc import Iterable, Iterator

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import CODEC_MASK, LOG_APPEND_TIME, LOG_OVERHEAD, NO_SEQUENCE, RecordBatch
from odradek_protocol.records.build import NO_HEADERS
from odradek_protocol.records.compression import MAX_RECORDS_BYTES, Codec, compress, decompress
from odradek_protocol.records.read import Record
from odradek_protocol.records.xxhash import xxh32
from odradek_protocol.varint import Buffer

__all__ = [
    "MAGIC_0",
    "MAGIC_1",
    "NO_TIMESTAMP",
    "SMALLEST_MESSAGE",
    "Message",
    "build_message_set",
    "iter_messages",
    "message_crc_matches",
    "read_message",
    "read_message_header",
    "read_messages",
]

MAGIC_0 = 0
MAGIC_1 = 1
NO_TIMESTAMP = -1

SMALLEST_MESSAGE = 26
"""Bytes of a message of format 0 without key and value."""
_SMALLEST_1 = 34

_HEAD = struct.Struct(">qiIbb")
_HEAD_1 = struct.Struct(">qiIbbq")
_LENGTH = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")
_CRC = struct.Struct(">I")
_CRC_FROM = 16
_UNKNOWN_COUNT = -1

_LZ4_DESCRIPTOR = 4
"""Where the frame descriptor begins, behind LZ4's magic number."""
_LZ4_CONTENT_SIZE, _LZ4_DICTIONARY_ID = 0x08, 0x01
"""Flags of the descriptor that say that it holds eight, and four bytes more."""


class Message(Record):
    """A record of a message set. `magic` is its own, which Kafka compares with its wrapper's, and `is_valid` is false
    where it comes from a wrapper and its CRC does not match; of others `message_crc_matches` judges.
    """

    __slots__ = ("is_valid", "magic")

    magic: int
    is_valid: bool


def read_message_header(data: Buffer, position: int = 0) -> RecordBatch:
    """What is known of the message at `position` without opening it, as the header of a batch.

    Wrapper or not, it stands at its offset alone: `base_offset` and `last_offset` are equal. `record_count` is -1 for a
    wrapper. Neither the magic nor the CRC is judged, and key and value may lie beyond the end of `data`. Raises
    ProtocolError when the header itself is cut short, or the message claims to be shorter than one.
    """
    if position + SMALLEST_MESSAGE > len(data):
        raise ProtocolError(f"{len(data) - position} bytes are too few for a message")
    offset, length, crc, magic, attributes = _HEAD.unpack_from(data, position)
    size = length + LOG_OVERHEAD
    if size < (_SMALLEST_1 if magic else SMALLEST_MESSAGE):
        raise ProtocolError(f"a message of {size} bytes in format {magic}")
    timestamp = _TIMESTAMP.unpack_from(data, position + 18)[0] if magic else NO_TIMESTAMP
    batch = RecordBatch.__new__(RecordBatch)
    batch.base_offset = offset
    batch.size = size
    batch.partition_leader_epoch = -1
    batch.magic = magic
    batch.crc = crc
    batch.attributes = attributes & (CODEC_MASK | LOG_APPEND_TIME if magic else CODEC_MASK)
    batch.last_offset_delta = 0
    batch.base_timestamp = batch.max_timestamp = timestamp
    batch.producer_id = -1
    batch.producer_epoch = -1
    batch.base_sequence = NO_SEQUENCE
    batch.record_count = _UNKNOWN_COUNT if attributes & CODEC_MASK else 1
    return batch


def iter_messages(data: Buffer) -> Iterator[tuple[int, RecordBatch]]:
    """The position and header of each whole message of a set; an incomplete one at the end is left out.

    Raises ProtocolError at a size that no message has.
    """
    position, end = 0, len(data)
    while position + SMALLEST_MESSAGE <= end:
        message = read_message_header(data, position)
        if position + message.size > end:
            return
        yield position, message
        position += message.size


def message_crc_matches(data: Buffer, position: int, message: RecordBatch) -> bool:
    """Whether the CRC in `message`, which starts at `position`, is that of its bytes."""
    return zlib.crc32(memoryview(data)[position + _CRC_FROM : position + message.size]) == message.crc


def read_message(data: Buffer, position: int = 0) -> Message:
    """The message at `position` as it stands there, be it a wrapper.

    Raises ProtocolError when it is broken.
    """
    header = read_message_header(data, position)
    if position + header.size > len(data):
        raise ProtocolError(f"{len(data) - position} bytes are too few for a message of {header.size}")
    view = memoryview(data)[position : position + header.size]
    key, end = _read_bytes(view, (_HEAD_1 if header.magic else _HEAD).size)
    value, end = _read_bytes(view, end)
    if end != header.size:
        raise ProtocolError(f"{header.size - end} bytes behind a message's value")
    message = Message(header.base_offset, header.max_timestamp, key, value, NO_HEADERS)
    message.magic = header.magic
    message.is_valid = True
    return message


def read_messages(data: Buffer, position: int = 0, *, limit: int = MAX_RECORDS_BYTES) -> list[Message]:
    """The records of the message at `position`: itself, or what it wraps, with their offsets in the log.

    Raises ProtocolError when it is broken, or wraps nothing, wrappers, or more than `limit` bytes. CRCs are not judged.
    """
    header = read_message_header(data, position)
    outer = read_message(data, position)
    if not header.codec:
        return [outer]
    if outer.value is None:
        raise ProtocolError("a wrapper without a value")
    inside = _decompress(header, outer.value, limit)
    messages = []
    for start, inner in iter_messages(inside):
        if inner.codec:
            raise ProtocolError("a wrapper in a wrapper")
        message = read_message(inside, start)
        message.is_valid = message_crc_matches(inside, start, inner)
        if inner.magic and header.is_log_append_time:
            message.timestamp_ms = header.max_timestamp
        messages.append(message)
    if not messages:
        raise ProtocolError("a wrapper with no messages")
    if header.magic:
        _make_offsets_absolute(messages, header.base_offset)
    return messages


def _read_bytes(data: memoryview, position: int) -> tuple[bytes | None, int]:
    start = position + _LENGTH.size
    if start > len(data):
        raise ProtocolError("a message ends in a length")
    length = _LENGTH.unpack_from(data, position)[0]
    if length == -1:
        return None, start
    if not 0 <= length <= len(data) - start:
        raise ProtocolError(f"a field of {length} bytes in a message with {len(data) - start} left")
    return bytes(data[start : start + length]), start + length


def _decompress(header: RecordBatch, value: bytes, limit: int) -> bytes:
    if header.codec == Codec.ZSTD:
        raise ProtocolError(f"zstd in format {header.magic}")
    if header.codec == Codec.LZ4 and header.magic == MAGIC_0:
        value = _with_lz4_checksum(value, broken=False)
    return decompress(header.codec, value, limit)


def _make_offsets_absolute(messages: list[Message], wrapper_offset: int) -> None:
    base = 0
    if wrapper_offset:
        last = messages[-1].offset
        if wrapper_offset < last:
            raise ProtocolError(f"a wrapper at {wrapper_offset} whose last message is at {last}")
        base = wrapper_offset - last
    for message in messages:
        message.offset += base


def build_message_set(
    records: Iterable[Record],
    magic: int,
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    log_append_time: bool = False,
) -> bytes:
    """Write `records` in format `magic`, one behind the other, or in one wrapper where there is a `codec`.

    Offsets and timestamps are the records' own, which ascend where they are wrapped; with `log_append_time` the
    timestamps are marked as the broker's. Headers are left out. `level` as in `compression.compress`. Raises
    ProtocolError for zstd, and ValueError when there is nothing to wrap.
    """
    attributes = LOG_APPEND_TIME if log_append_time and magic else 0
    if not codec:
        return b"".join(
            _message(one.offset, one.timestamp_ms, one.key, one.value, magic, attributes) for one in records
        )
    if codec == Codec.ZSTD:
        raise ProtocolError(f"zstd in format {magic}")
    inside = list(records)
    if not inside:
        raise ValueError("a wrapper holds at least one message")
    base = inside[0].offset if magic else 0
    value = compress(
        codec,
        b"".join(
            _message(one.offset - base, one.timestamp_ms, one.key, one.value, magic, attributes) for one in inside
        ),
        level,
    )
    if codec == Codec.LZ4 and magic == MAGIC_0:
        value = _with_lz4_checksum(value, broken=True)
    newest = max(one.timestamp_ms for one in inside)
    return _message(inside[-1].offset, newest, None, value, magic, attributes | codec)


def _message(
    offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None, magic: int, attributes: int
) -> bytes:
    key_size, value_size = len(key or b""), len(value or b"")
    head = _HEAD_1 if magic else _HEAD
    out = bytearray(head.size + 2 * _LENGTH.size + key_size + value_size)
    fields = (offset, len(out) - LOG_OVERHEAD, 0, magic, attributes)
    if magic:
        _HEAD_1.pack_into(out, 0, *fields, timestamp_ms)
    else:
        _HEAD.pack_into(out, 0, *fields)
    position = head.size
    for part, size in ((key, key_size), (value, value_size)):
        _LENGTH.pack_into(out, position, -1 if part is None else size)
        position += _LENGTH.size
        out[position : position + size] = part or b""
        position += size
    _CRC.pack_into(out, LOG_OVERHEAD, zlib.crc32(memoryview(out)[_CRC_FROM:]))
    return bytes(out)


def _with_lz4_checksum(frame: bytes, *, broken: bool) -> bytes:
    """The LZ4 frame with the checksum of its header that the specification wants, or the broken one of format 0."""
    if len(frame) <= _LZ4_DESCRIPTOR:
        return frame
    flags = frame[_LZ4_DESCRIPTOR]
    end = _LZ4_DESCRIPTOR + 2 + (8 if flags & _LZ4_CONTENT_SIZE else 0) + (4 if flags & _LZ4_DICTIONARY_ID else 0)
    if len(frame) <= end:
        return frame
    checksum = xxh32(frame[0 if broken else _LZ4_DESCRIPTOR : end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]
