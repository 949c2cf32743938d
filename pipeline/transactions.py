"""Transactions one after the other, each done exactly once, whatever becomes of broker, connections and client.

A client can ask for a commit and never hear what became of it. So each commit holds the number of the next transaction,
as an offset of a group made for this: it is there if and only if the records are. When a transaction fails, or does not
end in time, a new producer takes over the transactional id. From then on the broker refuses the old one, and it ends
what that left open; then the offset says what became of the transaction.

    begin  record ... record  offset: number + 1  commit ──> done
                    error, or no answer ──> new producer ──> the offset is there: done
                                                        └──> it is not: the same again, from begin
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata
from kafka.structs import OffsetAndMetadata

from pipeline.generator import Fate, Record
from pipeline.topics import AD_CLICKS

__all__ = ["Transactions"]

STALL_S: Final = 20.0
"""How long the end of a transaction may take until a new producer tries: longer than a broker takes to start."""

GIVE_UP_S: Final = 120.0

_PROGRESS: Final = TopicPartition(AD_CLICKS, 0)
"""The partition that the group's offset is said to be of; any that exists will do."""

_CLOSE_S: Final = 1.0

_log = logging.getLogger(__name__)


class Transactions:
    """Sends records in the transactions that they name; one is open at a time."""

    def __init__(self, bootstrap_servers: str, transactional_id: str, group: str, stall_s: float = STALL_S) -> None:
        """Take over `transactional_id`. `group` keeps the numbers of this sequence of transactions, and no others."""
        self._bootstrap_servers = bootstrap_servers
        self._transactional_id = transactional_id
        self._group = group
        self._stall_s = stall_s
        self._open: list[Record] = []
        self._sent: list[FutureRecordMetadata] = []
        self._in_doubt = False
        self._producer: KafkaProducer | None = None
        self._take_over()

    def send(self, record: Record) -> None:
        """Send a record; one of another transaction ends the one before."""
        if self._open and self._open[0].transaction != record.transaction:
            self.end()
        self._open.append(record)
        if not self._in_doubt:
            self._in_doubt = not self._is_sent(self._open[-1:])

    def end(self) -> None:
        """Commit or abort the transaction that is open, as its records have it.

        Raises:
            TimeoutError: it is not done after `GIVE_UP_S`.
        """
        if not self._open:
            return
        deadline = time.monotonic() + GIVE_UP_S
        done = not self._in_doubt and self._is_ended()
        while not done:
            if time.monotonic() > deadline:
                raise TimeoutError(f"transaction {self._number} of {self._transactional_id} is not done")
            _log.warning("transaction %d of %s: a new producer tries", self._number, self._transactional_id)
            done = self._is_done_again()
        self._open.clear()
        self._in_doubt = False

    def close(self) -> None:
        """Give up what is open, and the connections."""
        if self._producer is not None:
            # What a producer that stands still was to send is of no use to anybody.
            with suppress(KafkaError):
                self._producer.close(timeout=_CLOSE_S)

    @property
    def _number(self) -> int:
        assert self._open[0].transaction is not None
        return self._open[0].transaction

    @property
    def _aborts(self) -> bool:
        return self._open[0].fate is Fate.ABORTED

    def _take_over(self) -> None:
        self.close()
        self._sent.clear()
        self._producer = KafkaProducer(
            bootstrap_servers=self._bootstrap_servers,
            transactional_id=self._transactional_id,
            acks="all",
            linger_ms=20,
            max_block_ms=self._stall_s * 1000,
        )
        self._producer.init_transactions()

    def _is_sent(self, records: Sequence[Record]) -> bool:
        assert self._producer is not None
        try:
            if records[0] is self._open[0]:
                self._producer.begin_transaction()
            self._sent += [self._producer.send(**record.arguments()) for record in records]
        except KafkaError:
            return False
        return True

    def _is_ended(self) -> bool:
        """End the transaction; tell whether that is certain."""
        producer, sent, aborts, after = self._producer, list(self._sent), self._aborts, self._number + 1
        assert producer is not None

        def end() -> None:
            producer.flush()
            for one in sent:
                one.get(0)
            if aborts:
                producer.abort_transaction()
            else:
                producer.send_offsets_to_transaction({_PROGRESS: OffsetAndMetadata(after)}, self._group)
                producer.commit_transaction()

        self._sent.clear()
        return _ends_well(end, self._stall_s)

    def _is_done_again(self) -> bool:
        """Take over, and do the transaction again unless it was done; tell whether it is done for certain."""
        try:
            self._take_over()
            if self._aborts or self._was_committed():
                return True
        except KafkaError:
            return False
        return self._is_sent(self._open) and self._is_ended()

    def _was_committed(self) -> bool:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap_servers,
            group_id=self._group,
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        try:
            offset = consumer.committed(_PROGRESS, timeout_ms=self._stall_s * 1000)
        finally:
            consumer.close()
        return offset is not None and offset > self._number


def _ends_well(work: Callable[[], None], seconds: float) -> bool:
    """Whether `work` ends in this time and without an error of Kafka's; a thread that does not is left to itself."""
    ended = threading.Event()

    def run() -> None:
        with suppress(KafkaError):
            work()
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return ended.is_set()
