"""Copies a topic in transactions until it is killed: consume, transform, produce, commit the offsets with it (KIP-447).

copy_loop.py BOOTSTRAP SOURCE COPY GROUP INSTANCE

An instance is a member of the group and has a transactional id of its own. What it cannot go on with ends the process.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import confluent_kafka

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.1
_TIMEOUT_S = 60
_MOST_IN_A_TRANSACTION = 10


class Loop:
    """One instance. The rebalance callbacks run inside `consume` only, so that no partition goes in a transaction."""

    def __init__(self, bootstrap: str, source: str, copy: str, group: str, instance: str) -> None:
        self._copy = copy
        self._metadata: Any = None
        # A producer that starts from the bootstrap servers again, as by default, may wait for its old group coordinator
        # for ever (librdkafka issue 5511).
        strategy = {"metadata.recovery.strategy": "none"}
        shared = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, **strategy}
        self._producer = confluent_kafka.Producer(
            {**shared, "transactional.id": f"{group}-{instance}", "transaction.timeout.ms": 20_000, "linger.ms": 0}
        )
        self._repeat(self._producer.init_transactions)
        self._consumer = confluent_kafka.Consumer(
            {
                **shared,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
            }
        )
        self._consumer.subscribe([source], on_assign=self._assigned, on_revoke=self._revoked)

    def run(self) -> None:
        """Copy for ever."""
        while True:
            records = self._consumer.consume(random.randint(1, _MOST_IN_A_TRANSACTION), _POLL_S)
            records = [record for record in records if record.error() is None]
            if records:
                try:
                    self._copy_all(records)
                except confluent_kafka.KafkaException as error:
                    if not error.args[0].txn_requires_abort():
                        raise
                    print(f"aborts: {error}", file=sys.stderr)
                    self._repeat(self._producer.abort_transaction)
                    self._rewind()

    def _copy_all(self, records: list[confluent_kafka.Message]) -> None:
        following: dict[int, confluent_kafka.TopicPartition] = {}
        self._producer.begin_transaction()
        for record in records:
            self._producer.produce(self._copy, b"copy of " + record.value(), record.key())
            following[record.partition()] = confluent_kafka.TopicPartition(
                record.topic(), record.partition(), record.offset() + 1
            )
        offsets = list(following.values())
        self._repeat(lambda: self._producer.send_offsets_to_transaction(offsets, self._metadata))
        self._repeat(self._producer.commit_transaction)

    def _repeat(self, call: Callable[[], Any]) -> None:
        """Call until it is done: librdkafka says which calls go on where they were."""
        while True:
            try:
                call()
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def _rewind(self) -> None:
        """Read on from what is committed."""
        for partition in self._consumer.committed(self._consumer.assignment(), _TIMEOUT_S):
            if partition.offset < 0:
                partition.offset = confluent_kafka.OFFSET_BEGINNING
            self._consumer.seek(partition)

    def _assigned(self, consumer: confluent_kafka.Consumer, _: list[confluent_kafka.TopicPartition]) -> None:
        """Keep the generation that gave the partitions: when they are another's, the broker refuses their offsets."""
        self._metadata = consumer.consumer_group_metadata()

    def _revoked(self, *_: object) -> None:
        """Wait for `consume` before partitions are given back, which is what librdkafka does for who has a callback."""


if __name__ == "__main__":
    Loop(*sys.argv[1:]).run()
