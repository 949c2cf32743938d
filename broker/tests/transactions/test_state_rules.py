"""A transaction is all or nothing: random producers, timeouts and kills between any two steps, against a plain model.

The world outlives a kill: the log of the transactional id, and the partitions with their records and markers. What is
in memory does not, and comes back from the last record of the log.
"""

import enum
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.transactions.state import (
    EPOCH_BUMP_VERSION,
    ProducerIdentity,
    TransactionalId,
    TransactionMetadata,
    TransactionState,
)
from odradek_protocol.errors import BrokerError, Error

TIMEOUT_MS = 1000
PARTITIONS = ("p", "q", "r")
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class Log(enum.Enum):
    """What becomes of a write."""

    TAKES = enum.auto()
    REFUSES = enum.auto()
    DIES_BEFORE = enum.auto()
    DIES_BEHIND = enum.auto()


@dataclass
class Producer:
    """A client; an older one does not know that it has been replaced. `serial` is its transaction."""

    identity: ProducerIdentity
    version: int
    serial: int
    wrote: bool = False
    asked: bool | None = None
    """The end that it has asked for and was not told of."""


@dataclass
class Partition:
    """What a partition's log knows: the newest epoch of each producer id, and the records of open transactions."""

    epochs: dict[int, int] = field(default_factory=dict)
    open: dict[int, set[int]] = field(default_factory=dict)


writes = st.sampled_from([*[Log.TAKES] * 9, Log.REFUSES, Log.DIES_BEFORE, Log.DIES_BEHIND])


class Transactions(RuleBasedStateMachine):
    """`outcomes` are the markers that the records of each transaction have met, `told` what its producer knows."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.log: list[TransactionMetadata] = []
        self.txn: TransactionalId | None = None
        self.complete: TransactionMetadata | None = None
        self.partitions = {name: Partition() for name in PARTITIONS}
        self.producers: list[Producer] = []
        self.outcomes: dict[int, set[bool]] = {}
        self.told: dict[int, bool] = {}
        self.decided: dict[int, set[int]] = {}
        """The transactions whose records each decision in the log has ended."""
        self.serials = 0
        self.producer_ids = 0

    # The coordinator, as far as it is needed

    def store(self, metadata: TransactionMetadata, write: Log) -> bool:
        """Write and apply; whether the caller gets to know that it went well."""
        assert self.txn is not None
        if write is Log.REFUSES:
            self.txn.give_up()
            return False
        if write is not Log.DIES_BEFORE:
            self.log.append(metadata)
        if write is not Log.TAKES:
            self.restart()
            return False
        self.txn.apply(metadata)
        if self.txn.is_prepared:
            self.complete = self.txn.prepare_complete(self.now_ms)
        return True

    def restart(self) -> None:
        self.txn = TransactionalId("t", self.log[-1]) if self.log else None
        self.complete = None
        if self.txn is not None and self.txn.is_prepared:
            self.complete = self.txn.prepare_complete(self.now_ms)

    def next_producer_id(self) -> int:
        self.producer_ids += 1
        return self.producer_ids

    # What happens

    @rule()
    def kill(self) -> None:
        self.restart()

    @rule(ms=st.integers(1, 2 * TIMEOUT_MS))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(
        version=st.sampled_from([0, EPOCH_BUMP_VERSION]),
        write=writes,
        resumed=st.sampled_from([None, None, None, 0, 1, 2]),
    )
    def initialize(self, version: int, write: Log, resumed: int | None) -> None:
        if self.txn is None:
            self.txn = TransactionalId.new("t", self.next_producer_id(), TIMEOUT_MS, self.now_ms)
        expected = self.producers[resumed].identity if resumed is not None and resumed < len(self.producers) else None
        try:
            metadata = self.txn.initialize(TIMEOUT_MS, expected, self.next_producer_id(), version, self.now_ms)
        except BrokerError:
            return
        if self.store(metadata, write) and metadata.state is TransactionState.EMPTY:
            self.serials += 1
            identity = ProducerIdentity(metadata.producer_id, metadata.producer_epoch)
            self.producers.append(Producer(identity, version, self.serials))

    @precondition(lambda self: self.producers)
    @rule(which=st.integers(0, 9), name=st.sampled_from(PARTITIONS), write=writes)
    def produce(self, which: int, name: str, write: Log) -> None:
        producer = self.producers[which % len(self.producers)]
        partition = self.partitions[name]
        if self.txn is None or producer.asked is not None:
            return
        try:
            metadata = self.txn.add_partitions(
                *producer.identity, frozenset({(name, 0)}), producer.version, self.now_ms
            )
            if metadata is not None and not self.store(metadata, write):
                return
            if not self.txn.has_partition(*producer.identity, (name, 0)):
                return
        except BrokerError:
            return
        producer_id, epoch = producer.identity
        if epoch >= partition.epochs.get(producer_id, -1):
            partition.epochs[producer_id] = epoch
            partition.open.setdefault(producer_id, set()).add(producer.serial)
            producer.wrote = True

    @precondition(lambda self: self.producers)
    @rule(which=st.integers(0, 9), committed=st.booleans(), write=writes)
    def end(self, which: int, committed: bool, write: Log) -> None:
        """A client that was not told asks again for the same."""
        producer = self.producers[which % len(self.producers)]
        if self.txn is None or not producer.wrote:
            return
        committed = producer.asked = committed if producer.asked is None else producer.asked
        following = self.next_producer_id()
        try:
            metadata = self.txn.end(*producer.identity, committed, producer.version, following, self.now_ms)
        except BrokerError as error:
            if error.error is not Error.CONCURRENT_TRANSACTIONS:
                self.producers.remove(producer)
            return
        if metadata is not None and not self.store(metadata, write):
            return
        self.told[producer.serial] = committed
        self.serials += 1
        now = self.complete or self.txn.metadata
        if producer.version >= EPOCH_BUMP_VERSION:
            producer.identity = ProducerIdentity(now.producer_id, now.producer_epoch)
        producer.serial, producer.wrote, producer.asked = self.serials, False, None

    @precondition(lambda self: self.producers)
    @rule(which=st.integers(0, 9), names=st.permutations(PARTITIONS), committed=st.booleans(), write=writes)
    def transact(self, which: int, names: list[str], committed: bool, write: Log) -> None:
        """A whole transaction, as far as the producer gets."""
        for name in names[:2]:
            self.produce(which, name, Log.TAKES)
        self.end(which, committed, write)

    @precondition(lambda self: self.complete is not None)
    @rule()
    def settle(self) -> None:
        """Everything that is decided is carried out."""
        while self.complete is not None:
            self.write_marker(forgets=False)
            assert self.txn is not None
            if not self.txn.unmarked:
                self.finish(Log.TAKES)

    @rule(version=st.sampled_from([0, EPOCH_BUMP_VERSION]), write=writes)
    def time_out(self, version: int, write: Log) -> None:
        if self.txn is not None and self.txn.timed_out(self.now_ms):
            self.store(self.txn.fence(version, self.now_ms), write)

    @precondition(lambda self: self.complete is not None)
    @rule(forgets=st.booleans())
    def write_marker(self, forgets: bool) -> None:
        """One marker; with `forgets` the coordinator dies before it knows."""
        assert self.txn is not None
        for name, index in sorted(self.txn.unmarked)[:1]:
            partition, metadata = self.partitions[name], self.txn.metadata
            assert partition.epochs.get(metadata.producer_id, -1) <= metadata.producer_epoch
            partition.epochs[metadata.producer_id] = metadata.producer_epoch
            decision = sum(each.state in PREPARED for each in self.log)
            for serial in partition.open.pop(metadata.producer_id, ()):
                self.decided.setdefault(decision, set()).add(serial)
                self.outcomes.setdefault(serial, set()).add(metadata.state is TransactionState.PREPARE_COMMIT)
            if forgets:
                self.restart()
            else:
                self.txn.unmarked.discard((name, index))

    @precondition(lambda self: self.complete is not None and self.txn is not None and not self.txn.unmarked)
    @rule(write=writes)
    def finish(self, write: Log) -> None:
        assert self.txn is not None
        assert self.complete is not None
        if write is Log.REFUSES:
            return
        complete, self.complete = self.complete, None
        self.store(complete, write)

    # What holds

    @invariant()
    def a_transaction_ends_in_one_way(self) -> None:
        assert all(len(outcomes) == 1 for outcomes in self.outcomes.values())

    @invariant()
    def a_decision_ends_one_transaction(self) -> None:
        assert all(len(serials) == 1 for serials in self.decided.values())

    @invariant()
    def a_producer_was_told_the_truth(self) -> None:
        for serial, committed in self.told.items():
            assert self.outcomes.get(serial, {committed}) == {committed}

    @invariant()
    def memory_holds_what_the_log_does(self) -> None:
        if self.txn is not None and self.log:
            now, stored = self.txn.metadata, self.log[-1]
            assert (now.state, now.producer_id, now.producer_epoch) == (
                stored.state,
                stored.producer_id,
                stored.producer_epoch,
            )

    def teardown(self) -> None:
        """Left alone, everything comes to an end."""
        self.restart()
        self.now_ms += 10 * TIMEOUT_MS
        self.time_out(EPOCH_BUMP_VERSION, Log.TAKES)
        self.settle()
        assert not any(serials for partition in self.partitions.values() for serials in partition.open.values())
        self.a_transaction_ends_in_one_way()
        self.a_producer_was_told_the_truth()


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=150, stateful_step_count=40)
