"""Versions that Kafka 4 does not serve any more, beside the last Kafka that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wire.comparison import compared
from wire.records import NOW_MS, batch

if TYPE_CHECKING:
    from wire.client import Wire


@compared("beside_kafka_3")
def test_t49_list_offsets_v0_gives_lists(wire: Wire, name: str) -> None:
    wire.create_topic(name, segment_bytes="1048576")
    for number in range(6):
        wire.produce(name, batch(b"x" * 400_000, timestamps=[NOW_MS + number]))
    for timestamp in (-1, -2, 0, NOW_MS - 3_600_000, NOW_MS + 3_600_000, -3):
        for most in (0, 1, 2, 100):
            for topic, index in ((name, 0), (name, 77), ("unknown", 0)):
                wanted = [{"PartitionIndex": index, "Timestamp": timestamp, "MaxNumOffsets": most}]
                wire.note("timestamp, most", (timestamp, most))
                wire.call("ListOffsets", 0, ReplicaId=-1, Topics=[{"Name": topic, "Partitions": wanted}])


@compared("beside_kafka_3")
def test_create_and_delete_topics(wire: Wire, name: str) -> None:
    for version in (0, 1):
        topic = {"Name": f"{name}-{version}", "NumPartitions": 2, "ReplicationFactor": 1}
        for wanted in (
            [topic],
            [topic],
            [topic | {"Name": "a/b"}],
            [topic | {"Name": f"{name}-b", "NumPartitions": 0}],
        ):
            wire.call("CreateTopics", version, Topics=wanted, timeoutMs=10_000)
        wire.call("DeleteTopics", 0, TopicNames=[topic["Name"], "unknown"], TimeoutMs=10_000)


@compared("beside_kafka_3")
def test_offsets_of_groups(wire: Wire, name: str) -> None:
    wire.create_topic(name, 2)
    for version in (0, 1):
        partitions = [{"PartitionIndex": index, "CommittedOffset": 7, "CommittedMetadata": "m"} for index in (0, 77)]
        topics = [{"Name": name, "Partitions": partitions}, {"Name": "unknown", "Partitions": partitions}]
        wire.call("OffsetCommit", version, GroupId=name, Topics=topics)
    wanted = [{"Name": name, "PartitionIndexes": [0, 1]}]
    wire.call("OffsetFetch", 1, GroupId=name, Topics=wanted)


@compared("beside_kafka_3")
def test_t44_ends_of_leader_epochs(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    wire.fill(name, 3)
    for version in (0, 1):
        for epoch in (0, 1, -1):
            partitions = [{"Partition": index, "LeaderEpoch": epoch} for index in (0, 77)]
            wire.call("OffsetForLeaderEpoch", version, Topics=[{"Topic": name, "Partitions": partitions}])


@compared("beside_kafka_3")
def test_descriptions(wire: Wire, name: str) -> None:
    wire.create_topic(name, retention_ms="5")
    wire.fill(name, 3)
    for kind, resource in ((2, name), (2, "unknown"), (4, "9")):
        wanted = {"ResourceType": kind, "ResourceName": resource, "ConfigurationKeys": ["retention.ms", "segment.ms"]}
        wire.call("DescribeConfigs", 0, Resources=[wanted])
    wire.call("DescribeLogDirs", 0, Topics=[{"Topic": name, "Partitions": [0]}])
    wire.call("DescribeLogDirs", 0, Topics=[])
