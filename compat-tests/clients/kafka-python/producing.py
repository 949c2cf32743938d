"""What kafka-python's producer does."""

from __future__ import annotations

from collections import deque
from typing import Any

import kafka
from background import ACKNOWLEDGE_TIMEOUT_S, IN_FLIGHT, Background, begin
from library import BOOTSTRAP, known
from serving import operation, to_bytes


@operation
def produce(
    topic: str,
    records: list[dict[str, Any]],
    compression: str | None = None,
    idempotent: bool = False,
    max_request_bytes: int = 1 << 20,
) -> list[list[int]]:
    """Send all, then wait for all; return [partition, offset] of each."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        acks="all",
        linger_ms=20,
        compression_type=compression,
        max_request_size=max_request_bytes,
        **known(kafka.KafkaProducer, enable_idempotence=idempotent),
    )
    try:
        futures = [
            producer.send(
                topic,
                key=to_bytes(record.get("key")),
                value=to_bytes(record.get("value")),
                headers=[(name, to_bytes(value)) for name, value in record.get("headers", [])],
                partition=record.get("partition"),
                timestamp_ms=record.get("timestamp"),
            )
            for record in records
        ]
        producer.flush(timeout=30)
        sent = [future.get(timeout=10) for future in futures]
    finally:
        producer.close(timeout=5)
    return [[metadata.partition, metadata.offset] for metadata in sent]


class _Background(Background):
    def produce(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=BOOTSTRAP,
            acks="all",
            retries=1_000_000,
            request_timeout_ms=ACKNOWLEDGE_TIMEOUT_S * 1000,  # in 2.0 and 1.4 also how long a record may wait
            reconnect_backoff_max_ms=500,
            **known(kafka.KafkaProducer, enable_idempotence=True),
        )
        pending: deque[tuple[str, Any]] = deque()
        number = 0
        try:
            while pending or not self.stopping:
                while len(pending) < IN_FLIGHT and not self.stopping:
                    value = f"number {number}"
                    pending.append((value, producer.send(self.topic, value=value.encode())))
                    number += 1
                value, future = pending.popleft()
                metadata = future.get(timeout=ACKNOWLEDGE_TIMEOUT_S)
                self.acknowledge(metadata.partition, metadata.offset, value)
        finally:
            producer.close(timeout=5)


@operation
def start_producing(topic: str) -> None:
    """Begin to produce in the background, with an idempotent producer where the release has one."""
    begin(_Background(topic))
