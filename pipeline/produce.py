"""Sending generated records with kafka-python, at the rate of their plan, and noting what was acknowledged.

Views, searches and profiles go through an idempotent producer, which tries again until `DELIVERY_TIMEOUT_MS` has
passed; clicks go in transactions. So a broker that is killed and comes back costs time and nothing else. A note beside
the data, `produced.json`, says which records were sent: a plan and a number, as the generator gives the same again.
"""

import itertools
import json
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final, Self

from kafka import KafkaProducer
from kafka.producer.future import FutureRecordMetadata

from pipeline.generator import Plan, Record, generate
from pipeline.transactions import Transactions

__all__ = ["Producer", "produce", "read_note", "write_note"]

DELIVERY_TIMEOUT_MS: Final = 120_000
_FLUSH_EVERY_S: Final = 0.5


class Producer:
    """The two producers of a website."""

    def __init__(self, bootstrap_servers: str, transactional_id: str, group: str) -> None:
        self._plain = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            acks="all",
            linger_ms=20,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            max_block_ms=DELIVERY_TIMEOUT_MS,
        )
        self._transactions = Transactions(bootstrap_servers, transactional_id, group)
        self._sent: list[FutureRecordMetadata] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, record: Record) -> None:
        """Send a record: on its own, or in its transaction."""
        if record.transaction is None:
            self._sent.append(self._plain.send(**record.arguments()))
        else:
            self._transactions.send(record)

    def flush(self) -> None:
        """Wait until all that was sent on its own is acknowledged; raises what it failed with."""
        self._plain.flush(DELIVERY_TIMEOUT_MS / 1000)
        for sent in self._sent:
            sent.get(0)
        self._sent.clear()

    def end_transaction(self) -> None:
        """Commit or abort the transaction that is open, as its records have it."""
        self._transactions.end()

    def close(self) -> None:
        """Give up what is open, and the connections."""
        self._plain.close()
        self._transactions.close()


def produce(bootstrap_servers: str, plan: Plan, seconds: float, note: Path, stop: threading.Event) -> int:
    """Send the records of `plan` that are due within `seconds`, each when it is due; return how many those are.

    What is due before now is sent at once. When `stop` is set, the last record is the one that was sent last.
    """
    end_ms = plan.start_ms + seconds * 1000
    records = itertools.takewhile(lambda record: record.timestamp_ms < end_ms, generate(plan))
    count = 0
    name = f"website-{plan.seed}"
    with Producer(bootstrap_servers, name, f"{name}-{plan.start_ms}") as producer:
        for group in _groups(records):
            if stop.wait(max(group[-1].timestamp_ms / 1000 - time.time(), 0)):
                break
            for record in group:
                producer.send(record)
            count += len(group)
            producer.flush()
        producer.end_transaction()
    write_note(note, plan, count)
    return count


def _groups(records: Iterable[Record]) -> Iterator[list[Record]]:
    """The records of each `_FLUSH_EVERY_S`."""
    group: list[Record] = []
    for record in records:
        if group and record.timestamp_ms >= group[0].timestamp_ms + _FLUSH_EVERY_S * 1000:
            yield group
            group = []
        group.append(record)
    yield group


def write_note(path: Path, plan: Plan, count: int) -> None:
    """Note that the first `count` records of `plan` were produced."""
    path.write_text(json.dumps({"count": count, "plan": asdict(plan)}, indent=1))


def read_note(path: Path) -> list[Record]:
    """The records that a note says were produced."""
    note = json.loads(path.read_text())
    return list(itertools.islice(generate(Plan(**note["plan"])), note["count"]))
