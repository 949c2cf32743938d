"""Batches of any format, as they lie one behind the other in a log that is older than RecordBatch v2.

The magic byte stands at the same place in all formats. A message of format 0 or 1 is taken for a batch, wrapper or not.
"""

from collections.abc import Iterator

from odradek_protocol.records.batch import LOG_OVERHEAD, MAGIC, RecordBatch, crc_matches, read_header
from odradek_protocol.records.compression import MAX_RECORDS_BYTES
from odradek_protocol.records.legacy import SMALLEST_MESSAGE, message_crc_matches, read_message_header, read_messages
from odradek_protocol.records.read import Record, read_records
from odradek_protocol.varint import Buffer

__all__ = ["MAGIC_AT", "SMALLEST_BATCH", "any_crc_matches", "iter_any", "read_any", "read_any_header"]

MAGIC_AT = 16
SMALLEST_BATCH = SMALLEST_MESSAGE
"""Bytes of the shortest batch of any format."""


def read_any_header(data: Buffer, position: int = 0) -> RecordBatch:
    """The header of the batch, or of the message of format 0 or 1, at `position`.

    Raises ProtocolError as `read_header` and `read_message_header` do.
    """
    if position + MAGIC_AT < len(data) and data[position + MAGIC_AT] < MAGIC:
        return read_message_header(data, position)
    return read_header(data, position)


def iter_any(data: Buffer) -> Iterator[tuple[int, RecordBatch]]:
    """The position and header of each whole batch or message; an incomplete one at the end is left out.

    Raises ProtocolError at a size that there cannot be.
    """
    position, end = 0, len(data)
    while position + SMALLEST_BATCH <= end:
        length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if position + LOG_OVERHEAD + length > end:
            return
        batch = read_any_header(data, position)
        yield position, batch
        position += batch.size


def any_crc_matches(data: memoryview, position: int, batch: RecordBatch) -> bool:
    """Whether the CRC in the header of `batch`, which starts at `position`, is that of its bytes."""
    return (crc_matches if batch.magic == MAGIC else message_crc_matches)(data, position, batch)


def read_any(data: Buffer, *, limit: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of the batch or message that `data` starts with.

    Raises ProtocolError as `read_records` and `read_messages` do.
    """
    if len(data) > MAGIC_AT and data[MAGIC_AT] < MAGIC:
        return iter(read_messages(data, limit=limit))
    return read_records(data, limit=limit)
