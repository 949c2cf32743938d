"""What confluent-kafka does in transactions."""

from __future__ import annotations

import confluent_kafka
from library import BOOTSTRAP, TIMEOUT_S, checked
from serving import Deadline, operation

_POLL_S = 0.1


@operation
def copy_in_transactions(source: str, copy: str, group: str, batch: int) -> int:
    """Copy a topic in transactions of `batch` records with their offsets, every third one aborted and done again.

    Return how many were committed.
    """
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    producer = confluent_kafka.Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": group})
    producer.init_transactions(TIMEOUT_S)
    consumer.assign([confluent_kafka.TopicPartition(source, 0, 0)])
    _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(source, 0), TIMEOUT_S)
    position = committed = rounds = 0
    while position < end:
        records = _some_records(consumer, min(batch, end - position))
        rounds += 1
        producer.begin_transaction()
        for record in records:
            producer.produce(copy, record.value(), record.key())
        following = confluent_kafka.TopicPartition(source, 0, records[-1].offset() + 1)
        producer.send_offsets_to_transaction([following], consumer.consumer_group_metadata(), TIMEOUT_S)
        if rounds % 3 == 0:
            producer.abort_transaction(TIMEOUT_S)
            consumer.seek(confluent_kafka.TopicPartition(source, 0, records[0].offset()))
        else:
            producer.commit_transaction(TIMEOUT_S)
            position = following.offset
            committed += 1
    consumer.close()
    return committed


def _some_records(consumer: confluent_kafka.Consumer, count: int) -> list[confluent_kafka.Message]:
    """Return the next `count` records."""
    records: list[confluent_kafka.Message] = []
    deadline = Deadline(TIMEOUT_S)
    while len(records) < count:
        deadline.check(f"{len(records)} records")
        message = consumer.poll(_POLL_S)
        if message is not None:
            records.append(checked(message))
    return records


@operation
def leave_open(topic: str, transactional_id: str) -> None:
    """Begin a transaction with one record, and let go of it."""
    producer = confluent_kafka.Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(topic, b"left")
    producer.flush(TIMEOUT_S)
