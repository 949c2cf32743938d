"""What a leader checks of a batch before it takes it, in Kafka's order and with Kafka's codes.

The order: there is one whole batch of format 2 and nothing else; base offset 0; size; CRC; then (what Kafka's validator
does) the number of records, no control batch, a sequence number with a producer id, the codec, keys, timestamps.
Records are opened only where the topic or the header asks for it.
Measured on Kafka 4.3: see the tests. KIP-98, KIP-467 (record errors), KIP-937 (timestamp bounds).
"""

import enum
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.log.errors import RecordErrors
from odradek.log.producers import EndMarker
from odradek.log.segment import MAX_RELATIVE_OFFSET, NO_TIMESTAMP
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    RecordBatch,
    read_header,
    stamp_log_append_time,
    update_crc,
)
from odradek_protocol.records.build import recompress
from odradek_protocol.records.checksum import crc32c
from odradek_protocol.records.compression import MAX_RECORDS_BYTES, Codec, looks_compressed
from odradek_protocol.records.control import ControlType, read_control_type, read_coordinator_epoch
from odradek_protocol.records.formats import any_crc_matches, iter_any
from odradek_protocol.records.read import read_records, scan

if TYPE_CHECKING:
    from odradek.log.config import LogConfig

__all__ = [
    "Origin",
    "apply_timestamp_type",
    "check_client_batch",
    "check_integrity",
    "check_keys",
    "read_batch",
    "read_end_marker",
    "read_run",
    "recompress_for_topic",
    "split_run",
    "target_codec",
]


class Origin(enum.Enum):
    """Where a batch comes from, which decides what is checked."""

    CLIENT = enum.auto()
    """A producer: everything is checked."""
    REPLICATION = enum.auto()
    """The partition's leader, which has checked it: only its CRC and its offsets."""
    COORDINATOR = enum.auto()
    """A group or transaction coordinator of this broker: no sequence numbers, and control batches are allowed."""


_CLIENT = Origin.CLIENT
_COORDINATOR = Origin.COORDINATOR
"""Bound here, as every append asks for them."""

_LENGTH_AND_MAGIC = struct.Struct(">8xi4xb")
_HEAD_SIZE = _LENGTH_AND_MAGIC.size
"""Up to the magic: without that much there is no batch."""
_SMALLEST_LENGTH = 14
"""Of a record of format 0: whatever claims to be shorter is corrupt in every format."""
_SHOWN_ERRORS = 3
_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
_CORRUPT = Error.CORRUPT_MESSAGE
_INVALID = Error.INVALID_RECORD


def read_batch(records: memoryview) -> RecordBatch:
    """The header of the one batch that a producer's `records` hold.

    Bytes behind it that are no whole batch are not looked at, as on Kafka. Raises INVALID_RECORD, CORRUPT_MESSAGE.
    """
    try:
        batch = read_header(records)
    except ProtocolError:
        pass  # why it is none is found below
    else:
        if batch.magic == MAGIC and batch.size == len(records):
            return batch
    size = _whole_batch_size(records, 0)
    if not size:
        raise BrokerError(_INVALID, "there is no whole record batch")
    if records[16] != MAGIC:
        raise BrokerError(_INVALID, f"the record batch is of format {records[16]}, not {MAGIC}")
    if len(records) > size and _whole_batch_size(records, size):
        raise BrokerError(_INVALID, "there is more than one record batch")
    if size < HEADER_SIZE:
        raise BrokerError(_CORRUPT, f"a record batch of {size} bytes is shorter than its header")
    return read_header(records)


def _whole_batch_size(records: memoryview, position: int) -> int:
    """The size of the batch at `position`, 0 when it is not there as a whole."""
    left = len(records) - position
    if left < _HEAD_SIZE:
        return 0
    length, magic = _LENGTH_AND_MAGIC.unpack_from(records, position)
    if length < _SMALLEST_LENGTH or not 0 <= magic <= MAGIC:
        raise BrokerError(_CORRUPT, f"{length} bytes in format {magic} are no record batch")
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= left else 0


def check_integrity(records: memoryview, batch: RecordBatch, max_bytes: int, origin: Origin) -> None:
    """Check base offset, size and CRC, which a coordinator has just computed itself.

    Raises INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE.
    """
    if batch.base_offset and origin is _CLIENT:
        raise BrokerError(_INVALID, f"the base offset of the record batch is {batch.base_offset}, not 0")
    size = batch.size
    if size > max_bytes:
        raise BrokerError(Error.MESSAGE_TOO_LARGE, f"the record batch has {size} bytes, {max_bytes} are allowed")
    if origin is not _COORDINATOR and crc32c(records[21:size]) != batch.crc:
        raise BrokerError(_CORRUPT, "the CRC of the record batch does not match its bytes")


def check_client_batch(records: memoryview, batch: RecordBatch) -> None:
    """Check what only a producer can get wrong. Raises INVALID_RECORD, UNKNOWN_SERVER_ERROR."""
    count = batch.record_count
    if count <= 0 or batch.last_offset_delta + 1 != count:
        raise BrokerError(_INVALID, f"{count} records with offsets up to {batch.last_offset_delta}")
    attributes = batch.attributes
    if attributes & CONTROL:
        raise BrokerError(_INVALID, "clients may not write control batches")
    if batch.producer_id >= 0:
        if batch.base_sequence < 0:
            raise BrokerError(_INVALID, f"sequence number {batch.base_sequence} with a producer id")
    elif attributes & TRANSACTIONAL:
        raise BrokerError(_INVALID, "a transactional record batch without a producer id")
    codec = attributes & CODEC_MASK
    if codec and not looks_compressed(codec, records[HEADER_SIZE : batch.size]):
        raise BrokerError(Error.UNKNOWN_SERVER_ERROR, f"the records are not what codec {codec} makes")


def check_keys(records: memoryview, batch: RecordBatch, config: "LogConfig", partition_name: str) -> None:
    """Check that every record has a key, as compaction needs it. Raises RecordErrors of INVALID_RECORD."""
    message = f"Compacted topic cannot accept message without key in topic partition {partition_name}"
    errors = [(index, message) for index, (_, _, has_key) in enumerate(_scan(records, batch, config)) if not has_key]
    if errors:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:_SHOWN_ERRORS]
        )
        raise RecordErrors(
            _INVALID,
            f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing "
            f"the first three errors at most: [{shown}]",
            errors,
        )


def apply_timestamp_type(records: memoryview, batch: RecordBatch, now_ms: int, config: "LogConfig") -> int:
    """Stamp the batch with the time of the append, or check the producer's own timestamps.

    Gives the stamped time, -1 for none. -1 is a legal timestamp: the producer has none. That a producer says that its
    batch is stamped is an error only where the broker stamps, or there is no time in it, as on Kafka. Raises
    RecordErrors of INVALID_TIMESTAMP.
    """
    if batch.attributes & LOG_APPEND_TIME and (
        config.message_timestamp_type == "LogAppendTime" or batch.max_timestamp == NO_TIMESTAMP
    ):
        _refuse_log_append_time(records, batch, config)
    if config.message_timestamp_type == "LogAppendTime":
        stamp_log_append_time(records, 0, batch, now_ms)
        return now_ms
    if batch.attributes & LOG_APPEND_TIME:
        batch.attributes &= ~LOG_APPEND_TIME
        struct.pack_into(">h", records, 21, batch.attributes)
        batch.crc = update_crc(records, 0, batch.size)
    if (
        batch.max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or now_ms - batch.base_timestamp > config.message_timestamp_before_max_ms
    ):
        _check_timestamps(records, batch, now_ms, config)
    return -1


def _refuse_log_append_time(records: memoryview, batch: RecordBatch, config: "LogConfig") -> None:
    errors = [
        (
            index,
            f"Invalid timestamp type in message with offset {offset}. "
            "Producer should not set timestamp type to LogAppendTime.",
        )
        for index, (offset, _, _) in enumerate(_scan(records, batch, config))
    ]
    raise RecordErrors(
        Error.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
    )


def _check_timestamps(records: memoryview, batch: RecordBatch, now_ms: int, config: "LogConfig") -> None:
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    errors = [
        (
            index,
            f"Timestamp {timestamp} of message with offset {offset} is out of range. "
            f"The timestamp should be within [{earliest}, {latest}]",
        )
        for index, (offset, timestamp, _) in enumerate(_scan(records, batch, config))
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest
    ]
    if errors:
        raise RecordErrors(
            Error.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
        )


def _scan(records: memoryview, batch: RecordBatch, config: "LogConfig") -> list[tuple[int, int, bool]]:
    """Offset delta, timestamp, and whether there is a key, of each record.

    Raises INVALID_RECORD, also where a compressed record takes more than `max.decompressed.message.bytes`.
    """
    largest = config.max_decompressed_message_bytes if batch.codec else MAX_RECORDS_BYTES
    try:
        return list(scan(records, max_record_bytes=largest))
    except ProtocolError as error:
        raise BrokerError(_INVALID, str(error)) from error


def target_codec(config: "LogConfig") -> tuple[Codec | None, int | None]:
    """The codec that the topic's `compression.type` names, None for the producer's; and its level, None for default."""
    codec = _CODECS.get(config.compression_type)
    if codec == Codec.GZIP:
        return codec, config.compression_gzip_level
    if codec == Codec.LZ4:
        return codec, config.compression_lz4_level
    if codec == Codec.ZSTD:
        return codec, config.compression_zstd_level
    return codec, None


def recompress_for_topic(
    records: memoryview, batch: RecordBatch, config: "LogConfig"
) -> tuple[memoryview, RecordBatch]:
    """The batch in the codec that the topic's `compression.type` asks for.

    Raises INVALID_RECORD, also where the records make no sense; MESSAGE_TOO_LARGE when it has become too large.
    """
    codec, level = target_codec(config)
    if codec is None or batch.codec == codec or batch.is_control:
        return records, batch
    try:
        plain = records if batch.codec == Codec.NONE else memoryview(recompress(records, Codec.NONE))
        _scan(plain, batch, config)
        changed = plain if codec == Codec.NONE else memoryview(recompress(plain, codec, level))
    except ProtocolError as error:
        raise BrokerError(_INVALID, str(error)) from error
    if len(changed) > config.max_message_bytes:
        raise BrokerError(
            Error.MESSAGE_TOO_LARGE, f"the record batch has {len(changed)} bytes as the topic compresses it"
        )
    return changed, read_header(changed)


def read_end_marker(records: memoryview) -> EndMarker | None:
    """The transaction marker in a control batch; None for an empty batch, or a control record of another kind.

    Raises INVALID_RECORD.
    """
    try:
        for record in read_records(records):
            kind = read_control_type(record.key)
            if kind in (ControlType.ABORT, ControlType.COMMIT):
                return EndMarker(kind == ControlType.COMMIT, read_coordinator_epoch(record.value))
            break
    except ProtocolError as error:
        raise BrokerError(_INVALID, str(error)) from error
    return None


def read_run(records: memoryview, log_end_offset: int) -> list[tuple[int, RecordBatch]]:
    """The batches that a leader sent, whose offsets stand; one that is cut off at the end is left out.

    Raises CORRUPT_MESSAGE; OFFSET_OUT_OF_RANGE when their offsets do not ascend from `log_end_offset` on.
    """
    try:
        run = list(iter_any(records))
    except ProtocolError as error:
        raise BrokerError(_CORRUPT, str(error)) from error
    expected = log_end_offset
    for position, batch in run:
        if not 0 <= batch.magic <= MAGIC or not any_crc_matches(records, position, batch):
            raise BrokerError(_CORRUPT, f"the record batch at offset {batch.base_offset} is corrupt")
        if batch.base_offset < expected or batch.last_offset_delta < 0:
            raise BrokerError(
                Error.OFFSET_OUT_OF_RANGE, f"the record batch at offset {batch.base_offset} comes behind {expected}"
            )
        expected = batch.last_offset + 1
    return run


def split_run(run: list[tuple[int, RecordBatch]], segment_bytes: int) -> Iterator[list[tuple[int, RecordBatch]]]:
    """Parts of a run that fit into a segment each, by their bytes and their offsets; a batch is never split."""
    part: list[tuple[int, RecordBatch]] = []
    for position, batch in run:
        if part and (
            position + batch.size - part[0][0] > segment_bytes
            or batch.last_offset - part[0][1].base_offset > MAX_RELATIVE_OFFSET
        ):
            yield part
            part = []
        part.append((position, batch))
    if part:
        yield part
