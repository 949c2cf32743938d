"""The records of a batch: read whole, or scanned for what a check needs.

`build` draws a record. Rules:

- Whatever the bytes, only ProtocolError is raised: when a length, a count or a codec does not fit, and when anything
  is left behind the last record. What came before the fault has been given by then.
- Neither the magic nor the CRC is judged; `batch` does that.
- Time and memory follow the size of the records, and that is bounded by `limit`.
- Keys, values and header parts are bytes of their own: they hold on to no buffer.
"""

from collections.abc import Iterator

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import HEADER_SIZE, RecordBatch, read_header
from odradek_protocol.records.build import NO_HEADERS, Headers
from odradek_protocol.records.compression import MAX_RECORDS_BYTES, decompress
from odradek_protocol.varint import Buffer, decode_varint

__all__ = ["Record", "read_records", "scan"]


class Record:
    """One record. `timestamp_ms` is the batch's where that has log append time, `headers` are (name, value) pairs."""

    __slots__ = ("headers", "key", "offset", "timestamp_ms", "value")

    def __init__(self, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers):
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = headers

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp_ms}, {self.key!r}, {self.value!r}, {self.headers!r})"


def read_records(batch: Buffer, *, limit: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of the batch that `batch` starts with, in their order.

    Raises ProtocolError when the batch is broken, or its records take more than `limit` bytes.
    """
    header = read_header(batch)
    data = _records_of(batch, header, limit)
    position, base_offset, last_delta = 0, header.base_offset, header.last_offset_delta
    base_timestamp, fixed_timestamp = header.base_timestamp, header.is_log_append_time
    try:
        for _ in range(header.record_count):
            end, position = _record_end(data, position)
            timestamp_delta, position = decode_varint(data, position)
            offset_delta, position = decode_varint(data, position)
            if not 0 <= offset_delta <= last_delta:
                raise ProtocolError(f"a record at {offset_delta} in a batch up to {last_delta}")
            key, position = _read_bytes(data, position, end)
            value, position = _read_bytes(data, position, end)
            count, position = decode_varint(data, position)
            headers = NO_HEADERS
            if count:
                headers, position = _read_headers(data, position, end, count)
            if position != end:
                raise ProtocolError(f"a record ends at {position} and not at {end}")
            yield Record(
                base_offset + offset_delta,
                header.max_timestamp if fixed_timestamp else base_timestamp + timestamp_delta,
                key,
                value,
                headers,
            )
    except IndexError:
        raise ProtocolError("the records end early") from None
    _check_end(data, position)


def scan(
    batch: Buffer, *, limit: int = MAX_RECORDS_BYTES, max_record_bytes: int = MAX_RECORDS_BYTES
) -> Iterator[tuple[int, int, bool]]:
    """Offset delta, timestamp in ms, and whether there is a key, of each record: a third of the cost of reading them.

    The timestamp is the record's own even where the batch has log append time. Values and headers are passed over
    unchecked, all else is checked as `read_records` does, and that no record has more than `max_record_bytes`.
    """
    header = read_header(batch)
    data = _records_of(batch, header, limit)
    position, last_delta, base_timestamp = 0, header.last_offset_delta, header.base_timestamp
    try:
        for _ in range(header.record_count):
            end, position = _record_end(data, position)
            if end - position >= max_record_bytes:
                raise ProtocolError(f"a record of more than {max_record_bytes} bytes")
            timestamp_delta, position = decode_varint(data, position)
            offset_delta, position = decode_varint(data, position)
            if not 0 <= offset_delta <= last_delta:
                raise ProtocolError(f"a record at {offset_delta} in a batch up to {last_delta}")
            key_length, position = decode_varint(data, position)
            if key_length < -1 or max(key_length, 0) > end - position:
                raise ProtocolError(f"a key of {key_length} bytes in a record with {end - position} left")
            position = end
            yield offset_delta, base_timestamp + timestamp_delta, key_length >= 0
    except IndexError:
        raise ProtocolError("the records end early") from None
    _check_end(data, position)


def _records_of(batch: Buffer, header: RecordBatch, limit: int) -> bytes:
    if len(batch) < header.size:
        raise ProtocolError(f"{len(batch)} bytes are too few for a batch of {header.size}")
    if header.record_count < 0:
        raise ProtocolError(f"a batch of {header.record_count} records")
    compressed = memoryview(batch)[HEADER_SIZE : header.size]
    if not compressed and header.record_count == 0:
        return b""
    return decompress(header.codec, compressed, limit)


def _record_end(data: bytes, position: int) -> tuple[int, int]:
    """Where the record at `position` ends, and where its timestamp stands."""
    length, position = decode_varint(data, position)
    if not 0 < length <= len(data) - position:
        raise ProtocolError(f"a record of {length} bytes where {len(data) - position} are left")
    return position + length, position + 1


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(data, position)
    if 0 <= length <= end - position:
        return data[position : position + length], position + length
    if length == -1:
        return None, position
    raise ProtocolError(f"a field of {length} bytes in a record with {end - position} left")


def _read_headers(data: bytes, position: int, end: int, count: int) -> tuple[Headers, int]:
    if not 0 <= count <= (end - position) // 2:
        raise ProtocolError(f"{count} headers in a record with {end - position} bytes left")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise ProtocolError("a header without a name")
        value, position = _read_bytes(data, position, end)
        headers.append((name, value))
    return headers, position


def _check_end(data: bytes, position: int) -> None:
    if position != len(data):
        raise ProtocolError(f"{len(data) - position} bytes behind the last record")
