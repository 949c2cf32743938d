"""The transaction coordinator: its requests, and what time brings.

A transactional id belongs to the partition of __transaction_state that it hashes to; see `sharding`.

Rules:

- The log comes first: prepare, write, wait for the replicas, apply. What fails on the way leaves the id as it was;
  what is in the log is waited for and applied also when its client is gone.
- A transaction is decided when Prepare is in the log, and answered then. Whatever happens, its markers follow: at once
  where nothing has to be waited for, else in a task, and after a restart for each id that is loaded in Prepare.
- Open transactions whose time is over are aborted, ids that nobody uses are forgotten, both from time to time.

Public methods raise BrokerError; `APPEND_ERRORS` tells the codes that clients expect instead of an append's own.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import trio

from odradek.cluster.topics import TRANSACTION_STATE
from odradek.sharding import APPEND_ERRORS, Chore, Coordinator, answering
from odradek.transactions.markers import Marker, MarkerWriter
from odradek.transactions.shard import TransactionShard
from odradek.transactions.state import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_ID,
    ProducerIdentity,
    TopicPartition,
    TransactionalId,
    TransactionMetadata,
    TransactionState,
)
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["ProducerIdSource", "TransactionCoordinator", "TransactionVersion"]

log = logging.getLogger(__name__)

RETRY_S = 0.1
"""How long markers that could not be written wait before they are tried again: Kafka's `retry.backoff.ms`."""

TOMBSTONE_BYTES = 100_000
"""About how large a batch of tombstones may become: far below the smallest `max.message.bytes` in use."""


class ProducerIdSource(Protocol):
    """Where new producer ids come from."""

    async def next(self) -> int:
        """A producer id that nobody has had."""


class TransactionVersion(Protocol):
    """The feature of the cluster that says which protocol it speaks."""

    @property
    def transaction_version(self) -> int:
        """The level in force."""


class TransactionCoordinator(Coordinator[TransactionShard]):
    """The transactional ids of the partitions of __transaction_state that this broker leads."""

    TOPIC = TRANSACTION_STATE
    KEEPS = "transactional ids"

    def __init__(
        self,
        config: "BrokerConfig",
        clock: "Clock",
        view: "ClusterView",
        producer_ids: ProducerIdSource,
        markers: MarkerWriter,
        features: TransactionVersion,
    ) -> None:
        super().__init__(config, clock, view)
        self._producer_ids = producer_ids
        self._markers = markers
        self._features = features

    @property
    def _planned_partitions(self) -> int:
        return self._config.transaction_state_log_num_partitions

    def _make_shard(self, partition: "Partition") -> TransactionShard:
        return TransactionShard(partition, self._config, self._clock)

    def _begin(self, shard: TransactionShard) -> None:
        for txn in shard.transactions.values():
            if txn.is_prepared:
                self._finish(shard, txn)

    def _chores(self) -> Iterable[Chore]:
        return self._abort_timed_out_regularly, self._expire_regularly

    # Requests

    async def initialize(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        """InitProducerId: who writes under this id from now on.

        Raises INVALID_REQUEST for an empty id, INVALID_TRANSACTION_TIMEOUT, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, what `TransactionalId.initialize` raises, and APPEND_ERRORS.
        CONCURRENT_TRANSACTIONS also when an open transaction had to be aborted: who asks again gets in.
        """
        if not transactional_id:
            raise BrokerError(Error.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise BrokerError(Error.INVALID_TRANSACTION_TIMEOUT)
        known = self._shard(transactional_id).transactions.get(transactional_id)
        new_producer_id = NO_PRODUCER_ID
        if known is None or known.metadata.epoch_exhausted:
            new_producer_id = await self._producer_ids.next()
        shard = self._shard(transactional_id)
        txn = shard.transactions.get(transactional_id)
        if txn is None:
            txn = TransactionalId.new(transactional_id, new_producer_id, timeout_ms, self._clock.now_ms())
            shard.transactions[transactional_id] = txn
        metadata = txn.initialize(
            timeout_ms, expected, new_producer_id, self._features.transaction_version, self._clock.now_ms()
        )
        await self._store(shard, txn, metadata)
        if metadata.state is TransactionState.PREPARE_ABORT:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        return ProducerIdentity(metadata.producer_id, metadata.producer_epoch)

    async def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: frozenset[TopicPartition], version: int
    ) -> None:
        """AddPartitionsToTxn: return when the log knows that the transaction writes to the partitions.

        `version` is the client's level of `transaction.version`. Raises INVALID_REQUEST for an empty id,
        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_PRODUCER_ID_MAPPING for an id that is not there, what
        `TransactionalId.add_partitions` raises, and APPEND_ERRORS.
        """
        shard, txn = self._find(transactional_id)
        metadata = txn.add_partitions(*producer, partitions, version, self._clock.now_ms())
        if metadata is not None:
            await self._store(shard, txn, metadata)

    def verify_partition(self, transactional_id: str, producer: ProducerIdentity, partition: TopicPartition) -> None:
        """Whether the transaction writes to a partition: TRANSACTION_ABORTABLE if it does not.

        Raises as `add_partitions` does, but for APPEND_ERRORS.
        """
        if not self._find(transactional_id)[1].has_partition(*producer, partition):
            raise BrokerError(Error.TRANSACTION_ABORTABLE, f"{partition[0]}-{partition[1]} is not in the transaction")

    async def end(
        self, transactional_id: str, producer: ProducerIdentity, *, committed: bool, version: int
    ) -> ProducerIdentity:
        """EndTxn: return when the decision is in the log; who goes on with the id.

        Raises as `add_partitions` does, with what `TransactionalId.end` raises.
        """
        shard, txn = self._find(transactional_id)
        next_producer_id = NO_PRODUCER_ID
        if version >= EPOCH_BUMP_VERSION and txn.metadata.epoch_exhausted:
            next_producer_id = await self._producer_ids.next()
            shard, txn = self._find(transactional_id)
        metadata = txn.end(*producer, committed, version, next_producer_id, self._clock.now_ms())
        if metadata is None:
            return ProducerIdentity(txn.metadata.producer_id, txn.metadata.producer_epoch)
        following = await self._store(shard, txn, metadata)
        return ProducerIdentity(following.producer_id, following.producer_epoch)

    # Administration

    def find(self, transactional_id: str) -> TransactionalId | None:
        """The id, None when there is none. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        txn = self._shard(transactional_id).transactions.get(transactional_id)
        return None if txn is None or txn.pending is TransactionState.DEAD else txn

    def all_transactions(self) -> list[TransactionalId]:
        """The ids of this broker. Raises COORDINATOR_LOAD_IN_PROGRESS while they are not all there."""
        return [txn for shard in self._all_shards() for txn in shard.transactions.values()]

    # Inside

    def _find(self, transactional_id: str) -> tuple[TransactionShard, TransactionalId]:
        if not transactional_id:
            raise BrokerError(Error.INVALID_REQUEST)
        shard = self._shard(transactional_id)
        txn = shard.transactions.get(transactional_id)
        if txn is None:
            raise BrokerError(Error.INVALID_PRODUCER_ID_MAPPING)
        return shard, txn

    async def _store(
        self, shard: TransactionShard, txn: TransactionalId, metadata: TransactionMetadata
    ) -> TransactionMetadata:
        """Write what `txn` has prepared, apply it, and have the markers of a decision follow; give what is true then.

        What the log refuses, or replicas do not get in time, leaves all as it was. Raises APPEND_ERRORS.
        """
        with _giving_up(txn):
            last_offset = shard.append(txn.transactional_id, metadata, self._features.transaction_version)
        if shard.is_committed(last_offset):
            return self._applied(shard, txn, metadata)
        try:
            return await self._apply_committed(shard, txn, metadata, last_offset)
        except trio.Cancelled:
            # The log has it, though nobody waits any more: memory must follow.
            if self._nursery is not None:
                self._nursery.start_soon(self._apply_unasked, shard, txn, metadata, last_offset)
            raise

    async def _apply_committed(
        self, shard: TransactionShard, txn: TransactionalId, metadata: TransactionMetadata, last_offset: int
    ) -> TransactionMetadata:
        with _giving_up(txn):
            await shard.wait_committed(last_offset, metadata.timeout_ms)
            if not self._keeps(shard):
                raise BrokerError(Error.NOT_COORDINATOR)
        return self._applied(shard, txn, metadata)

    async def _apply_unasked(
        self, shard: TransactionShard, txn: TransactionalId, metadata: TransactionMetadata, last_offset: int
    ) -> None:
        """Go on for a client that is gone. A failure is logged."""
        try:
            await self._apply_committed(shard, txn, metadata, last_offset)
        except BrokerError as error:
            log.warning("%r is not stored as %s: %s", txn, metadata.state.title, error)
        except Exception:
            log.exception("%r is not stored as %s", txn, metadata.state.title)

    def _applied(
        self, shard: TransactionShard, txn: TransactionalId, metadata: TransactionMetadata
    ) -> TransactionMetadata:
        txn.apply(metadata)
        return self._finish(shard, txn) if txn.is_prepared else metadata

    def _finish(self, shard: TransactionShard, txn: TransactionalId) -> TransactionMetadata:
        """Have the markers of a decided transaction written, now or later; give what is true behind it."""
        complete = txn.prepare_complete(self._clock.now_ms())
        txn.unmarked.difference_update(self._markers.write_now(_marker_of(shard, txn), txn.unmarked))
        if txn.unmarked or not self._completed(shard, txn, complete):
            self._start(self._finish_later, shard, txn, complete)
        return complete

    def _completed(self, shard: TransactionShard, txn: TransactionalId, complete: TransactionMetadata) -> bool:
        """Write that the markers are there, and apply it, if that takes no waiting."""
        if not shard.partition.commits_at_once:
            return False
        try:
            last_offset = shard.append(txn.transactional_id, complete, self._features.transaction_version)
        except BrokerError as error:
            log.warning("%r is not stored as %s yet: %s", txn, complete.state.title, error)
            return False
        assert shard.is_committed(last_offset), f"{txn!r} is stored on this broker alone"
        txn.apply(complete)
        return True

    async def _finish_later(self, shard: TransactionShard, txn: TransactionalId, complete: TransactionMetadata) -> None:
        """Write markers, and then that they are written, until it is done or another broker's to do."""
        while self._keeps(shard):
            try:
                if txn.unmarked:
                    marker = _marker_of(shard, txn)
                    txn.unmarked.difference_update(await self._markers.write(marker, list(txn.unmarked)))
                if not txn.unmarked:
                    last_offset = shard.append(txn.transactional_id, complete, self._features.transaction_version)
                    await shard.wait_committed(last_offset, complete.timeout_ms)
                    if self._keeps(shard):
                        txn.apply(complete)
                    return
            except BrokerError as error:
                log.warning("%r is not finished yet: %s", txn, error)
            except Exception:
                log.exception("%r is not finished yet", txn)
            await trio.sleep(RETRY_S)

    async def _abort_timed_out_regularly(self) -> None:
        while True:
            await trio.sleep(self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000)
            now_ms = self._clock.now_ms()
            for shard, txn in self._loaded_transactions():
                if txn.timed_out(now_ms) and self._keeps(shard):
                    await self._abort(shard, txn)

    async def _abort(self, shard: TransactionShard, txn: TransactionalId) -> None:
        """Abort a transaction whose time is over. A failure is logged; the next round tries again."""
        try:
            metadata = txn.fence(self._features.transaction_version, self._clock.now_ms())
            await self._store(shard, txn, metadata)
        except BrokerError as error:
            log.warning("aborting %r, whose time is over, failed: %s", txn, error)
        except Exception:
            log.exception("aborting %r, whose time is over, failed", txn)
        else:
            log.info("aborted %r after %d ms", txn, txn.metadata.timeout_ms)

    async def _expire_regularly(self) -> None:
        while True:
            await trio.sleep(self._config.transaction_remove_expired_transaction_cleanup_interval_ms / 1000)
            now_ms, expiration_ms = self._clock.now_ms(), self._config.transactional_id_expiration_ms
            for shard in self._loaded_shards():
                due = [txn for txn in shard.transactions.values() if txn.expired(now_ms, expiration_ms)]
                for some in _batches(due):
                    await self._forget(shard, some)

    async def _forget(self, shard: TransactionShard, due: Sequence[TransactionalId]) -> None:
        """Forget ids that nobody uses, in the log and then here; one that is in use by now stays."""
        due = [txn for txn in due if txn.pending is None and shard.transactions.get(txn.transactional_id) is txn]
        for txn in due:
            txn.expire()
        try:
            last_offset = shard.append_tombstones([txn.transactional_id for txn in due])
            await shard.wait_committed(last_offset)
        except BrokerError as error:
            log.warning("forgetting %d transactional ids failed: %s", len(due), error)
            for txn in due:
                txn.give_up()
            return
        for txn in due:
            del shard.transactions[txn.transactional_id]

    def _loaded_transactions(self) -> Iterator[tuple[TransactionShard, TransactionalId]]:
        """A copy of what there is: it may change at an `await`."""
        for shard in self._loaded_shards():
            for txn in list(shard.transactions.values()):
                yield shard, txn


@contextmanager
def _giving_up(txn: TransactionalId) -> Iterator[None]:
    """Leave an id as it was where storing it fails; who is cancelled has not failed."""
    try:
        with answering(APPEND_ERRORS):
            yield
    except Exception:
        txn.give_up()
        raise


def _marker_of(shard: TransactionShard, txn: TransactionalId) -> Marker:
    metadata = txn.metadata
    return Marker(
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state is TransactionState.PREPARE_COMMIT,
        shard.epoch,
        metadata.client_version,
    )


def _batches(due: Collection[TransactionalId]) -> Iterator[list[TransactionalId]]:
    """The ids in groups whose tombstones fit into a batch each."""
    some: list[TransactionalId] = []
    size = 0
    for txn in due:
        some.append(txn)
        size += len(txn.transactional_id.encode())
        if size > TOMBSTONE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some
