"""kafka-python, 1.4 to 3.x: the same operations in all; settings came, and the admin client's answers changed shape."""

from __future__ import annotations

import re
import sys
from collections import deque
from typing import Any

import kafka
from background import ACKNOWLEDGE_TIMEOUT_S, IN_FLIGHT, Background, begin, stop_all
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import for_code
from members import Member, close_all, members
from serving import Deadline, operation, serve, to_bytes, to_text

_BOOTSTRAP = sys.argv[1]
_VERSION = int(kafka.__version__.split(".")[0])
_POLL_MS = 100
_ASSIGNORS: dict[str, Any] = {
    assignor.name: assignor for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor)
}
if _VERSION >= 3:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    _ASSIGNORS[CooperativeStickyAssignor.name] = CooperativeStickyAssignor


def _admin() -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=_BOOTSTRAP)


def _known(client: Any, **settings: Any) -> dict[str, Any]:
    """Return those settings that this release of the client knows; it refuses others."""
    return {key: value for key, value in settings.items() if key in client.DEFAULT_CONFIG}


def _check(result: str) -> None:
    """Raise what the admin client of 3.x answers: "OK", an exception's name, or its code and message."""
    if code := re.match(r"\[Error (\d+)\]", result):
        raise for_code(int(code[1]))(result)
    if result != "OK":
        raise getattr(kafka.errors, result)


def _record(record: Any) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": to_text(record.key),
        "value": to_text(record.value),
        "headers": [[name, to_text(value)] for name, value in record.headers],
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
    producer = kafka.KafkaProducer(
        bootstrap_servers=_BOOTSTRAP,
        acks="all",
        linger_ms=20,
        compression_type=compression,
        max_request_size=max_request_bytes,
        **_known(kafka.KafkaProducer, enable_idempotence=idempotent),
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
            bootstrap_servers=_BOOTSTRAP,
            acks="all",
            retries=1_000_000,
            reconnect_backoff_max_ms=500,
            **_known(kafka.KafkaProducer, enable_idempotence=True),
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


class _Consumer(Member, ConsumerRebalanceListener):
    def __init__(self, client: kafka.KafkaConsumer) -> None:
        super().__init__()
        self.client = client

    def on_partitions_assigned(self, assigned: list[kafka.TopicPartition]) -> None:
        self.moved("assigned", assigned)

    def on_partitions_revoked(self, revoked: list[kafka.TopicPartition]) -> None:
        self.moved("revoked", revoked)

    def take(self, at_most: int) -> list[dict[str, Any]]:
        batches = self.client.poll(timeout_ms=_POLL_MS, max_records=at_most)
        return [_record(record) for batch in batches.values() for record in batch]

    def held(self) -> set[kafka.TopicPartition]:
        return self.client.assignment()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.client.seek(kafka.TopicPartition(topic, partition), offset)

    def commit(self) -> None:
        self.client.commit()

    def close(self) -> None:
        self.client.close(autocommit=False)


@operation
def open_consumer(
    name: str,
    topics: list[str] | None = None,
    partitions: list[list[Any]] | None = None,
    group: str | None = None,
    instance: str | None = None,
    assignor: str = "range",
    isolation: str = "read_uncommitted",
) -> None:
    """Open a consumer that subscribes to `topics` in `group`, or that reads the given [topic, partition]s."""
    client = kafka.KafkaConsumer(
        bootstrap_servers=_BOOTSTRAP,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[_ASSIGNORS[assignor]],
        isolation_level=isolation,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=5_000,
        **_known(kafka.KafkaConsumer, group_instance_id=instance),
    )
    members[name] = _Consumer(client)
    if topics is not None:
        client.subscribe(topics, listener=members[name])
    if partitions is not None:
        client.assign([kafka.TopicPartition(*partition) for partition in partitions])


@operation
def read_all(topic: str, timeout_s: float = 30) -> list[dict[str, Any]]:
    """Return every record between the beginning and the end of the topic, by partition and offset."""
    deadline = Deadline(timeout_s)
    consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP, auto_offset_reset="earliest", group_id=None)
    try:
        partitions = _partitions(consumer, topic)
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        records: list[dict[str, Any]] = []
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            deadline.check(len(records))
            batches = consumer.poll(timeout_ms=_POLL_MS)
            records += [_record(record) for batch in batches.values() for record in batch]
    finally:
        consumer.close(autocommit=False)
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


def _partitions(consumer: kafka.KafkaConsumer, topic: str) -> list[kafka.TopicPartition]:
    return [kafka.TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic))]


@operation
def offset_range(topic: str) -> list[list[int]]:
    """Return [beginning, end] of each partition."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP)
    try:
        partitions = _partitions(consumer, topic)
        beginnings, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    finally:
        consumer.close(autocommit=False)
    return [[beginnings[tp], ends[tp]] for tp in partitions]


@operation
def find_offsets(topic: str, partition: int, timestamps: list[int]) -> list[list[int] | None]:
    """Return [offset, timestamp] of the first record at or after each timestamp, None where there is none."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP)
    tp = kafka.TopicPartition(topic, partition)
    try:
        found = [consumer.offsets_for_times({tp: timestamp})[tp] for timestamp in timestamps]
    finally:
        consumer.close(autocommit=False)
    return [None if one is None else [one.offset, one.timestamp] for one in found]


@operation
def committed(group: str, topic: str, partition: int) -> int | None:
    """Return the group's committed offset."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP, group_id=group, enable_auto_commit=False)
    try:
        return consumer.committed(kafka.TopicPartition(topic, partition))
    finally:
        consumer.close(autocommit=False)


@operation
def create_topic(topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create a topic with one replica."""
    admin = _admin()
    try:
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])
    finally:
        admin.close()


@operation
def delete_topic(topic: str) -> None:
    """Delete a topic."""
    admin = _admin()
    try:
        admin.delete_topics([topic])
    finally:
        admin.close()


@operation
def list_topics() -> list[str]:
    """Return the names of all topics."""
    if _VERSION < 2:
        consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP)
        try:
            return sorted(consumer.topics())
        finally:
            consumer.close(autocommit=False)
    admin = _admin()
    try:
        return admin.list_topics()
    finally:
        admin.close()


@operation
def count_partitions(topic: str) -> int:
    """Return how many partitions the topic has, as its description says."""
    if _VERSION < 2:
        consumer = kafka.KafkaConsumer(bootstrap_servers=_BOOTSTRAP)
        try:
            return len(_partitions(consumer, topic))
        finally:
            consumer.close(autocommit=False)
    admin = _admin()
    try:
        [description] = admin.describe_topics([topic])
    finally:
        admin.close()
    if description["error_code"]:
        raise for_code(description["error_code"])(topic)
    return len(description["partitions"])


@operation
def create_partitions(topic: str, total: int) -> None:
    """Raise the number of partitions."""
    admin = _admin()
    try:
        admin.create_partitions({topic: NewPartitions(total)})
    finally:
        admin.close()


@operation
def topic_config(topic: str, key: str) -> str | None:
    """Return the value that is in force for a topic's setting."""
    admin = _admin()
    try:
        if _VERSION >= 3:
            described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
            return described["topic"][topic][key]["value"]
        answer = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        [response] = answer if _VERSION == 2 else [answer]
        [(_, _, _, _, entries)] = response.resources
        return {entry[0]: entry[1] for entry in entries}[key]
    finally:
        admin.close()


@operation
def alter_topic_config(topic: str, configs: dict[str, str]) -> None:
    """Set settings of a topic: incrementally in 3.x, by replacing all in 2.x."""
    admin = _admin()
    try:
        answer = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    finally:
        admin.close()
    if _VERSION >= 3:
        _check(answer["topic"][topic])
    elif code := answer.resources[0][0]:
        raise for_code(code)(answer.resources[0][1])


@operation
def change_topic_config(topic: str, changes: list[list[Any]]) -> None:
    """Apply [operation, key, value] changes: set, delete, append, subtract (3.x)."""
    configs = {key: (operation.upper(), value) for operation, key, value in changes}
    admin = _admin()
    try:
        answer = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    finally:
        admin.close()
    _check(answer["topic"][topic])


@operation
def delete_records(topic: str, partition: int, before: int) -> int:
    """Delete what lies before an offset; return the partition's new beginning."""
    admin = _admin()
    tp = kafka.TopicPartition(topic, partition)
    try:
        return admin.delete_records({tp: before})[tp]["low_watermark"]
    finally:
        admin.close()


@operation
def alter_offset(group: str, topic: str, partition: int, offset: int) -> None:
    """Set the committed offset of a group without members (3.x)."""
    admin = _admin()
    tp = kafka.TopicPartition(topic, partition)
    try:
        answer = admin.alter_group_offsets(group, {tp: kafka.OffsetAndMetadata(offset, "", -1)})
    finally:
        admin.close()
    if answer[tp].errno:
        raise answer[tp](group)


@operation
def describe_cluster() -> dict[str, Any]:
    """Return the cluster's id, controller and [id, host, port] of its nodes."""
    admin = _admin()
    try:
        described = admin.describe_cluster()
    finally:
        admin.close()
    node_id = "broker_id" if _VERSION >= 3 else "node_id"
    return {
        "cluster_id": described["cluster_id"],
        "controller": described["controller_id"],
        "nodes": [[broker[node_id], broker["host"], broker["port"]] for broker in described["brokers"]],
    }


@operation
def list_groups() -> list[str]:
    """Return the names of all groups."""
    admin = _admin()
    try:
        if _VERSION >= 3:
            return [group["group_id"] for group in admin.list_groups()]
        return [group for group, _ in admin.list_consumer_groups()]
    finally:
        admin.close()


@operation
def describe_group(group: str) -> dict[str, Any]:
    """Return the group's state, protocol and number of members."""
    admin = _admin()
    try:
        if _VERSION >= 3:
            described = admin.describe_groups([group])[group]
            state, protocol, members = (described[key] for key in ("group_state", "protocol_data", "members"))
        else:
            [described] = admin.describe_consumer_groups([group])
            state, protocol, members = described.state, described.protocol, described.members
    finally:
        admin.close()
    return {"state": state, "protocol": protocol, "members": len(members)}


@operation
def delete_group(group: str) -> None:
    """Delete an empty group."""
    admin = _admin()
    try:
        if _VERSION >= 3:
            _check(admin.delete_groups([group])[group])
        else:
            [(_, error)] = admin.delete_consumer_groups([group])
            if error.errno:
                raise error(group)
    finally:
        admin.close()


@operation
def copy_in_transactions(source: str, copy: str, group: str, batch: int) -> int:
    """Copy a topic in transactions of `batch` records with their offsets, every third one aborted and done again.

    Return how many were committed.
    """
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=_BOOTSTRAP,
        group_id=group,
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=batch,
    )
    producer = kafka.KafkaProducer(bootstrap_servers=_BOOTSTRAP, transactional_id=group)
    producer.init_transactions()
    [partition] = _partitions(consumer, source)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    end = consumer.end_offsets([partition])[partition]
    deadline = Deadline(ACKNOWLEDGE_TIMEOUT_S)
    committed = rounds = 0
    while consumer.position(partition) < end:
        deadline.check(f"{committed} transactions")
        records = consumer.poll(_POLL_MS).get(partition, [])
        if not records:
            continue
        rounds += 1
        producer.begin_transaction()
        for record in records:
            producer.send(copy, record.value, record.key)
        following = kafka.structs.OffsetAndMetadata(records[-1].offset + 1, "", -1)
        producer.send_offsets_to_transaction({partition: following}, consumer.group_metadata())
        if rounds % 3 == 0:
            producer.abort_transaction()
            consumer.seek(partition, records[0].offset)
        else:
            producer.commit_transaction()
            committed += 1
    producer.close()
    consumer.close()
    return committed


@operation
def reset() -> None:
    """Let go of what the last test left open."""
    stop_all()
    close_all()


if __name__ == "__main__":
    serve()
