"""Records in another format than they are in: message sets as one RecordBatch v2, and batches as message sets.

Up (`convert_up`), what a producer of format 0 or 1 sent becomes one batch: offsets count from 0, timestamps are kept
(format 0 has none: -1), there is no producer and no header. Down (`convert_down`), for a consumer that knows no v2:

    headers, producer, sequence, leader epoch    left out, format 0 and 1 have no place for them
    control batches                              left out, together with nothing else: offsets show a hole
    timestamps                                   left out in format 0; log append time is marked in format 1
    gzip, snappy, lz4                            one wrapper a batch, with the same codec
    zstd                                         UNSUPPORTED_COMPRESSION_TYPE
    no codec                                     one message a record, from the wanted offset on, as consumers of that
                                                 time take the first message for the one that they asked for
    already of that format, or an older one      unchanged

Pure functions. Converting costs some microseconds for each record, so a caller with other work lets it run elsewhere;
`convert_down` gives a piece for each batch, so that it may stop between two. KIP-31, KIP-32, KIP-283.
"""

from collections.abc import Iterator

from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.records.batch import LOG_APPEND_TIME, RecordBatch
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import MAX_RECORDS_BYTES, Codec, looks_compressed
from odradek_protocol.records.formats import any_crc_matches, iter_any, read_any
from odradek_protocol.records.legacy import build_message_set, read_message, read_messages
from odradek_protocol.varint import Buffer

__all__ = ["convert_down", "convert_up"]

_SMALLEST_RECORD = 7
"""Bytes of a record of format 2 without key and value."""


def convert_up(
    messages: Buffer,
    *,
    max_message_bytes: int,
    max_record_bytes: int,
    codec: Codec | None = None,
    level: int | None = None,
    limit: int = MAX_RECORDS_BYTES,
) -> bytearray:
    """The message set of a producer as one batch, compressed by `codec` (None: as it came).

    In Kafka's order: each message has at most `max_message_bytes` and a right CRC; a wrapper stands alone; all messages
    are of one format, those inside too, and those inside have right CRCs. `level` as in `compression.compress`. Raises
    BrokerError: MESSAGE_TOO_LARGE (also for what cannot become a batch of `max_message_bytes`), CORRUPT_MESSAGE,
    INVALID_RECORD (also for more than `max_record_bytes` in a wrapped message, or `limit` bytes in a wrapper),
    UNKNOWN_SERVER_ERROR for a codec that there is not, and for a value that is obviously not of it.
    """
    source, count, log_append_time = 0, 0, False
    for position, message in _whole_messages(messages):
        if message.size > max_message_bytes:
            raise BrokerError(
                Error.MESSAGE_TOO_LARGE, f"a message has {message.size} bytes, {max_message_bytes} are allowed"
            )
        if not any_crc_matches(memoryview(messages), position, message):
            raise BrokerError(Error.CORRUPT_MESSAGE, "the CRC of a message does not match its bytes")
        source, count = message.codec or source, count + 1
        log_append_time = log_append_time or message.is_log_append_time
    if not count:
        raise BrokerError(Error.INVALID_RECORD, "there is no whole message")
    if source and count > 1:
        raise BrokerError(Error.INVALID_RECORD, "there is more than one message beside a compressed one")
    target = _known_codec(source) if codec is None else codec
    most = limit if target else max_message_bytes
    records = _open_all(messages, limit, max_record_bytes if source else limit, most)
    return build_batch(records, codec=target, level=level, attributes=LOG_APPEND_TIME if log_append_time else 0)


def _known_codec(number: int) -> Codec:
    try:
        return Codec(number)
    except ValueError:
        raise BrokerError(Error.UNKNOWN_SERVER_ERROR, f"{number} is no compression codec") from None


def _open_all(messages: Buffer, limit: int, max_record_bytes: int, max_bytes: int) -> list[NewRecord]:
    """The records of all messages; keys and values above `max_bytes` in all are too large a batch."""
    records: list[NewRecord] = []
    magic, left = None, max_bytes
    for position, message in _whole_messages(messages):
        magic = message.magic if magic is None else magic
        if message.magic != magic:
            raise BrokerError(Error.INVALID_RECORD, f"a message of format {message.magic} behind one of format {magic}")
        for record in _opened(messages, position, magic, message.codec, limit):
            size = _SMALLEST_RECORD + len(record.key or b"") + len(record.value or b"")
            if size > max_record_bytes:
                raise BrokerError(Error.INVALID_RECORD, f"a record takes {size} bytes, {max_record_bytes} are allowed")
            left -= size
            if left < 0:
                raise BrokerError(Error.MESSAGE_TOO_LARGE, f"the messages are a batch of more than {max_bytes} bytes")
            records.append(record)
    return records


def _whole_messages(messages: Buffer) -> Iterator[tuple[int, RecordBatch]]:
    try:
        yield from iter_any(messages)
    except ProtocolError as error:
        raise BrokerError(Error.CORRUPT_MESSAGE, str(error)) from error


def _opened(messages: Buffer, position: int, magic: int, codec: int, limit: int) -> Iterator[NewRecord]:
    try:
        outer = read_message(messages, position)
        if codec not in (Codec.NONE, Codec.ZSTD) and outer.value and not looks_compressed(codec, outer.value):
            raise BrokerError(Error.UNKNOWN_SERVER_ERROR, f"a wrapper does not hold what codec {codec} makes")
        opened = read_messages(messages, position, limit=limit)
    except ProtocolError as error:
        raise BrokerError(Error.INVALID_RECORD, str(error)) from error
    for message in opened:
        if message.magic != magic:
            raise BrokerError(Error.INVALID_RECORD, f"a message of format {message.magic} inside one of format {magic}")
        if not message.is_valid:
            raise BrokerError(Error.CORRUPT_MESSAGE, "the CRC of a message in a wrapper does not match its bytes")
        yield NewRecord(message.key, message.value, timestamp_ms=message.timestamp_ms)


def convert_down(batches: Buffer, magic: int, first_offset: int, *, limit: int = MAX_RECORDS_BYTES) -> Iterator[Buffer]:
    """What each of the batches is in format `magic`, which may be nothing.

    `first_offset` is the one that the consumer asked for. An incomplete batch at the end is left out. Raises
    BrokerError: UNSUPPORTED_COMPRESSION_TYPE at a batch of zstd, CORRUPT_MESSAGE at one that is broken.
    """
    view = memoryview(batches)
    try:
        for position, batch in iter_any(view):
            data = view[position : position + batch.size]
            if batch.magic <= magic:
                yield data
            elif not batch.is_control:
                yield _lowered(data, batch, magic, first_offset, limit)
    except ProtocolError as error:
        raise BrokerError(Error.CORRUPT_MESSAGE, str(error)) from error


def _lowered(data: memoryview, batch: RecordBatch, magic: int, first_offset: int, limit: int) -> bytes:
    if batch.codec == Codec.ZSTD:
        raise BrokerError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"there is no zstd in format {magic}")
    wanted = [record for record in read_any(data, limit=limit) if batch.codec or record.offset >= first_offset]
    if not wanted:
        return b""
    return build_message_set(wanted, magic, codec=Codec(batch.codec), log_append_time=batch.is_log_append_time)
