"""confluent-kafka with the oldest protocol that librdkafka speaks: it does not ask the broker what it understands."""

from __future__ import annotations

import sys
from typing import Any

import confluent_kafka
from serving import Deadline, operation, serve, to_bytes, to_text

_POLL_S = 0.1


def _config(broker: list[int]) -> dict[str, Any]:
    return {
        "bootstrap.servers": sys.argv[1],
        "api.version.request": False,
        "broker.version.fallback": ".".join(map(str, broker)),
    }


@operation
def produce(topic: str, records: list[dict[str, Any]], codec: str | None, broker: list[int]) -> list[int]:
    """Send all, then wait for all; return the offsets."""
    offsets: list[int] = []

    def acknowledged(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            raise confluent_kafka.KafkaException(error)
        offsets.append(message.offset())

    producer = confluent_kafka.Producer({**_config(broker), "compression.codec": codec or "none", "linger.ms": 50})
    for record in records:
        producer.produce(
            topic, key=to_bytes(record["key"]), value=to_bytes(record["value"]), partition=0, on_delivery=acknowledged
        )
    if producer.flush(30):
        raise TimeoutError(f"{len(offsets)} of {len(records)} are acknowledged")
    return offsets


@operation
def read(topic: str, count: int, broker: list[int], offset: int = 0) -> list[dict[str, Any]]:
    """Read from an offset on; return the records without their partition."""
    consumer = confluent_kafka.Consumer({**_config(broker), "group.id": "none", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
    records: list[dict[str, Any]] = []
    deadline = Deadline(30)
    try:
        while len(records) < count:
            deadline.check(records)
            message = consumer.poll(_POLL_S)
            if message is None:
                continue
            if message.error():
                raise confluent_kafka.KafkaException(message.error())
            records.append(
                {"offset": message.offset(), "key": to_text(message.key()), "value": to_text(message.value())}
            )
    finally:
        consumer.close()
    return records


serve()
