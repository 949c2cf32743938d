"""kafka-python 1.4, told of which age the broker is: 0.8 and 0.9 speak record format 0, 0.10 speaks format 1."""

from __future__ import annotations

import sys
from typing import Any

import kafka
from serving import Deadline, operation, serve, to_bytes, to_text

_BOOTSTRAP = sys.argv[1]
_POLL_MS = 100


@operation
def produce(topic: str, records: list[dict[str, Any]], codec: str | None, broker: list[int]) -> list[int]:
    """Send all, then wait for all; return the offsets."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=_BOOTSTRAP, api_version=tuple(broker), acks="all", linger_ms=50, compression_type=codec
    )
    try:
        futures = [
            producer.send(topic, key=to_bytes(record["key"]), value=to_bytes(record["value"])) for record in records
        ]
        producer.flush(timeout=30)
        return [future.get(timeout=10).offset for future in futures]
    finally:
        producer.close(timeout=5)


@operation
def read(topic: str, count: int, broker: list[int], offset: int = 0) -> list[dict[str, Any]]:
    """Read from an offset on; return the records without their partition."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP, api_version=tuple(broker), group_id=None)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    try:
        return _poll(consumer, count)
    finally:
        consumer.close()


@operation
def read_in_group(topic: str, group: str, count: int, broker: list[int]) -> int:
    """Read as a member of a group and commit; return what another member of the group finds committed."""
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=_BOOTSTRAP, api_version=tuple(broker), group_id=group, auto_offset_reset="earliest"
    )
    try:
        _poll(consumer, count)
        consumer.commit()
    finally:
        consumer.close(autocommit=False)
    other = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP, api_version=tuple(broker), group_id=group)
    try:
        return int(other.committed(kafka.TopicPartition(topic, 0)))
    finally:
        other.close(autocommit=False)


def _poll(consumer: Any, count: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    deadline = Deadline(30)
    while len(records) < count:
        deadline.check(records)
        for found in consumer.poll(timeout_ms=_POLL_MS).values():
            records += [{"offset": one.offset, "key": to_text(one.key), "value": to_text(one.value)} for one in found]
    return records


serve()
