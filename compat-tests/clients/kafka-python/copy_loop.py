"""Copies a topic in transactions until it is killed: consume, transform, produce, commit the offsets with it (KIP-447).

copy_loop.py BOOTSTRAP SOURCE COPY GROUP INSTANCE

An instance is a member of the group and has a transactional id of its own. Whatever fails ends the process: a producer
of 3.0.12 keeps the offsets of a transaction that failed, and commits them with the next one.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import kafka
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.structs import OffsetAndMetadata

if TYPE_CHECKING:
    from collections.abc import Collection

_POLL_MS = 3_000  # 3.0.12 may drop an assignment that comes between two polls
_MOST_IN_A_TRANSACTION = 10

Records = dict[kafka.TopicPartition, list[Any]]


class Loop(ConsumerRebalanceListener):
    """One instance. Its listener may run in the client's own thread, in the middle of a transaction."""

    def __init__(self, bootstrap: str, source: str, copy: str, group: str, instance: str) -> None:
        self._copy = copy
        self._metadata: Any = None
        shared = {"bootstrap_servers": bootstrap, "reconnect_backoff_max_ms": 500}
        self._producer = kafka.KafkaProducer(
            **shared, transactional_id=f"{group}-{instance}", transaction_timeout_ms=20_000
        )
        self._producer.init_transactions()
        self._consumer = kafka.KafkaConsumer(
            **shared,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
        )
        self._consumer.subscribe([source], listener=self)

    def run(self) -> None:
        """Copy for ever."""
        while True:
            metadata = self._metadata
            records = self._consumer.poll(_POLL_MS, max_records=random.randint(1, _MOST_IN_A_TRANSACTION))
            if not records:
                continue
            if metadata is None:
                self._rewind()
                continue
            self._copy_all(records, metadata)

    def _copy_all(self, records: Records, metadata: Any) -> None:
        self._producer.begin_transaction()
        for record in (record for batch in records.values() for record in batch):
            self._producer.send(self._copy, b"copy of " + record.value, record.key)
        following = {partition: OffsetAndMetadata(batch[-1].offset + 1, "", -1) for partition, batch in records.items()}
        self._producer.send_offsets_to_transaction(following, metadata)
        self._producer.commit_transaction()

    def _rewind(self) -> None:
        """Read on from what is committed."""
        for partition in self._consumer.assignment():
            self._consumer.seek(partition, self._consumer.committed(partition) or 0)

    def on_partitions_assigned(self, _: Collection[kafka.TopicPartition]) -> None:
        """Keep the generation that gave the partitions: when they are another's, the broker refuses their offsets."""
        self._metadata = self._consumer.group_metadata()

    def on_partitions_revoked(self, revoked: Collection[kafka.TopicPartition]) -> None:
        """There is nothing to do: what is being copied is refused when it names its generation."""


if __name__ == "__main__":
    Loop(*sys.argv[1:]).run()
