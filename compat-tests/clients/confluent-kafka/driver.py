"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import transactions  # noqa: F401 - its operations
from background import IN_FLIGHT, Background, begin, stop_all
from confluent_kafka import admin
from library import BOOTSTRAP, TIMEOUT_S, checked
from members import Member, close_all, members
from serving import Deadline, operation, serve, to_bytes, to_text

_POLL_S = 0.1
_NO_OFFSET = -1001  # librdkafka's "invalid", its answer for a group that has committed nothing
_ASSIGNOR_SETTINGS = {"classic": "partition.assignment.strategy", "consumer": "group.remote.assignor"}
_CLASSIC_PROTOCOL = {
    "partition.assignment.strategy": "range",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 500,
}
_CONSUMER_PROTOCOL = {"group.protocol": "consumer"}  # the broker has its times

_admin = admin.AdminClient({"bootstrap.servers": BOOTSTRAP})


def _one(futures: dict[Any, Any]) -> Any:
    [future] = futures.values()
    return future.result(TIMEOUT_S)


def _record(message: confluent_kafka.Message) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": to_text(message.key()),
        "value": to_text(message.value()),
        "headers": [[name, to_text(value)] for name, value in message.headers() or []],
    }


@operation
def produce(
    topic: str,
    records: list[dict[str, Any]],
    compression: str | None = None,
    idempotent: bool = False,
    max_request_bytes: int = 1 << 20,
) -> list[list[int]]:
    """Send all, then wait for all; return [partition, offset] of each."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "acks": "all",
            "linger.ms": 20,
            "compression.type": compression or "none",
            "enable.idempotence": idempotent,
            "message.max.bytes": max_request_bytes,
        }
    )
    sent: dict[int, list[int]] = {}
    errors: list[confluent_kafka.KafkaError] = []

    def delivered(number: int, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            errors.append(error)
        else:
            sent[number] = [message.partition(), message.offset()]

    for number, record in enumerate(records):
        optional = {key: record[key] for key in ("partition", "timestamp") if key in record}
        producer.produce(
            topic,
            key=to_bytes(record.get("key")),
            value=to_bytes(record.get("value")),
            headers=[(name, to_bytes(value)) for name, value in record.get("headers", [])],
            on_delivery=lambda error, message, number=number: delivered(number, error, message),
            **optional,
        )
    left = producer.flush(TIMEOUT_S)
    if errors:
        raise confluent_kafka.KafkaException(errors[0])
    if left:
        raise TimeoutError(f"{left} of {len(records)} records were not acknowledged")
    return [sent[number] for number in range(len(records))]


class _Background(Background):
    def produce(self) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True, "reconnect.backoff.max.ms": 500}
        )
        number = 0
        while len(producer) or not self.stopping:
            while len(producer) < IN_FLIGHT and not self.stopping:
                producer.produce(self.topic, value=f"number {number}".encode(), on_delivery=self._delivered)
                number += 1
            producer.poll(_POLL_S)

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.fail(confluent_kafka.KafkaException(error))
        else:
            self.acknowledge(message.partition(), message.offset(), message.value().decode())


@operation
def start_producing(topic: str) -> None:
    """Begin to produce in the background with an idempotent producer."""
    begin(_Background(topic))


class _Consumer(Member):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.client = confluent_kafka.Consumer(settings)

    def subscribe(self, topics: list[str]) -> None:
        self.client.subscribe(
            topics,
            on_assign=lambda _, partitions: self.moved("assigned", partitions),
            on_revoke=lambda _, partitions: self.moved("revoked", partitions),
        )

    def take(self, at_most: int) -> list[dict[str, Any]]:
        return [_record(checked(message)) for message in self.client.consume(at_most, _POLL_S)]

    def held(self) -> list[confluent_kafka.TopicPartition]:
        return self.client.assignment()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """librdkafka can seek only what it reads already, so this assigns anew."""
        self.client.assign([confluent_kafka.TopicPartition(topic, partition, offset)])

    def commit(self) -> None:
        for partition in self.client.commit(asynchronous=False):
            if partition.error is not None:
                raise confluent_kafka.KafkaException(partition.error)

    def close(self) -> None:
        self.client.close()


@operation
def open_consumer(
    name: str,
    topics: list[str] | None = None,
    partitions: list[list[Any]] | None = None,
    group: str | None = None,
    instance: str | None = None,
    assignor: str | None = None,
    isolation: str = "read_uncommitted",
    protocol: str = "classic",
) -> None:
    """Open a consumer that subscribes to `topics` in `group`, or that reads the given [topic, partition]s."""
    settings: dict[str, Any] = {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": group or "not a member",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "topic.metadata.refresh.interval.ms": 5_000,
        **(_CONSUMER_PROTOCOL if protocol == "consumer" else _CLASSIC_PROTOCOL),
    }
    if assignor is not None:
        settings[_ASSIGNOR_SETTINGS[protocol]] = assignor
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = members[name] = _Consumer(settings)
    if topics is not None:
        consumer.subscribe(topics)
    if partitions is not None:
        consumer.client.assign([confluent_kafka.TopicPartition(*partition) for partition in partitions])


@operation
def member_id(name: str) -> str:
    """Return the id that the broker gave to the consumer."""
    consumer = members[name]
    assert isinstance(consumer, _Consumer)
    return consumer.client.memberid()


@operation
def read_all(topic: str, timeout_s: float = 60) -> list[dict[str, Any]]:
    """Return every record between the beginning and the end of the topic, by partition and offset."""
    deadline = Deadline(timeout_s)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": "not a member",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    records: list[dict[str, Any]] = []
    try:
        waiting = set(consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions)
        consumer.assign(
            [confluent_kafka.TopicPartition(topic, index, confluent_kafka.OFFSET_BEGINNING) for index in waiting]
        )
        while waiting:
            deadline.check(len(records))
            for message in consumer.consume(1000, _POLL_S):
                error = message.error()
                if error is not None and error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
                else:
                    records.append(_record(checked(message)))
    finally:
        consumer.close()
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


@operation
def offset_range(topic: str) -> list[list[int]]:
    """Return [beginning, end] of each partition."""
    return [
        [list_offset(topic, index, spec) for spec in ("earliest", "latest")] for index in range(count_partitions(topic))
    ]


@operation
def list_offset(topic: str, partition: int, spec: str) -> int:
    """Return what ListOffsets says for "earliest", "latest" or "max_timestamp"."""
    return _list_offset(topic, partition, getattr(admin.OffsetSpec, spec)()).offset


def _list_offset(topic: str, partition: int, spec: admin.OffsetSpec) -> Any:
    return _one(_admin.list_offsets({confluent_kafka.TopicPartition(topic, partition): spec}))


@operation
def find_offsets(topic: str, partition: int, timestamps: list[int]) -> list[list[int] | None]:
    """Return [offset, timestamp] of the first record at or after each timestamp, None where there is none."""
    specs = [admin.OffsetSpec.for_timestamp(timestamp) for timestamp in timestamps]
    found = [_list_offset(topic, partition, spec) for spec in specs]
    return [None if one.offset < 0 else [one.offset, one.timestamp] for one in found]


@operation
def committed(group: str, topic: str, partition: int) -> int | None:
    """Return the group's committed offset."""
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group, [confluent_kafka.TopicPartition(topic, partition)])
    [found] = _one(_admin.list_consumer_group_offsets([asked])).topic_partitions
    if found.error is not None:
        raise confluent_kafka.KafkaException(found.error)
    return None if found.offset == _NO_OFFSET else found.offset


@operation
def alter_offset(group: str, topic: str, partition: int, offset: int) -> None:
    """Set the committed offset of a group without members."""
    wanted = confluent_kafka.TopicPartition(topic, partition, offset)
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group, [wanted])
    [altered] = _one(_admin.alter_consumer_group_offsets([asked])).topic_partitions
    if altered.error is not None:
        raise confluent_kafka.KafkaException(altered.error)


@operation
def create_topic(topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create a topic with one replica."""
    _one(_admin.create_topics([admin.NewTopic(topic, partitions, 1, config=configs or {})]))


@operation
def delete_topic(topic: str) -> None:
    """Delete a topic."""
    _one(_admin.delete_topics([topic]))


@operation
def list_topics() -> list[str]:
    """Return the names of all topics."""
    return list(_admin.list_topics(timeout=TIMEOUT_S).topics)


@operation
def count_partitions(topic: str) -> int:
    """Return how many partitions the topic has, as its description says."""
    return len(_one(_admin.describe_topics(confluent_kafka.TopicCollection([topic]))).partitions)


@operation
def create_partitions(topic: str, total: int) -> None:
    """Raise the number of partitions."""
    _one(_admin.create_partitions([admin.NewPartitions(topic, total)]))


@operation
def topic_config(topic: str, key: str) -> str | None:
    """Return the value that is in force for a topic's setting."""
    return _one(_admin.describe_configs([admin.ConfigResource("topic", topic)]))[key].value


@operation
def topic_config_source(topic: str, key: str) -> list[Any]:
    """Return the source of the value in force, and [name, value, source] of each synonym."""
    entry = _one(_admin.describe_configs([admin.ConfigResource("topic", topic)]))[key]
    synonyms = [[one.name, one.value, admin.ConfigSource(one.source).name] for one in entry.synonyms.values()]
    return [admin.ConfigSource(entry.source).name, synonyms]


@operation
def alter_topic_config(topic: str, configs: dict[str, str]) -> None:
    """Set settings of a topic, leaving the others."""
    change_topic_config(topic, [["set", key, value] for key, value in configs.items()])


@operation
def change_topic_config(topic: str, changes: list[list[Any]]) -> None:
    """Apply [operation, key, value] changes: set, delete, append, subtract."""
    entries = [
        admin.ConfigEntry(key, value, incremental_operation=admin.AlterConfigOpType[operation.upper()])
        for operation, key, value in changes
    ]
    _one(_admin.incremental_alter_configs([admin.ConfigResource("topic", topic, incremental_configs=entries)]))


@operation
def delete_records(topic: str, partition: int, before: int) -> int:
    """Delete what lies before an offset; return the partition's new beginning."""
    return _one(_admin.delete_records([confluent_kafka.TopicPartition(topic, partition, before)])).low_watermark


@operation
def describe_cluster() -> dict[str, Any]:
    """Return the cluster's id, controller and [id, host, port] of its nodes."""
    described = _admin.describe_cluster().result(TIMEOUT_S)
    return {
        "cluster_id": described.cluster_id,
        "controller": described.controller.id,
        "nodes": [[node.id, node.host, node.port] for node in described.nodes],
    }


@operation
def list_groups() -> list[str]:
    """Return the names of all groups."""
    listed = _admin.list_consumer_groups().result(TIMEOUT_S)
    if listed.errors:
        raise confluent_kafka.KafkaException(listed.errors[0])
    return [group.group_id for group in listed.valid]


@operation
def describe_group(group: str) -> dict[str, Any]:
    """Return the group's state, protocol and number of members, and the static members' instance ids."""
    described = _one(_admin.describe_consumer_groups([group]))
    return {
        "state": described.state.name.title(),
        "protocol": described.partition_assignor,
        "members": len(described.members),
        "instances": sorted(member.group_instance_id for member in described.members if member.group_instance_id),
    }


@operation
def delete_group(group: str) -> None:
    """Delete an empty group."""
    _one(_admin.delete_consumer_groups([group]))


if confluent_kafka.version()[0].startswith("2.0."):
    import before_2_3  # noqa: F401 - its operations take the places of those above


@operation
def reset() -> None:
    """Let go of what the last test left open."""
    stop_all()
    close_all()


if __name__ == "__main__":
    serve()
