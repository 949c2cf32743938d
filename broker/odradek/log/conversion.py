"""Records in another form: from old producers for the log, and from the log for old consumers. For threads."""

from typing import TYPE_CHECKING

from odradek.log.validation import target_codec
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.conversion import convert_down, convert_up

if TYPE_CHECKING:
    from odradek.log.config import LogConfig
    from odradek.log.log import LogSlice

__all__ = ["convert_slice", "convert_to_batch"]


def convert_to_batch(messages: memoryview, config: "LogConfig") -> memoryview:
    """A producer's message set as the batch that the topic stores. Raises BrokerError as `convert_up` does."""
    codec, level = target_codec(config)
    return memoryview(
        convert_up(
            messages,
            max_message_bytes=config.max_message_bytes,
            max_record_bytes=config.max_decompressed_message_bytes,
            codec=codec,
            level=level,
        )
    )


def convert_slice(records: "LogSlice", magic: int, first_offset: int, max_bytes: int) -> bytes:
    """The batches of `records` in format `magic`, for a consumer that wants them from `first_offset` on.

    At most `max_bytes`, but always the first one that is not empty; up to one that cannot be converted. Raises OSError;
    BrokerError, as `convert_down`, where the first one cannot.
    """
    parts, size = [], 0
    pieces = convert_down(records.read_bytes(), magic, first_offset)
    try:
        for piece in pieces:
            if size and size + len(piece) > max_bytes:
                break
            parts.append(piece)
            size += len(piece)
    except BrokerError as error:
        if not size or error.error is not Error.UNSUPPORTED_COMPRESSION_TYPE:
            raise
    return b"".join(parts)
