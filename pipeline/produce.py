"""Sending generated records with kafka-python, at the rate of their plan, and noting what was acknowledged.

Views, searches and profiles go through an idempotent producer, clicks through a transactional one. Both try again until
`DELIVERY_TIMEOUT_MS` has passed, so a broker that is killed and comes back costs time and nothing else. A note beside
the data, `produced.json`, says which records were sent: a plan and a number, as the generator gives the same again.
"""

import itertools
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final, Self

from kafka import KafkaProducer
from kafka.producer.future import FutureRecordMetadata

from pipeline.generator import Fate, Plan, Record, generate

__all__ = ["Producer", "produce", "read_note", "write_note"]

DELIVERY_TIMEOUT_MS: Final = 120_000
TRANSACTION_TIMEOUT_MS: Final = 60_000
_FLUSH_EVERY_S: Final = 0.5


class Producer:
    """The two producers of a website."""

    def __init__(self, bootstrap_servers: str, transactional_id: str) -> None:
        common = {"bootstrap_servers": bootstrap_servers, "acks": "all", "linger_ms": 20}
        common |= {"delivery_timeout_ms": DELIVERY_TIMEOUT_MS, "max_block_ms": DELIVERY_TIMEOUT_MS}
        self._plain = KafkaProducer(**common)
        self._transactional = KafkaProducer(
            **common, transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        self._transactional.init_transactions()
        self._open: Record | None = None
        self._sent: list[FutureRecordMetadata] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, record: Record) -> None:
        """Send a record; a click of another transaction ends the one before."""
        producer = self._plain
        if record.transaction is not None:
            producer = self._transactional
            if self._open is None or self._open.transaction != record.transaction:
                self.end_transaction()
                producer.begin_transaction()
                self._open = record
        self._sent.append(
            producer.send(
                record.topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp_ms=record.timestamp_ms,
            )
        )

    def end_transaction(self) -> None:
        """Commit or abort the transaction that is open, as its records have it."""
        if self._open is None:
            return
        if self._open.fate is Fate.ABORTED:
            self._transactional.flush()
            self._transactional.abort_transaction()
        else:
            self._transactional.commit_transaction()
        self._open = None

    def flush(self) -> None:
        """Wait until all that was sent is acknowledged; raises what it failed with."""
        self._plain.flush()
        self._transactional.flush()
        for sent in self._sent:
            sent.get(0)
        self._sent.clear()

    def close(self) -> None:
        """Give up what is open, and the connections."""
        self._plain.close()
        self._transactional.close()


def produce(bootstrap_servers: str, plan: Plan, seconds: float, note: Path, first: int = 0) -> int:
    """Send the records of `plan` that are due within `seconds`, each when it is due; return how many those are.

    `first` says how many to leave out, as they were sent before.
    """
    end_ms = plan.start_ms + int(seconds * 1000)
    records = itertools.takewhile(lambda record: record.timestamp_ms < end_ms, generate(plan))
    count = first
    with Producer(bootstrap_servers, f"website-{plan.seed}") as producer:
        for group in _due(itertools.islice(records, first, None)):
            for record in group:
                producer.send(record)
            count += len(group)
            producer.flush()
        producer.end_transaction()
    write_note(note, plan, count)
    return count


def _due(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Groups of records, each given when its last one is due."""
    group: list[Record] = []
    for record in records:
        if group and record.timestamp_ms >= group[0].timestamp_ms + _FLUSH_EVERY_S * 1000:
            _wait_until(group[-1].timestamp_ms)
            yield group
            group = []
        group.append(record)
    yield group


def _wait_until(time_ms: int) -> None:
    time.sleep(max(time_ms / 1000 - time.time(), 0))


def write_note(path: Path, plan: Plan, count: int) -> None:
    """Note that the first `count` records of `plan` were produced."""
    path.write_text(json.dumps({"count": count, "plan": asdict(plan)}, indent=1))


def read_note(path: Path) -> list[Record]:
    """The records that a note says were produced."""
    note = json.loads(path.read_text())
    return list(itertools.islice(generate(Plan(**note["plan"])), note["count"]))
