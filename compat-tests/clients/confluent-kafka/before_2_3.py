"""The operations for which the admin client has calls that work since 2.3, with what the releases before it have."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import admin
from library import BOOTSTRAP, TIMEOUT_S
from serving import operation

if TYPE_CHECKING:
    from collections.abc import Iterator

_admin = admin.AdminClient({"bootstrap.servers": BOOTSTRAP})


@contextmanager
def _consumer(group: str = "not a member") -> Iterator[confluent_kafka.Consumer]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group})
    try:
        yield consumer
    finally:
        consumer.close()


@operation
def count_partitions(topic: str) -> int:
    """Return how many partitions the topic has, as the metadata say."""
    described = _admin.list_topics(topic, TIMEOUT_S).topics[topic]
    if described.error is not None:
        raise confluent_kafka.KafkaException(described.error)
    return len(described.partitions)


@operation
def offset_range(topic: str) -> list[list[int]]:
    """Return [beginning, end] of each partition."""
    partitions = [confluent_kafka.TopicPartition(topic, index) for index in range(count_partitions(topic))]
    with _consumer() as consumer:
        return [list(consumer.get_watermark_offsets(partition, TIMEOUT_S)) for partition in partitions]


@operation
def find_offsets(topic: str, partition: int, timestamps: list[int]) -> list[list[int] | None]:
    """Return [offset, timestamp] of the first record at or after each timestamp, None where there is none.

    The library tells the offset alone; the timestamp is the record's.
    """
    answer: list[list[int] | None] = []
    with _consumer() as consumer:
        for timestamp in timestamps:
            asked = confluent_kafka.TopicPartition(topic, partition, timestamp)
            [found] = consumer.offsets_for_times([asked], TIMEOUT_S)
            if found.offset < 0:
                answer.append(None)
                continue
            consumer.assign([found])
            [record] = consumer.consume(1, TIMEOUT_S)
            answer.append([found.offset, record.timestamp()[1]])
    return answer


@operation
def committed(group: str, topic: str, partition: int) -> int | None:
    """Return the group's committed offset, by a consumer: the admin client can crash while the group is loaded."""
    with _consumer(group) as consumer:
        [found] = consumer.committed([confluent_kafka.TopicPartition(topic, partition)], TIMEOUT_S)
    if found.error is not None:
        raise confluent_kafka.KafkaException(found.error)
    return None if found.offset < 0 else found.offset


@operation
def alter_topic_config(topic: str, configs: dict[str, str]) -> None:
    """Replace the settings of a topic."""
    [altered] = _admin.alter_configs([admin.ConfigResource("topic", topic, set_config=configs)]).values()
    altered.result(TIMEOUT_S)


@operation
def describe_cluster() -> dict[str, Any]:
    """Return the cluster's id, controller and [id, host, port] of its nodes."""
    described = _admin.list_topics(timeout=TIMEOUT_S)
    return {
        "cluster_id": described.cluster_id,
        "controller": described.controller_id,
        "nodes": [[node.id, node.host, node.port] for node in described.brokers.values()],
    }
