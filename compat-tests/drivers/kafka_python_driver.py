"""kafka-python, 2.x and 3.x: the same operations in either; only the admin client's answers differ in shape."""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import for_code
from serving import Deadline, operation, serve, to_bytes, to_text

_BOOTSTRAP = sys.argv[1]
_VERSION = int(kafka.__version__.split(".")[0])
_POLL_MS = 100
_IN_FLIGHT = 20
_ACKNOWLEDGE_TIMEOUT_S = 90

_consumers: dict[str, kafka.KafkaConsumer] = {}


def _admin() -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=_BOOTSTRAP)


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
        enable_idempotence=idempotent,
        max_request_size=max_request_bytes,
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


class _Background(threading.Thread):
    """Produces numbered values until told to stop, few at a time, and keeps what was acknowledged."""

    def __init__(self, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.acknowledged: list[list[Any]] = []
        self.changed = threading.Condition()
        self.stopping = False
        self.error: Exception | None = None

    def run(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=_BOOTSTRAP, acks="all", enable_idempotence=True, reconnect_backoff_max_ms=500
        )
        pending: deque[tuple[str, Any]] = deque()
        number = 0
        try:
            while pending or not self.stopping:
                while len(pending) < _IN_FLIGHT and not self.stopping:
                    value = f"number {number}"
                    pending.append((value, producer.send(self.topic, value=value.encode())))
                    number += 1
                value, future = pending.popleft()
                metadata = future.get(timeout=_ACKNOWLEDGE_TIMEOUT_S)
                with self.changed:
                    self.acknowledged.append([metadata.partition, metadata.offset, value])
                    self.changed.notify_all()
        except Exception as error:  # noqa: BLE001 - told by the operation that waits
            with self.changed:
                self.error = error
                self.changed.notify_all()
        finally:
            producer.close(timeout=5)


_background: list[_Background] = []


@operation
def start_producing(topic: str) -> None:
    """Begin to produce in the background with an idempotent producer."""
    _background.append(_Background(topic))
    _background[-1].start()


@operation
def wait_acknowledged(more: int) -> int:
    """Wait until `more` further records are acknowledged; return how many are in all."""
    background = _background[-1]
    with background.changed:
        wanted = len(background.acknowledged) + more
        background.changed.wait_for(
            lambda: len(background.acknowledged) >= wanted or background.error, _ACKNOWLEDGE_TIMEOUT_S
        )
        if background.error:
            raise background.error
        if len(background.acknowledged) < wanted:
            raise TimeoutError(f"{len(background.acknowledged)} of {wanted} acknowledged")
        return len(background.acknowledged)


@operation
def finish_producing() -> list[list[Any]]:
    """Stop, wait for what is in flight and return [partition, offset, value] of all acknowledged records."""
    background = _background.pop()
    background.stopping = True
    background.join(_ACKNOWLEDGE_TIMEOUT_S)
    if background.error:
        raise background.error
    return background.acknowledged


@operation
def open_consumer(
    name: str,
    topics: list[str] | None = None,
    partitions: list[list[Any]] | None = None,
    group: str | None = None,
    instance: str | None = None,
    isolation: str = "read_uncommitted",
) -> None:
    """Open a consumer that subscribes to `topics` in `group`, or that reads the given [topic, partition]s."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=_BOOTSTRAP,
        group_id=group,
        group_instance_id=instance,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RangePartitionAssignor],
        isolation_level=isolation,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=5_000,
    )
    _consumers[name] = consumer
    if topics is not None:
        consumer.subscribe(topics, listener=_Ignore())
    if partitions is not None:
        consumer.assign([kafka.TopicPartition(*partition) for partition in partitions])


class _Ignore(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        pass


@operation
def poll(names: list[str], count: int, timeout_s: float = 20) -> dict[str, list[dict[str, Any]]]:
    """Poll the consumers in turn until they have `count` records together."""
    deadline = Deadline(timeout_s)
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    while (missing := count - sum(map(len, seen.values()))) > 0:
        deadline.check({name: len(records) for name, records in seen.items()})
        for name in names:
            batches = _consumers[name].poll(timeout_ms=_POLL_MS, max_records=missing)
            seen[name] += [_record(record) for batch in batches.values() for record in batch]
            missing = count - sum(map(len, seen.values()))
            if missing <= 0:
                break
    return seen


@operation
def settle(names: list[str], partitions: int, timeout_s: float = 30) -> dict[str, list[list[Any]]]:
    """Poll the consumers in turn until each holds partitions and all hold `partitions`, none of them twice."""
    deadline = Deadline(timeout_s)
    while True:
        held: dict[str, list[list[Any]]] = {}
        for name in names:
            _consumers[name].poll(timeout_ms=_POLL_MS)
            held[name] = sorted([tp.topic, tp.partition] for tp in _consumers[name].assignment())
        together = [tuple(tp) for assigned in held.values() for tp in assigned]
        if len(together) == len(set(together)) == partitions and all(held.values()):
            return held
        deadline.check(held)


@operation
def seek(name: str, topic: str, partition: int, offset: int) -> None:
    """Set where the consumer reads next."""
    _consumers[name].seek(kafka.TopicPartition(topic, partition), offset)


@operation
def commit(name: str) -> None:
    """Commit the consumer's positions and wait for the answer."""
    _consumers[name].commit()


@operation
def close_consumer(name: str) -> None:
    """Close: a group member leaves its group."""
    _consumers.pop(name).close(autocommit=False)


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
    admin = _admin()
    try:
        return admin.list_topics()
    finally:
        admin.close()


@operation
def count_partitions(topic: str) -> int:
    """Return how many partitions the topic has, as its description says."""
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
        [response] = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
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
        if answer != {"topic": {topic: "OK"}}:
            raise RuntimeError(answer)
    elif code := answer.resources[0][0]:
        raise for_code(code)(answer.resources[0][1])


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
            result = admin.delete_groups([group])[group]
            if result != "OK":
                raise RuntimeError(result)
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
    deadline = Deadline(_ACKNOWLEDGE_TIMEOUT_S)
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
    for background in _background:
        background.stopping = True
    _background.clear()
    for name in list(_consumers):
        close_consumer(name)


if __name__ == "__main__":
    serve()
