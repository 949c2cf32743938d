"""What a log knows of its producers: the sequence numbers that follow, and the transactions that are open.

Rules (KIP-98; measured on Kafka 4.3):

- A producer without state may start with any sequence number: its state may have expired, or been deleted with its
  records.
- Otherwise the next number follows the last one; 0 follows 2147483647. A new epoch starts at 0. An older epoch is
  refused. A repetition of one of the last five batches is answered like the first time, and not written again.
- `check` changes nothing. `update` runs when the batch has been written.
"""

from typing import NamedTuple

from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import RecordBatch, next_sequence

__all__ = ["CACHED_BATCHES", "CachedBatch", "EndMarker", "EndedTransaction", "Producer", "Producers"]

CACHED_BATCHES = 5
"""A client has at most this many requests of one producer under way (max.in.flight.requests.per.connection)."""
NO_OFFSET = -1
NO_EPOCH = -1
NO_COORDINATOR_EPOCH = -1


class CachedBatch(NamedTuple):
    """A written batch, as far as it takes to know a repetition of it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class EndMarker(NamedTuple):
    """The record of a control batch that ends a transaction."""

    committed: bool
    coordinator_epoch: int


class EndedTransaction(NamedTuple):
    """The producer, the offset of its first record, and that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class Producer:
    """One producer's state in one partition. `batches` are the last ones, oldest first."""

    __slots__ = ("batches", "coordinator_epoch", "last_timestamp", "producer_epoch", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches: list[CachedBatch] = []
        self.last_timestamp = -1
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.txn_first_offset = NO_OFFSET

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction of the producer is open here."""
        return self.txn_first_offset != NO_OFFSET


class Producers:
    """The producers of one log."""

    __slots__ = ("by_id", "first_unstable_offset", "undecided")

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}
        self.first_unstable_offset: int | None = None
        """The first offset of the oldest open transaction."""
        self.undecided: list[EndedTransaction] = []
        """Ended transactions whose marker is not known to be below the high watermark, oldest first."""

    def __len__(self) -> int:
        return len(self.by_id)

    # -- before the write -------------------------------------------------------------------------------------------

    def in_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction is open here that a producer began in this epoch."""
        producer = self.by_id.get(producer_id)
        return producer is not None and producer.producer_epoch == producer_epoch and producer.in_transaction

    def find_duplicate(self, batch: RecordBatch) -> CachedBatch | None:
        """The cached batch that `batch` repeats."""
        producer = self.by_id.get(batch.producer_id)
        if producer is None or producer.producer_epoch != batch.producer_epoch:
            return None
        last_sequence = next_sequence(batch.base_sequence, batch.last_offset_delta)
        for cached in producer.batches:
            if cached.last_sequence == last_sequence and cached.offset_delta == batch.last_offset_delta:
                return cached
        return None

    def check_epoch(self, batch: RecordBatch) -> None:
        """Raise INVALID_PRODUCER_EPOCH when a newer instance of the producer has written already."""
        producer = self.by_id.get(batch.producer_id)
        if producer is not None and batch.producer_epoch < producer.producer_epoch:
            raise BrokerError(
                Error.INVALID_PRODUCER_EPOCH,
                f"the epoch of producer {batch.producer_id} is {producer.producer_epoch}, not {batch.producer_epoch}",
            )

    def check_from_coordinator(self, batch: RecordBatch, marker: EndMarker | None) -> None:
        """Check a coordinator's batch, with `marker` in it. Raises as `check_epoch` and `check_marker` do."""
        if marker is None:
            self.check_epoch(batch)
        else:
            self.check_marker(batch, marker)

    def check(self, batch: RecordBatch) -> None:
        """Check a client's batch that is no repetition.

        Raises INVALID_PRODUCER_EPOCH; OUT_OF_ORDER_SEQUENCE_NUMBER; INVALID_TXN_STATE for a batch outside the
        producer's open transaction.
        """
        producer = self.by_id.get(batch.producer_id)
        if producer is None or producer.producer_epoch == NO_EPOCH:
            return
        self.check_epoch(batch)
        if batch.producer_epoch > producer.producer_epoch:
            expected = 0
        elif producer.batches:
            expected = next_sequence(producer.batches[-1].last_sequence, 1)
        else:
            expected = 0
        if batch.base_sequence != expected:
            raise BrokerError(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} in epoch {batch.producer_epoch} sent sequence number "
                f"{batch.base_sequence}, {expected} is next",
            )
        if producer.txn_first_offset != NO_OFFSET and not batch.is_transactional:
            raise BrokerError(
                Error.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has an open transaction, and sent a batch that is not part of it",
            )

    def check_marker(self, batch: RecordBatch, marker: EndMarker) -> None:
        """Check a coordinator's control batch.

        Raises INVALID_PRODUCER_EPOCH; TRANSACTION_COORDINATOR_FENCED when a newer coordinator has written already.
        """
        self.check_epoch(batch)
        producer = self.by_id.get(batch.producer_id)
        if producer is not None and marker.coordinator_epoch < producer.coordinator_epoch:
            raise BrokerError(
                Error.TRANSACTION_COORDINATOR_FENCED,
                f"the coordinator epoch of producer {batch.producer_id} is {producer.coordinator_epoch}, "
                f"not {marker.coordinator_epoch}",
            )

    # -- behind the write -------------------------------------------------------------------------------------------

    def update(self, batch: RecordBatch, base_offset: int) -> None:
        """Account for a written batch of a producer."""
        producer = self._enter(batch)
        last_offset = base_offset + batch.last_offset_delta
        if batch.base_sequence >= 0:
            last_sequence = next_sequence(batch.base_sequence, batch.last_offset_delta)
            cached = CachedBatch(last_sequence, last_offset, batch.last_offset_delta, batch.max_timestamp)
            if len(producer.batches) == CACHED_BATCHES:
                del producer.batches[0]
            producer.batches.append(cached)
        producer.last_timestamp = batch.max_timestamp
        if batch.is_transactional and producer.txn_first_offset == NO_OFFSET:
            producer.txn_first_offset = base_offset
            if self.first_unstable_offset is None:
                self.first_unstable_offset = base_offset

    def end_transaction(self, batch: RecordBatch, offset: int, marker: EndMarker) -> EndedTransaction | None:
        """Account for a written marker. Gives the transaction that it ended; None for one without records here."""
        producer = self._enter(batch)
        producer.coordinator_epoch = max(producer.coordinator_epoch, marker.coordinator_epoch)
        producer.last_timestamp = batch.max_timestamp
        if producer.txn_first_offset == NO_OFFSET:
            return None
        ended = EndedTransaction(batch.producer_id, producer.txn_first_offset, offset)
        producer.txn_first_offset = NO_OFFSET
        self.undecided.append(ended)
        self._find_first_unstable_offset()
        return ended

    def _enter(self, batch: RecordBatch) -> Producer:
        producer = self.by_id.get(batch.producer_id)
        if producer is None:
            producer = self.by_id[batch.producer_id] = Producer(batch.producer_id, batch.producer_epoch)
        elif batch.producer_epoch != producer.producer_epoch:
            producer.producer_epoch = batch.producer_epoch
            producer.batches.clear()
        return producer

    def _find_first_unstable_offset(self) -> None:
        self.first_unstable_offset = min(
            (p.txn_first_offset for p in self.by_id.values() if p.txn_first_offset != NO_OFFSET), default=None
        )

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset below which every transaction is decided, and its decision replicated."""
        undecided = self.undecided
        if undecided:
            self.undecided = undecided = [ended for ended in undecided if ended.last_offset >= high_watermark]
        stable = high_watermark
        if self.first_unstable_offset is not None:
            stable = min(stable, self.first_unstable_offset)
        return min(stable, *(ended.first_offset for ended in undecided)) if undecided else stable

    # -- forgetting -------------------------------------------------------------------------------------------------

    def expire(self, before_ms: int) -> None:
        """Forget the producers that have written nothing since, and have no open transaction."""
        idle = [
            p.producer_id
            for p in self.by_id.values()
            if p.last_timestamp < before_ms and p.txn_first_offset == NO_OFFSET
        ]
        for producer_id in idle:
            del self.by_id[producer_id]

    def clear(self) -> None:
        """Forget everything."""
        self.by_id.clear()
        self.undecided.clear()
        self.first_unstable_offset = None

    def load(self, producers: list[Producer]) -> None:
        """Take the state of a snapshot."""
        self.clear()
        self.by_id.update((producer.producer_id, producer) for producer in producers)
        self._find_first_unstable_offset()
