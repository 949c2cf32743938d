"""Changing the form of records for a client or a topic: their format (0, 1 and 2) or their codec.

It costs microseconds for each record, and inflating what was sent may take long, so it runs in threads, few at a time:
the other clients are served meanwhile, and only so many inflated batches are in memory at once. Nothing of a partition
is changed here; what comes out is appended, or sent, as anything else.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from odradek.log.conversion import convert_slice, convert_to_batch
from odradek.log.validation import Origin, check_client_batch, check_integrity, recompress_for_topic
from odradek_protocol.records.batch import MAGIC, RecordBatch
from odradek_protocol.records.formats import MAGIC_AT
from odradek_protocol.records.legacy import MAGIC_0, MAGIC_1

if TYPE_CHECKING:
    from odradek.log.log import LogSlice
    from odradek.partition import Partition

__all__ = ["FETCH_MAGIC", "lower", "raise_format", "recompress"]

T = TypeVar("T")

FETCH_MAGIC = (MAGIC_0, MAGIC_0, MAGIC_1, MAGIC_1)
"""The newest format that a consumer understands, by the version of its Fetch."""

THREADS = 2
"""Conversions at a time: each may hold an inflated batch, and all share one interpreter anyway."""

_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("conversions")


async def raise_format(partition: "Partition", records: memoryview) -> memoryview:
    """What a producer sent in format 0 or 1 as a batch that the log takes; all else as it is.

    Raises BrokerError as `convert_to_batch`.
    """
    if len(records) <= MAGIC_AT or records[MAGIC_AT] >= MAGIC:
        return records
    config = partition.config
    return await _in_thread(lambda: convert_to_batch(records, config))


async def recompress(partition: "Partition", records: memoryview, batch: RecordBatch) -> tuple[memoryview, RecordBatch]:
    """The batch in the codec that the topic wants, after the checks that come before opening it.

    Raises BrokerError as `check_integrity`, `check_client_batch` and `recompress_for_topic`.
    """
    config = partition.config

    def change() -> tuple[memoryview, RecordBatch]:
        check_integrity(records, batch, config.max_message_bytes, Origin.CLIENT)
        check_client_batch(records, batch)
        return recompress_for_topic(records, batch, config)

    return await _in_thread(change)


async def lower(partition: "Partition", records: "LogSlice", magic: int, first_offset: int, max_bytes: int) -> bytes:
    """What a consumer that understands `magic` gets of the batches from `first_offset` on.

    At most `max_bytes`, but always the first batch. Batches that have no form in that format are passed over, up to the
    high watermark. Raises BrokerError: UNSUPPORTED_COMPRESSION_TYPE, CORRUPT_MESSAGE, what `Log.read` raises.
    """
    found: LogSlice | None = records
    while found is not None:
        taken = found
        converted = await _in_thread(lambda: convert_slice(taken, magic, first_offset, max_bytes))  # noqa: B023 - awaited
        if converted:
            return converted
        found = partition.log.read(taken.next_offset, max_bytes, partition.high_watermark, at_least_one=True)
    return b""


async def _in_thread(function: Callable[[], T]) -> T:
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
    return await trio.to_thread.run_sync(function, limiter=limiter)
