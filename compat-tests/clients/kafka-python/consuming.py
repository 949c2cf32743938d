"""What kafka-python's consumer does, in groups and without."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import kafka
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from library import BOOTSTRAP, VERSION, known, partitions_of
from members import Member, members
from serving import Deadline, operation, to_record

_POLL_MS = 100
# 3.x drops what it is assigned when the answer comes between two polls (FINDINGS.md), so that a join wants a long one.
_JOINING_POLL_MS = 3_000
_ASSIGNORS: dict[str, Any] = {
    assignor.name: assignor for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor)
}
if VERSION >= 3:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    _ASSIGNORS[CooperativeStickyAssignor.name] = CooperativeStickyAssignor


class _Consumer(Member, ConsumerRebalanceListener):
    def __init__(self, client: kafka.KafkaConsumer) -> None:
        super().__init__()
        self.client = client

    def on_partitions_assigned(self, assigned: list[kafka.TopicPartition]) -> None:
        self.moved("assigned", assigned)

    def on_partitions_revoked(self, revoked: list[kafka.TopicPartition]) -> None:
        self.moved("revoked", revoked)

    def take(self, at_most: int) -> list[dict[str, Any]]:
        timeout_ms = _POLL_MS if self.client.assignment() else _JOINING_POLL_MS
        batches = self.client.poll(timeout_ms=timeout_ms, max_records=at_most)
        return [to_record(record) for batch in batches.values() for record in batch]

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
        bootstrap_servers=BOOTSTRAP,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[_ASSIGNORS[assignor]],
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=5_000,
        **known(kafka.KafkaConsumer, group_instance_id=instance, isolation_level=isolation),
    )
    members[name] = _Consumer(client)
    if topics is not None:
        client.subscribe(topics, listener=members[name])
    if partitions is not None:
        client.assign([kafka.TopicPartition(*partition) for partition in partitions])


@operation
def read_all(topic: str, timeout_s: float = 60) -> list[dict[str, Any]]:
    """Return every record between the beginning and the end of the topic, by partition and offset."""
    deadline = Deadline(timeout_s)
    with closing(kafka.KafkaConsumer(bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest")) as consumer:
        partitions = partitions_of(consumer, topic)
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        records: list[dict[str, Any]] = []
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            deadline.check(len(records))
            batches = consumer.poll(timeout_ms=_POLL_MS)
            records += [to_record(record) for batch in batches.values() for record in batch]
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


@operation
def offset_range(topic: str) -> list[list[int]]:
    """Return [beginning, end] of each partition."""
    with closing(kafka.KafkaConsumer(bootstrap_servers=BOOTSTRAP)) as consumer:
        partitions = partitions_of(consumer, topic)
        beginnings, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    return [[beginnings[tp], ends[tp]] for tp in partitions]


@operation
def find_offsets(topic: str, partition: int, timestamps: list[int]) -> list[list[int] | None]:
    """Return [offset, timestamp] of the first record at or after each timestamp, None where there is none."""
    tp = kafka.TopicPartition(topic, partition)
    with closing(kafka.KafkaConsumer(bootstrap_servers=BOOTSTRAP)) as consumer:
        found = [consumer.offsets_for_times({tp: timestamp})[tp] for timestamp in timestamps]
    return [None if one is None else [one.offset, one.timestamp] for one in found]


@operation
def committed(group: str, topic: str, partition: int) -> int | None:
    """Return the group's committed offset."""
    member = kafka.KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=group, enable_auto_commit=False)
    with closing(member) as consumer:
        return consumer.committed(kafka.TopicPartition(topic, partition))
