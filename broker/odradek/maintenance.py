"""What a broker does by itself from time to time: retention, flushing, checkpoints, forgetting idle producers.

Kafka's LogManager begins with each of them after `log.initial.task.delay.ms` and so does this: brokers that do not live
for a period do it, too.

Each round goes through the partitions one by one and lets the clients in between. A partition that fails is logged and
does not keep the others from their turn.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from odradek.partition import Partition
from odradek_protocol.errors import BrokerError

if TYPE_CHECKING:
    from odradek.node import Node

__all__ = ["maintain"]

log = logging.getLogger(__name__)

ROLLED_MS = 1_000
"""How often to look for segments that were rolled and are not on the disk yet: soon, as recovery begins before them."""

PURGE_MS = 1_000
"""How long at the most until files that were deleted without a delay are removed."""

LONGEST_SLEEP_MS = 86_400_000
"""Settings that mean "never" are larger than any clock takes."""


async def maintain(node: "Node") -> None:
    """Do all of it until cancelled."""
    config = node.config

    async def retain(partition: Partition) -> None:
        partition.log.delete_old_segments(node.clock.now_ms(), partition.high_watermark)

    async def flush_rolled(partition: Partition) -> None:
        if partition.log.recovery_point < partition.log.active.base_offset:
            await partition.flush(partition.log.active.base_offset)

    async def flush_old(partition: Partition) -> None:
        if node.clock.now_ms() - partition.flushed_ms >= partition.config.flush_ms:
            await partition.flush()

    async def forget_producers(partition: Partition) -> None:
        partition.log.expire_producers(node.clock.now_ms(), config.producer_id_expiration_ms)

    await trio.sleep(min(config.log_initial_task_delay_ms, LONGEST_SLEEP_MS) / 1000)
    async with trio.open_nursery() as nursery:
        for period, work in (
            (lambda: config.log_retention_check_interval_ms, retain),
            (lambda: ROLLED_MS, flush_rolled),
            (lambda: config.log_flush_scheduler_interval_ms, flush_old),
            (lambda: config.producer_id_expiration_check_interval_ms, forget_producers),
        ):
            nursery.start_soon(_for_each, node, period, work)
        nursery.start_soon(_checkpoint, node)
        nursery.start_soon(_purge, node)


async def _for_each(node: "Node", period_ms: Callable[[], int], work: Callable[[Partition], Awaitable[None]]) -> None:
    while True:
        for partition in tuple(node.partitions.all()):
            try:
                await work(partition)
            except BrokerError as error:
                log.warning("%r: %s", partition, error)
            await trio.lowlevel.checkpoint()
        await trio.sleep(min(period_ms(), LONGEST_SLEEP_MS) / 1000)


async def _checkpoint(node: "Node") -> None:
    """Write down how far the logs are on the disk and where they start."""
    config = node.config
    while True:
        period_ms = min(
            config.log_flush_offset_checkpoint_interval_ms, config.log_flush_start_offset_checkpoint_interval_ms
        )
        try:
            await trio.to_thread.run_sync(node.logs.checkpoint, node.partitions.high_watermarks())
        except OSError as error:
            log.warning("checkpoints could not be written: %s", error)
        await trio.sleep(min(period_ms, LONGEST_SLEEP_MS) / 1000)


async def _purge(node: "Node") -> None:
    """Remove the files of deleted segments and logs when `file.delete.delay.ms` is over."""
    while True:
        due_ms, now_ms = node.logs.next_deletion_ms, node.clock.now_ms()
        if due_ms is None or due_ms > now_ms:
            await trio.sleep(PURGE_MS / 1000 if due_ms is None else min(due_ms - now_ms, PURGE_MS) / 1000)
            continue
        try:
            await trio.to_thread.run_sync(node.logs.purge)
        except OSError as error:
            log.warning("deleted files could not be removed: %s", error)
