"""aiokafka. Its event loop runs in a thread of its own, so that group members keep beating between two requests.

Releases before 0.9 stand on kafka-python, from which they take the names that have a place of their own since then.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code
from background import ACKNOWLEDGE_TIMEOUT_S, IN_FLIGHT, Background, begin, stop_all
from members import Member, close_all, members
from serving import Deadline, operation, serve, to_bytes, to_record

if aiokafka.__version__.startswith("0.8."):
    from kafka.admin import NewPartitions, NewTopic
    from kafka.admin.config_resource import ConfigResource, ConfigResourceType
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
else:
    from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

_BOOTSTRAP = sys.argv[1]
_POLL_MS = 100
_LOADING_TIMEOUT_S = 20
_ASSIGNORS = {assignor.name: assignor for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor)}

_event_loop = asyncio.new_event_loop()


def _wait(answer: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on the loop's thread, from another."""
    return asyncio.run_coroutine_threadsafe(answer, _event_loop).result()


@asynccontextmanager
async def _admin() -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=_BOOTSTRAP)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


@asynccontextmanager
async def _reader(topic: str) -> AsyncIterator[aiokafka.AIOKafkaConsumer]:
    """Open a consumer without a group; it takes all partitions of the topic when it starts."""
    consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=_BOOTSTRAP, auto_offset_reset="earliest")
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


def _check(code: int, what: str) -> None:
    if code:
        raise for_code(code)(what)


@operation
async def produce(
    topic: str,
    records: list[dict[str, Any]],
    compression: str | None = None,
    idempotent: bool = False,
    max_request_bytes: int = 1 << 20,
) -> list[list[int]]:
    """Send all, then wait for all; return [partition, offset] of each."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=_BOOTSTRAP,
        acks="all",
        linger_ms=20,
        compression_type=compression,
        enable_idempotence=idempotent,
        max_request_size=max_request_bytes,
    )
    await producer.start()
    try:
        futures = [
            await producer.send(
                topic,
                key=to_bytes(record.get("key")),
                value=to_bytes(record.get("value")),
                headers=[(name, to_bytes(value)) for name, value in record.get("headers", [])],
                partition=record.get("partition"),
                timestamp_ms=record.get("timestamp"),
            )
            for record in records
        ]
        sent = await asyncio.gather(*futures)
    finally:
        await producer.stop()
    return [[metadata.partition, metadata.offset] for metadata in sent]


class _Background(Background):
    def produce(self) -> None:
        _wait(self._produce())

    async def _produce(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=_BOOTSTRAP,
            acks="all",
            enable_idempotence=True,
            request_timeout_ms=ACKNOWLEDGE_TIMEOUT_S * 1000,  # also how long a record may wait
        )
        await producer.start()
        pending: deque[tuple[str, Any]] = deque()
        number = 0
        try:
            while pending or not self.stopping:
                while len(pending) < IN_FLIGHT and not self.stopping:
                    value = f"number {number}"
                    pending.append((value, await producer.send(self.topic, value=value.encode())))
                    number += 1
                value, future = pending.popleft()
                metadata = await asyncio.wait_for(future, ACKNOWLEDGE_TIMEOUT_S)
                self.acknowledge(metadata.partition, metadata.offset, value)
        finally:
            await producer.stop()


@operation
def start_producing(topic: str) -> None:
    """Begin to produce in the background with an idempotent producer."""
    begin(_Background(topic))


class _Consumer(Member, aiokafka.ConsumerRebalanceListener):
    def __init__(self, client: aiokafka.AIOKafkaConsumer) -> None:
        super().__init__()
        self.client = client

    def on_partitions_assigned(self, assigned: set[aiokafka.TopicPartition]) -> None:
        self.moved("assigned", assigned)

    def on_partitions_revoked(self, revoked: set[aiokafka.TopicPartition]) -> None:
        self.moved("revoked", revoked)

    def take(self, at_most: int) -> list[dict[str, Any]]:
        batches = _wait(self.client.getmany(timeout_ms=_POLL_MS, max_records=at_most))
        return [to_record(record) for batch in batches.values() for record in batch]

    def held(self) -> set[aiokafka.TopicPartition]:
        return self.client.assignment()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.client.seek(aiokafka.TopicPartition(topic, partition), offset)

    def commit(self) -> None:
        _wait(self.client.commit())

    def close(self) -> None:
        _wait(self.client.stop())


@operation
async def open_consumer(
    name: str,
    topics: list[str] | None = None,
    partitions: list[list[Any]] | None = None,
    group: str | None = None,
    instance: str | None = None,
    assignor: str = "range",
) -> None:
    """Open a consumer that subscribes to `topics` in `group`, or that reads the given [topic, partition]s."""
    static = {} if instance is None else {"group_instance_id": instance}
    client = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=_BOOTSTRAP,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[_ASSIGNORS[assignor]],
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=5_000,
        **static,
    )
    members[name] = consumer = _Consumer(client)
    if topics is not None:
        client.subscribe(topics, listener=consumer)
    if partitions is not None:
        client.assign([aiokafka.TopicPartition(*partition) for partition in partitions])
    await client.start()


@operation
async def read_all(topic: str, timeout_s: float = 60) -> list[dict[str, Any]]:
    """Return every record between the beginning and the end of the topic, by partition and offset."""
    deadline = Deadline(timeout_s)
    records: list[dict[str, Any]] = []
    async with _reader(topic) as consumer:
        for tp, end in (await consumer.end_offsets(consumer.assignment())).items():
            while await consumer.position(tp) < end:
                deadline.check(len(records))
                batches = await consumer.getmany(timeout_ms=_POLL_MS)
                records += [to_record(record) for batch in batches.values() for record in batch]
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


@operation
async def offset_range(topic: str) -> list[list[int]]:
    """Return [beginning, end] of each partition."""
    async with _reader(topic) as consumer:
        partitions = sorted(consumer.assignment())
        beginnings, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    return [[beginnings[tp], ends[tp]] for tp in partitions]


@operation
async def find_offsets(topic: str, partition: int, timestamps: list[int]) -> list[list[int] | None]:
    """Return [offset, timestamp] of the first record at or after each timestamp, None where there is none."""
    tp = aiokafka.TopicPartition(topic, partition)
    async with _reader(topic) as consumer:
        found = [(await consumer.offsets_for_times({tp: timestamp}))[tp] for timestamp in timestamps]
    return [None if one is None else [one.offset, one.timestamp] for one in found]


@operation
async def committed(group: str, topic: str, partition: int) -> int | None:
    """Return the group's committed offset.

    aiokafka drops the error of a coordinator that is still loading the group; the partition is not in the answer then.
    """
    tp = aiokafka.TopicPartition(topic, partition)
    deadline = Deadline(_LOADING_TIMEOUT_S)
    async with _admin() as admin:
        while tp not in (found := await admin.list_consumer_group_offsets(group, partitions=[tp])):
            deadline.check("nothing of the partition")
            await asyncio.sleep(_POLL_MS / 1000)
    return None if found[tp].offset < 0 else found[tp].offset


@operation
async def create_topic(topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create a topic with one replica."""
    async with _admin() as admin:
        answer = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])
    _check(answer.topic_errors[0][1], topic)


@operation
async def delete_topic(topic: str) -> None:
    """Delete a topic."""
    async with _admin() as admin:
        answer = await admin.delete_topics([topic])
    _check(answer.topic_error_codes[0][1], topic)


@operation
async def list_topics() -> list[str]:
    """Return the names of all topics."""
    async with _admin() as admin:
        return await admin.list_topics()


@operation
async def count_partitions(topic: str) -> int:
    """Return how many partitions the topic has, as its description says."""
    async with _admin() as admin:
        [description] = await admin.describe_topics([topic])
    _check(description["error_code"], topic)
    return len(description["partitions"])


@operation
async def create_partitions(topic: str, total: int) -> None:
    """Raise the number of partitions."""
    async with _admin() as admin:
        answer = await admin.create_partitions({topic: NewPartitions(total)})
    _check(answer.topic_errors[0][1], topic)


@operation
async def topic_config(topic: str, key: str) -> str | None:
    """Return the value that is in force for a topic's setting."""
    async with _admin() as admin:
        [answer] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    [(code, _, _, _, entries)] = answer.resources
    _check(code, topic)
    return {entry[0]: entry[1] for entry in entries}[key]


@operation
async def alter_topic_config(topic: str, configs: dict[str, str]) -> None:
    """Replace the settings of a topic."""
    async with _admin() as admin:
        [answer] = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    _check(answer.resources[0][0], topic)


@operation
async def delete_records(topic: str, partition: int, before: int) -> int:
    """Delete what lies before an offset; return the partition's new beginning."""
    tp = aiokafka.TopicPartition(topic, partition)
    async with _admin() as admin:
        return (await admin.delete_records({tp: RecordsToDelete(before_offset=before)}))[tp]


@operation
async def describe_cluster() -> dict[str, Any]:
    """Return the cluster's id, controller and [id, host, port] of its nodes."""
    async with _admin() as admin:
        described = await admin.describe_cluster()
    return {
        "cluster_id": described["cluster_id"],
        "controller": described["controller_id"],
        "nodes": [[broker["node_id"], broker["host"], broker["port"]] for broker in described["brokers"]],
    }


@operation
async def list_groups() -> list[str]:
    """Return the names of all groups."""
    async with _admin() as admin:
        return [group for group, *_ in await admin.list_consumer_groups()]


@operation
async def describe_group(group: str) -> dict[str, Any]:
    """Return the group's state, protocol and number of members."""
    async with _admin() as admin:
        [answer] = await admin.describe_consumer_groups([group])
    [(code, _, state, _, protocol, members, *_)] = answer.groups
    _check(code, group)
    return {"state": state, "protocol": protocol, "members": len(members)}


@operation
def reset() -> None:
    """Let go of what the last test left open."""
    stop_all()
    close_all()


if __name__ == "__main__":
    threading.Thread(target=_event_loop.run_forever, daemon=True).start()
    serve(lambda answer: _wait(answer) if asyncio.iscoroutine(answer) else answer)
