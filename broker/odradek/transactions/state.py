"""One transactional id: the transaction that it is in, and which producer may go on with it.

No task, file or clock is here: each method is given the time and gives what is to be written to the log. The order is

    prepare   `initialize`, `add_partitions`, `end`, `fence`, `prepare_complete` or `expire` check the request and give
              the metadata that would be next; until it is decided what became of it, others are told
              CONCURRENT_TRANSACTIONS
    log       the caller writes it
    complete  `apply` makes it so, or `give_up` leaves everything as it was

so that memory never holds what a restart would not find. What is answered in each state:

    Empty           no transaction: partitions begin one
    Ongoing         partitions are added; an end, a timeout or a new producer begins to end it
    PrepareCommit   decided, markers are under way: CONCURRENT_TRANSACTIONS until they are written
    PrepareAbort    likewise
    CompleteCommit  like Empty, and a repeated end is answered as it was the first time
    CompleteAbort   likewise
    Dead            never stored: the id is being forgotten

A client of the first protocol keeps its epoch until it initializes again. With the second one (KIP-890) each end raises
the epoch, so that nothing of a transaction can come late: markers carry the new epoch, and the answer tells it. When no
epoch is left the producer id changes. Epoch 32767 is kept for fencing the last one. KIP-98, KIP-360, KIP-890.
"""

import enum
from typing import NamedTuple

from odradek_protocol.errors import BrokerError, Error

__all__ = [
    "EPOCH_BUMP_VERSION",
    "MAX_EPOCH",
    "NO_EPOCH",
    "NO_PRODUCER_ID",
    "ProducerIdentity",
    "TopicPartition",
    "TransactionMetadata",
    "TransactionState",
    "TransactionalId",
]

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 32767
"""The largest epoch: no client ever has it, so that there is always one left to fence a client with."""

EPOCH_BUMP_VERSION = 2
"""The level of `transaction.version` from which on each end of a transaction raises the epoch (KIP-890)."""


class TransactionState(enum.IntEnum):
    """The state of a transactional id; the numbers are those of its record in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The state as Kafka's tools spell it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


S = TransactionState

PREPARED = (S.PREPARE_COMMIT, S.PREPARE_ABORT)
AT_REST = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


class ProducerIdentity(NamedTuple):
    """Who may write: a producer id and its epoch."""

    producer_id: int
    producer_epoch: int


class TransactionMetadata(NamedTuple):
    """What the log holds of a transactional id; the last producer epoch it does not."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change of anything: another one only where the id itself was changed."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id that follows when the markers are written, where the epochs of this one are used up."""
    client_version: int = 0
    """The level of `transaction.version` by which the client of the transaction goes."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the last one, where its owner may repeat the request that raised it."""

    @property
    def epoch_exhausted(self) -> bool:
        """Whether a client may not get an epoch after this one."""
        return self.producer_epoch >= MAX_EPOCH - 1


class TransactionalId:
    """The state machine of one transactional id."""

    __slots__ = ("metadata", "pending", "transactional_id", "unmarked")

    def __init__(self, transactional_id: str, metadata: TransactionMetadata) -> None:
        self.transactional_id = transactional_id
        self.metadata = metadata
        self.pending: TransactionState | None = None
        """The state of what is being written."""
        self.unmarked: set[TopicPartition] = set(metadata.partitions) if metadata.state in PREPARED else set()
        """The partitions of a decided transaction that have no marker yet."""

    @classmethod
    def new(cls, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> "TransactionalId":
        """An id that nobody has used; it is in the log when it has an epoch."""
        metadata = TransactionMetadata(
            producer_id, NO_EPOCH, timeout_ms, S.EMPTY, frozenset(), start_ms=NO_TIMESTAMP, last_update_ms=now_ms
        )
        return cls(transactional_id, metadata)

    def __repr__(self) -> str:
        return f"TransactionalId({self.transactional_id!r}, {self.state.title})"

    @property
    def state(self) -> TransactionState:
        return self.metadata.state

    @property
    def is_prepared(self) -> bool:
        """Whether the transaction is decided, and its markers are not all known to be written."""
        return self.state in PREPARED

    # What the log answers

    def apply(self, metadata: TransactionMetadata) -> None:
        """The log has `metadata`: it is what is true now."""
        assert self.pending is metadata.state, f"{self!r} awaits {self.pending}, not {metadata.state}"
        self.pending = None
        self.metadata = metadata
        self.unmarked = set(metadata.partitions) if metadata.state in PREPARED else set()

    def give_up(self) -> None:
        """The log has not taken what was to be written: all stays as it is."""
        self.pending = None

    # Requests

    def initialize(
        self, timeout_ms: int, expected: ProducerIdentity | None, new_producer_id: int, server_version: int, now_ms: int
    ) -> TransactionMetadata:
        """InitProducerId: who writes from now on. Older producers are fenced.

        `expected` is what a producer that goes on after an error believes to be. `new_producer_id` is taken when the
        epochs of the present one are used up. An open transaction is to be aborted first: what is given is then in
        state PrepareAbort. Raises CONCURRENT_TRANSACTIONS; PRODUCER_FENCED when another one has `expected` replaced.
        """
        now = self.metadata
        if self.pending is not None:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        if expected is not None and not self._may_resume(expected):
            raise BrokerError(Error.PRODUCER_FENCED)
        if self.is_prepared:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        if now.state is S.ONGOING:
            return self.fence(server_version, now_ms)
        producer_id, epoch, last_epoch = now.producer_id, now.producer_epoch, NO_EPOCH
        if now.epoch_exhausted and (expected is None or expected.producer_epoch == epoch):
            last_epoch = NO_EPOCH if expected is None else epoch
            producer_id, epoch = new_producer_id, 0
        elif expected is None:
            epoch += 1
        elif epoch in (expected.producer_epoch, NO_EPOCH):
            last_epoch = epoch
            epoch += 1
        elif expected.producer_epoch == now.last_producer_epoch:
            last_epoch = now.last_producer_epoch
        else:
            raise BrokerError(Error.PRODUCER_FENCED)
        return self._prepare(
            S.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
        )

    def _may_resume(self, expected: ProducerIdentity) -> bool:
        """Whether a producer may be the one that it says; its epoch is looked at later."""
        now = self.metadata
        return (
            now.producer_epoch == NO_EPOCH
            or expected.producer_id == now.producer_id
            or (expected.producer_id == now.previous_producer_id and expected.producer_epoch >= MAX_EPOCH - 1)
        )

    def check_producer(self, producer_id: int, producer_epoch: int) -> None:
        """Raise INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED unless this is the producer of the transaction."""
        if self.metadata.producer_id != producer_id:
            raise BrokerError(Error.INVALID_PRODUCER_ID_MAPPING)
        if self.metadata.producer_epoch != producer_epoch:
            raise BrokerError(Error.PRODUCER_FENCED)

    def has_partition(self, producer_id: int, producer_epoch: int, partition: TopicPartition) -> bool:
        """Whether the producer's transaction writes to a partition.

        Raises as `check_producer` does; CONCURRENT_TRANSACTIONS when the transaction is decided.
        """
        self.check_producer(producer_id, producer_epoch)
        if self.is_prepared:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        return partition in self.metadata.partitions

    def add_partitions(
        self, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition], version: int, now_ms: int
    ) -> TransactionMetadata | None:
        """Partitions that the transaction writes to; the first ones begin it. None when all are known.

        Raises CONCURRENT_TRANSACTIONS, and as `check_producer` does.
        """
        if self.pending is not None:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        self.check_producer(producer_id, producer_epoch)
        if self.is_prepared:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        now = self.metadata
        ongoing = now.state is S.ONGOING
        if ongoing and partitions <= now.partitions:
            return None
        return self._prepare(
            S.ONGOING,
            now_ms,
            partitions=now.partitions | partitions,
            start_ms=now.start_ms if ongoing else now_ms,
            client_version=version,
        )

    def end(
        self, producer_id: int, producer_epoch: int, committed: bool, version: int, next_producer_id: int, now_ms: int
    ) -> TransactionMetadata | None:
        """EndTxn: decide the transaction. None for a request that is answered as it was before.

        `version` is the client's level of `transaction.version`; `next_producer_id` is taken when that one raises the
        epoch and none is left. Raises CONCURRENT_TRANSACTIONS; INVALID_TXN_STATE when there is nothing to end or it was
        ended otherwise; and as `check_producer` does.
        """
        if version >= EPOCH_BUMP_VERSION:
            decides = self._end_raising_epoch(producer_id, producer_epoch, committed)
        else:
            decides = self._end_keeping_epoch(producer_id, producer_epoch, committed)
        if not decides:
            return None
        exhausted = version >= EPOCH_BUMP_VERSION and self.metadata.epoch_exhausted
        return self._decide(committed, version, next_producer_id if exhausted else NO_PRODUCER_ID, now_ms)

    def _end_keeping_epoch(self, producer_id: int, producer_epoch: int, committed: bool) -> bool:
        """Whether an end of the first protocol decides anything now."""
        self.check_producer(producer_id, producer_epoch)
        if self.pending is not None:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        if self.state is S.ONGOING:
            return True
        if self.state is (S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT):
            return False
        if self.state is (S.PREPARE_COMMIT if committed else S.PREPARE_ABORT):
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        raise self._cannot_end(committed)

    def _end_raising_epoch(self, producer_id: int, producer_epoch: int, committed: bool) -> bool:
        """Whether an end of the second protocol decides anything now.

        The epoch tells a repeated request, which has the one before, from the end of a transaction without partitions.
        """
        now = self.metadata
        if self.pending is not None:
            raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        changed_id = (
            now.previous_producer_id == producer_id and producer_epoch == MAX_EPOCH - 1 and now.producer_epoch == 0
        )
        repeated = now.producer_epoch == producer_epoch + 1 or changed_id
        if now.producer_id != producer_id and not changed_id:
            raise BrokerError(Error.INVALID_PRODUCER_ID_MAPPING)
        if self.is_prepared:
            valid = now.producer_epoch == producer_epoch + 1
        elif self.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
            valid = repeated or producer_epoch == now.producer_epoch
        else:
            valid = producer_epoch == now.producer_epoch
        if not valid:
            raise BrokerError(Error.PRODUCER_FENCED)
        if self.state is S.ONGOING:
            return True
        if self.is_prepared:
            if committed == (self.state is S.PREPARE_COMMIT):
                raise BrokerError(Error.CONCURRENT_TRANSACTIONS)
        elif repeated:
            if self.state is (S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT):
                return False
        elif not committed:
            return True
        raise self._cannot_end(committed)

    def _cannot_end(self, committed: bool) -> BrokerError:
        verb = "committed" if committed else "aborted"
        return BrokerError(
            Error.INVALID_TXN_STATE, f"{self.transactional_id} is {self.state.title}, it cannot be {verb}"
        )

    # What the coordinator does by itself

    def timed_out(self, now_ms: int) -> bool:
        """Whether the transaction is open for longer than its producer said."""
        now = self.metadata
        return self.state is S.ONGOING and self.pending is None and now.start_ms + now.timeout_ms < now_ms

    def fence(self, server_version: int, now_ms: int) -> TransactionMetadata:
        """Abort the open transaction, and let its producer do no more. Nobody is ever told this epoch."""
        assert self.state is S.ONGOING, f"{self!r} has no transaction to abort"
        return self._decide(False, server_version, NO_PRODUCER_ID, now_ms, fenced=True)

    def prepare_complete(self, now_ms: int) -> TransactionMetadata:
        """What is true when all markers of a decided transaction are written."""
        now = self.metadata
        assert self.is_prepared, f"{self!r} is not decided"
        changes_id = now.client_version >= EPOCH_BUMP_VERSION and now.next_producer_id != NO_PRODUCER_ID
        return self._prepare(
            S.COMPLETE_COMMIT if self.state is S.PREPARE_COMMIT else S.COMPLETE_ABORT,
            now_ms,
            producer_id=now.next_producer_id if changes_id else now.producer_id,
            producer_epoch=0 if changes_id else now.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether nobody has used the id for so long that it is to be forgotten."""
        return self.state in AT_REST and self.pending is None and self.metadata.last_update_ms <= now_ms - expiration_ms

    def expire(self) -> None:
        """The id is about to be forgotten: nobody may begin anything with it."""
        self.pending = S.DEAD

    # Inside

    def _decide(
        self, committed: bool, version: int, next_producer_id: int, now_ms: int, *, fenced: bool = False
    ) -> TransactionMetadata:
        """The decision to commit or abort. `fenced`: the producer does not know."""
        now = self.metadata
        epoch, last_epoch = now.producer_epoch, now.last_producer_epoch
        if version >= EPOCH_BUMP_VERSION:
            epoch, last_epoch = min(epoch + 1, MAX_EPOCH), epoch
        elif fenced:
            epoch, last_epoch = min(epoch + 1, MAX_EPOCH), NO_EPOCH
        return self._prepare(
            S.PREPARE_COMMIT if committed else S.PREPARE_ABORT,
            now_ms,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            start_ms=now.start_ms if self.state is S.ONGOING else now_ms,
            client_version=version,
        )

    def _prepare(self, state: TransactionState, now_ms: int, **changes: object) -> TransactionMetadata:
        self.pending = state
        return self.metadata._replace(
            state=state,
            last_update_ms=now_ms,
            previous_producer_id=self.metadata.producer_id,
            **changes,  # type: ignore[arg-type]  # fields of TransactionMetadata
        )
