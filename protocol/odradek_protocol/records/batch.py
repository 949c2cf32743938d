"""The header of a record batch, read and stamped in place.

A broker handles batches, not records: everything that it has to know stands in the first 61 bytes.

      0  base_offset             int64   stamped by the broker
      8  batch_length            int32   bytes behind this field
     12  partition_leader_epoch  int32   stamped by the broker
     16  magic                   int8    2
     17  crc                     uint32  CRC-32C of everything behind it
     21  attributes              int16   bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon
     23  last_offset_delta       int32
     27  base_timestamp          int64   ms
     35  max_timestamp           int64   ms
     43  producer_id             int64   -1: none
     51  producer_epoch          int16
     53  base_sequence           int32   -1: none
     57  record_count            int32
     61  records

The first two stamped fields lie before the CRC's reach, so giving a batch its offset costs two writes and no second
pass. Source: Kafka documentation, "Record Batch"; KIP-98.
"""

import struct
from collections.abc import Iterator

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.checksum import crc32c

__all__ = [
    "CODEC_MASK",
    "CONTROL",
    "DELETE_HORIZON",
    "HEADER",
    "HEADER_SIZE",
    "LOG_APPEND_TIME",
    "LOG_OVERHEAD",
    "MAGIC",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "TRANSACTIONAL",
    "RecordBatch",
    "batch_size",
    "crc_matches",
    "iter_batches",
    "next_sequence",
    "read_header",
    "stamp",
    "stamp_log_append_time",
    "update_crc",
]

HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""Bytes of base offset and batch length: what has to be read to know how long a batch is."""
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1

HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">i")
_OFFSET = struct.Struct(">q")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMPS = struct.Struct(">qq")

_new_batch = object.__new__
_unpack_header = HEADER.unpack_from
_unpack_length = _LENGTH.unpack_from
_stamp_offset = _OFFSET.pack_into
_stamp_epoch = _LENGTH.pack_into


class RecordBatch:
    """The header fields of one batch. A snapshot: changing it does not change the bytes it was read from."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
    )

    base_offset: int
    size: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """The number of the compression codec; see `compression.Codec`."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 where the batch has none."""
        return next_sequence(self.base_sequence, self.last_offset_delta) if self.base_sequence >= 0 else NO_SEQUENCE


def next_sequence(sequence: int, records: int) -> int:
    """The sequence number `records` behind `sequence`: 0 follows 2147483647."""
    return (sequence + records) & 0x7FFFFFFF


def batch_size(data: bytes | bytearray | memoryview, position: int = 0) -> int:
    """The whole size in bytes of the batch at `position`.

    Raises ProtocolError when fewer than 12 bytes are left or the length is smaller than a header.
    """
    if position + LOG_OVERHEAD > len(data):
        raise ProtocolError(f"{len(data) - position} bytes are too few for a batch")
    size = _unpack_length(data, position + 8)[0] + LOG_OVERHEAD
    if size < HEADER_SIZE:
        raise ProtocolError(f"a batch of {size} bytes is shorter than its header")
    return int(size)


def read_header(data: bytes | bytearray | memoryview, position: int = 0) -> RecordBatch:
    """Read the header at `position`.

    Neither the magic nor the CRC is judged, and the records may lie beyond the end of `data`. Raises ProtocolError
    when the header itself is cut short, or the batch claims to be shorter than a header.
    """
    batch = _new_batch(RecordBatch)
    try:
        fields = _unpack_header(data, position)
    except struct.error:
        raise ProtocolError(f"{len(data) - position} bytes are too few for a batch header") from None
    (
        batch.base_offset,
        length,
        batch.partition_leader_epoch,
        batch.magic,
        batch.crc,
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    ) = fields
    batch.size = size = length + LOG_OVERHEAD
    if size < HEADER_SIZE:
        raise ProtocolError(f"a batch of {size} bytes is shorter than its header")
    return batch


def iter_batches(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, RecordBatch]]:
    """The position and header of each whole batch in `data`; an incomplete one at the end is left out.

    Raises ProtocolError at a length that no batch has.
    """
    position, end = 0, len(data)
    while position + HEADER_SIZE <= end:
        batch = read_header(data, position)
        if position + batch.size > end:
            return
        yield position, batch
        position += batch.size


def crc_matches(data: memoryview, position: int, batch: RecordBatch) -> bool:
    """Whether the CRC in the header of `batch`, which starts at `position`, is that of its bytes."""
    return bool(crc32c(data[position + 21 : position + batch.size]) == batch.crc)


def stamp(data: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write the offset and the leader epoch into the batch at `position`; its CRC stays right."""
    _stamp_offset(data, position, base_offset)
    _stamp_epoch(data, position + 12, leader_epoch)


def finish_copy(batch: bytearray, header: RecordBatch, timestamp_ms: int) -> None:
    """Give a copied batch, whose records have no time of their own, another time, and the CRC that it needs then.

    So does `header`, which is what `read_header` gives for it.
    """
    header.base_timestamp = header.max_timestamp = timestamp_ms
    _TIMESTAMPS.pack_into(batch, 27, timestamp_ms, timestamp_ms)
    header.crc = update_crc(batch, 0, len(batch))


def stamp_log_append_time(data: memoryview, position: int, batch: RecordBatch, now_ms: int) -> None:
    """Make `now_ms` the time of every record of the batch at `position`, in the bytes and in `batch`."""
    batch.attributes |= LOG_APPEND_TIME
    batch.max_timestamp = now_ms
    _ATTRIBUTES.pack_into(data, position + 21, batch.attributes)
    _OFFSET.pack_into(data, position + 35, now_ms)
    batch.crc = update_crc(data, position, batch.size)


def update_crc(data: bytearray | memoryview, position: int, size: int) -> int:
    """Compute and write the CRC of the batch of `size` bytes at `position`; give it."""
    crc = crc32c(memoryview(data)[position + 21 : position + size])
    _CRC.pack_into(data, position + 17, crc)
    return int(crc)
