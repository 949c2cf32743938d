"""The keys of a batch's records, read without the rest: compaction looks at every record twice, so this is its speed.

`odradek_protocol.records.build` draws a record. Varints of one and two bytes are read in place; values and headers are
passed over. Raises ProtocolError when the records do not fill the bytes that they are in.
"""

from collections.abc import Iterator

from odradek_protocol.errors import ProtocolError
from odradek_protocol.varint import decode_varint, encode_varint

__all__ = ["Place", "largest_timestamp_delta", "scan_keys", "shift_timestamps"]

Place = tuple[int, int, int, bytes | None, bool]
"""Start and end of a record, its offset delta, its key, and whether it is a tombstone: its value is null."""

_NULL = 1
"""The byte that is the varint -1, a null's length."""


def scan_keys(records: bytes, count: int, last_delta: int) -> Iterator[Place]:
    """The places of `count` records, whose offset deltas are at most `last_delta`."""
    position = 0
    try:
        for _ in range(count):
            start = position
            byte = records[position]
            position += 1
            if byte < 0x80:
                end = position + (byte >> 1)
            elif (more := records[position]) < 0x80:
                position += 1
                end = position + ((byte & 0x7F | more << 7) >> 1)
            else:
                length, position = decode_varint(records, start)
                end = position + length
            position += 1
            while records[position] > 0x7F:
                position += 1
            delta = records[position + 1]
            position += 2
            if delta < 0x80:
                delta >>= 1
            elif (more := records[position]) < 0x80:
                position += 1
                delta = (delta & 0x7F | more << 7) >> 1
            else:
                delta, position = decode_varint(records, position - 1)
            size = records[position]
            if size < 0x80:
                size, position = size >> 1 ^ -(size & 1), position + 1
            else:
                size, position = decode_varint(records, position)
            key = None
            if size >= 0:
                key = records[position : position + size]
                position += size
            if position >= end or not 0 <= delta <= last_delta:
                raise ProtocolError(f"the record at {start} is broken")
            yield start, end, delta, key, records[position] == _NULL
            position = end
    except IndexError:
        raise ProtocolError("the records end early") from None
    if position != len(records):
        raise ProtocolError(f"{len(records) - position} bytes behind the last record")


def largest_timestamp_delta(records: bytes) -> int:
    """The largest timestamp delta of records that `scan_keys` has been through."""
    return max(delta for _, _, delta, _ in _timestamp_deltas(records))


def shift_timestamps(records: bytes, shift_ms: int) -> bytes:
    """The same records with `shift_ms` added to each timestamp delta, for another base timestamp.

    They are some that `scan_keys` has been through.
    """
    parts: list[bytes] = []
    for start, behind, delta, end in _timestamp_deltas(records):
        shifted = encode_varint(delta + shift_ms)
        parts += (encode_varint(1 + len(shifted) + end - behind), records[start : start + 1], shifted)
        parts.append(records[behind:end])
    return b"".join(parts)


def _timestamp_deltas(records: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Of each record: where its attributes are, what comes behind its timestamp delta, that delta, and its end."""
    position = 0
    while position < len(records):
        length, position = decode_varint(records, position)
        delta, behind = decode_varint(records, position + 1)
        yield position, behind, delta, position + length
        position += length
