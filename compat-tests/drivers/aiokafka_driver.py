"""aiokafka. Its event loop runs in a thread of its own, so that group members keep beating between two requests."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import for_code
from serving import Deadline, operation, serve, to_bytes, to_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_BOOTSTRAP = sys.argv[1]
_POLL_MS = 100
_IN_FLIGHT = 20
_ACKNOWLEDGE_TIMEOUT_S = 90

_consumers: dict[str, aiokafka.AIOKafkaConsumer] = {}


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


class _Background:
    """Produces numbered values until told to stop, few at a time, and keeps what was acknowledged."""

    def __init__(self, topic: str) -> None:
        self.acknowledged: list[list[Any]] = []
        self.stopping = False
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._run(topic))

    async def _run(self, topic: str) -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=_BOOTSTRAP, acks="all", enable_idempotence=True)
        await producer.start()
        pending: deque[tuple[str, Any]] = deque()
        number = 0
        try:
            while pending or not self.stopping:
                while len(pending) < _IN_FLIGHT and not self.stopping:
                    value = f"number {number}"
                    pending.append((value, await producer.send(topic, value=value.encode())))
                    number += 1
                value, future = pending.popleft()
                metadata = await asyncio.wait_for(future, _ACKNOWLEDGE_TIMEOUT_S)
                async with self._changed:
                    self.acknowledged.append([metadata.partition, metadata.offset, value])
                    self._changed.notify_all()
        finally:
            await producer.stop()

    async def wait_for(self, more: int) -> int:
        wanted = len(self.acknowledged) + more
        async with self._changed, asyncio.timeout(_ACKNOWLEDGE_TIMEOUT_S):
            await self._changed.wait_for(lambda: len(self.acknowledged) >= wanted)
        return len(self.acknowledged)

    async def finish(self) -> list[list[Any]]:
        self.stopping = True
        await asyncio.wait_for(self._task, _ACKNOWLEDGE_TIMEOUT_S)
        return self.acknowledged


_background: list[_Background] = []


@operation
async def start_producing(topic: str) -> None:
    """Begin to produce in the background with an idempotent producer."""
    _background.append(_Background(topic))


@operation
async def wait_acknowledged(more: int) -> int:
    """Wait until `more` further records are acknowledged; return how many are in all."""
    return await _background[-1].wait_for(more)


@operation
async def finish_producing() -> list[list[Any]]:
    """Stop, wait for what is in flight and return [partition, offset, value] of all acknowledged records."""
    return await _background.pop().finish()


@operation
async def open_consumer(
    name: str,
    topics: list[str] | None = None,
    partitions: list[list[Any]] | None = None,
    group: str | None = None,
    instance: str | None = None,
) -> None:
    """Open a consumer that subscribes to `topics` in `group`, or that reads the given [topic, partition]s."""
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=_BOOTSTRAP,
        group_id=group,
        group_instance_id=instance,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=5_000,
    )
    _consumers[name] = consumer
    if topics is not None:
        consumer.subscribe(topics)
    if partitions is not None:
        consumer.assign([aiokafka.TopicPartition(*partition) for partition in partitions])
    await consumer.start()


@operation
async def poll(names: list[str], count: int, timeout_s: float = 20) -> dict[str, list[dict[str, Any]]]:
    """Poll the consumers in turn until they have `count` records together."""
    deadline = Deadline(timeout_s)
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    while (missing := count - sum(map(len, seen.values()))) > 0:
        deadline.check({name: len(records) for name, records in seen.items()})
        for name in names:
            batches = await _consumers[name].getmany(timeout_ms=_POLL_MS, max_records=missing)
            seen[name] += [_record(record) for batch in batches.values() for record in batch]
            missing = count - sum(map(len, seen.values()))
            if missing <= 0:
                break
    return seen


@operation
async def settle(names: list[str], partitions: int, timeout_s: float = 30) -> dict[str, list[list[Any]]]:
    """Wait until each consumer holds partitions and all hold `partitions`, none of them twice."""
    deadline = Deadline(timeout_s)
    while True:
        held: dict[str, list[list[Any]]] = {}
        for name in names:
            await _consumers[name].getmany(timeout_ms=_POLL_MS)
            held[name] = sorted([tp.topic, tp.partition] for tp in _consumers[name].assignment())
        together = [tuple(tp) for assigned in held.values() for tp in assigned]
        if len(together) == len(set(together)) == partitions and all(held.values()):
            return held
        deadline.check(held)


@operation
async def seek(name: str, topic: str, partition: int, offset: int) -> None:
    """Set where the consumer reads next."""
    _consumers[name].seek(aiokafka.TopicPartition(topic, partition), offset)


@operation
async def commit(name: str) -> None:
    """Commit the consumer's positions and wait for the answer."""
    await _consumers[name].commit()


@operation
async def close_consumer(name: str) -> None:
    """Close: a group member leaves its group."""
    await _consumers.pop(name).stop()


@operation
async def read_all(topic: str, timeout_s: float = 30) -> list[dict[str, Any]]:
    """Return every record between the beginning and the end of the topic, by partition and offset."""
    deadline = Deadline(timeout_s)
    records: list[dict[str, Any]] = []
    async with _reader(topic) as consumer:
        for tp, end in (await consumer.end_offsets(consumer.assignment())).items():
            while await consumer.position(tp) < end:
                deadline.check(len(records))
                batches = await consumer.getmany(timeout_ms=_POLL_MS)
                records += [_record(record) for batch in batches.values() for record in batch]
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
    """Return the group's committed offset."""
    tp = aiokafka.TopicPartition(topic, partition)
    async with _admin() as admin:
        return {tp: one.offset for tp, one in (await admin.list_consumer_group_offsets(group)).items()}.get(tp)


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
async def reset() -> None:
    """Let go of what the last test left open."""
    for background in _background:
        background.stopping = True
    _background.clear()
    for name in list(_consumers):
        await close_consumer(name)


if __name__ == "__main__":
    event_loop = asyncio.new_event_loop()
    threading.Thread(target=event_loop.run_forever, daemon=True).start()
    serve(lambda answer: asyncio.run_coroutine_threadsafe(answer, event_loop).result())
