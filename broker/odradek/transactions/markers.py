"""Markers: the control batches that end a transaction in each partition that it wrote to.

A coordinator knows only `MarkerWriter`. `LocalMarkers` writes to the partitions that this broker leads, for its own
coordinator and for whoever sends WriteTxnMarkers.

A marker may be written twice, when a coordinator dies between the marker and the record that all of them are written:
the second one ends nothing, as there is no transaction open.
"""

import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.log.log import Origin
from odradek.transactions.state import EPOCH_BUMP_VERSION, MAX_EPOCH, TopicPartition
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import CONTROL, TRANSACTIONAL
from odradek_protocol.records.build import build_batch
from odradek_protocol.records.control import ControlType, control_record

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition
    from odradek.partitions import Partitions

__all__ = ["LocalMarkers", "Marker", "MarkerWriter", "OffsetsOwner"]

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Markers written between two looks at the other tasks: each takes about as long as a small Produce."""

SUPERSEDED = frozenset({Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED})
"""The partition has heard of a later epoch: nothing of this transaction is open there."""


class Marker(NamedTuple):
    """How the transaction of a producer ends. `coordinator_epoch` is that of the lead of its coordinator's partition,
    `version` the level of `transaction.version` by which the transaction goes.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    version: int


class MarkerWriter(Protocol):
    """How a coordinator has markers written."""

    def write_now(self, marker: Marker, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        """Write what takes no waiting; give the partitions whose marker is written for good."""

    async def write(self, marker: Marker, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        """Write to each; give the partitions whose marker is written for good, the others are to be tried again."""


class OffsetsOwner(Protocol):
    """Who keeps the offsets that transactions commit."""

    def check_loaded(self, index: int) -> None:
        """Raise BrokerError unless the offsets of a partition of __consumer_offsets are kept here."""

    def end_transaction(self, index: int, producer_id: int, *, committed: bool) -> None:
        """The transaction of a producer has ended in a partition of __consumer_offsets."""


class LocalMarkers:
    """Writes markers to the partitions that this broker leads."""

    def __init__(
        self,
        partitions: "Partitions",
        view: "ClusterView",
        offsets: OffsetsOwner,
        config: "BrokerConfig",
        clock: "Clock",
    ) -> None:
        self._partitions = partitions
        self._view = view
        self._offsets = offsets
        self._config = config
        self._clock = clock

    def write_now(self, marker: Marker, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        """See `MarkerWriter`. Partitions of topics that are gone need no marker."""
        if len(partitions) > AT_ONCE:
            return ()
        written = []
        for name, index in partitions:
            partition = self._partitions.get(name, index)
            if partition is None:
                if self._is_gone(name, index):
                    written.append((name, index))
            elif partition.commits_at_once:
                try:
                    self._append(partition, marker)
                    self._ended(partition, marker)
                except BrokerError as error:
                    if not _is_superseded(partition, marker, error):
                        continue
                written.append((name, index))
        return written

    async def write(self, marker: Marker, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        """See `MarkerWriter`."""
        written = []
        for name, index, error in await self.write_each(marker, partitions):
            partition = self._partitions.get(name, index)
            if error is not None:
                needs_none = (
                    self._is_gone(name, index) if partition is None else _is_superseded(partition, marker, error)
                )
                if not needs_none:
                    continue
            written.append((name, index))
        return written

    async def write_each(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> list[tuple[str, int, BrokerError | None]]:
        """Append a marker to each partition and wait until all are replicated; give what went wrong with each."""
        results: list[tuple[str, int, BrokerError | None]] = []
        waiting: list[tuple[Partition, int]] = []
        for position, (name, index) in enumerate(partitions, 1):
            partition = self._partitions.get(name, index)
            if partition is None:
                results.append((name, index, BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)))
                continue
            try:
                waiting.append((partition, self._append(partition, marker)))
            except BrokerError as error:
                results.append((name, index, error))
            if position % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        deadline = trio.current_time() + self._config.request_timeout_ms / 1000
        for partition, last_offset in waiting:
            try:
                await partition.wait_flushed(last_offset)
                if partition.high_watermark <= last_offset:
                    await partition.wait_committed(last_offset, deadline - trio.current_time())
                self._ended(partition, marker)
            except BrokerError as error:
                results.append((partition.topic, partition.index, error))
            else:
                results.append((partition.topic, partition.index, None))
        return results

    def _append(self, partition: "Partition", marker: Marker) -> int:
        """Append the marker; give its offset.

        Raises what `Partition.append` raises; INVALID_PRODUCER_EPOCH also for a marker that does not raise the epoch of
        an open transaction though its protocol does (KIP-1228).
        """
        if partition.topic == CONSUMER_OFFSETS:
            self._offsets.check_loaded(partition.index)
        producer = partition.log.producers.by_id.get(marker.producer_id)
        if (
            producer is not None
            and marker.version >= EPOCH_BUMP_VERSION
            and marker.producer_epoch == producer.producer_epoch < MAX_EPOCH
            and producer.in_transaction
        ):
            raise BrokerError(
                Error.INVALID_PRODUCER_EPOCH,
                f"the marker of producer {marker.producer_id} has the epoch {marker.producer_epoch} of its transaction",
            )
        partition.check_leader()
        partition.check_enough_replicas()
        kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
        batch = build_batch(
            [control_record(kind, marker.coordinator_epoch, self._clock.now_ms())],
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            attributes=TRANSACTIONAL | CONTROL,
        )
        return partition.append(memoryview(batch), origin=Origin.COORDINATOR).last_offset

    def _ended(self, partition: "Partition", marker: Marker) -> None:
        """The marker is there for good: offsets of the transaction become visible, or are dropped."""
        if partition.topic == CONSUMER_OFFSETS:
            self._offsets.end_transaction(partition.index, marker.producer_id, committed=marker.committed)

    def _is_gone(self, topic: str, index: int) -> bool:
        known = self._view.topics.get(topic)
        return known is None or index >= len(known.partitions)


def _is_superseded(partition: "Partition", marker: Marker, error: BrokerError) -> bool:
    """Whether a refused marker has nothing to end any more; other refusals may pass."""
    if error.error not in SUPERSEDED:
        log.info("%r is not written to %r yet: %s", marker, partition, error)
        return False
    log.warning("%r is not written to %r: %s", marker, partition, error)
    return True
