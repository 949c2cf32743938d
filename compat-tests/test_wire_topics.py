"""Topics, partitions and the cluster beside a real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared

if TYPE_CHECKING:
    from wire.client import Wire

BAD_NAMES = ["", ".", "..", "a/b", "a b", "a\tb", "\u00fc", "x" * 250, "a,b", "a:b", "*"]
NOT_THERE = b"\7" * 16


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    return {"Name": name, "NumPartitions": partitions, "ReplicationFactor": replicas, **more}


def configs(**values: str | None) -> list[dict[str, Any]]:
    return [{"Name": name.replace("_", "."), "Value": value} for name, value in values.items()]


class TestCreateTopics:
    @compared("beside_kafka_4")
    def test_every_version(self, wire: Wire, name: str) -> None:
        for version in wire.versions("CreateTopics"):
            one, two = topic(f"{name}-{version}", 3), topic(f"{name}-{version}b", Configs=configs(retention_ms="1000"))
            wire.call("CreateTopics", version, Topics=[one, two], timeoutMs=10_000)
            wire.call("CreateTopics", version, Topics=[one], timeoutMs=10_000)

    @compared("beside_kafka_4")
    def test_validate_only(self, wire: Wire, name: str) -> None:
        for version in wire.versions("CreateTopics"):
            wire.call("CreateTopics", version, Topics=[topic(name, 3)], timeoutMs=10_000, validateOnly=True)
        wire.call("Metadata", 9, Topics=[{"Name": name}], AllowAutoTopicCreation=False)

    @compared("beside_kafka_4")
    def test_t67_minus_one_means_the_default(self, wire: Wire, name: str) -> None:
        for version in wire.versions("CreateTopics"):
            wire.call("CreateTopics", version, Topics=[topic(f"{name}-{version}", -1, -1)], timeoutMs=10_000)

    @pytest.mark.parametrize("bad", BAD_NAMES)
    @compared("beside_kafka_4")
    def test_t24_bad_names(self, wire: Wire, bad: str) -> None:
        for version in (2, 5, 7):
            wire.call("CreateTopics", version, Topics=[topic(bad)], timeoutMs=10_000)

    @compared("beside_kafka_4")
    def test_t24_names_that_collide(self, wire: Wire, name: str) -> None:
        for spelled in (f"{name}.a", f"{name}_a", f"{name}.a"):
            wire.call("CreateTopics", 7, Topics=[topic(spelled)], timeoutMs=10_000)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"NumPartitions": 0},
            {"NumPartitions": -2},
            {"ReplicationFactor": 0},
            {"ReplicationFactor": -2},
            {"ReplicationFactor": 3},
            {"Configs": configs(nope="1")},
            {"Configs": configs(retention_ms="abc")},
            {"Configs": configs(retention_ms="-2")},
            {"Configs": configs(cleanup_policy="shred")},
            {"Configs": configs(compression_type="rar")},
            {"Configs": configs(max_message_bytes="-1")},
            {"Configs": configs(min_insync_replicas="0")},
            {"Configs": configs(segment_bytes="1")},
            {"Configs": configs(retention_ms=None)},
            {"Configs": configs(message_timestamp_type="Never")},
            {"Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]},
            {"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]},
            {"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": [{"PartitionIndex": 1, "BrokerIds": [1]}]},
            {"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": [{"PartitionIndex": 0, "BrokerIds": [9]}]},
            {"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1, 1]}]},
            {"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": [{"PartitionIndex": 0, "BrokerIds": []}]},
        ],
        ids=str,
    )
    @compared("beside_kafka_4")
    def test_t67_refusals(self, wire: Wire, name: str, wrong: dict[str, Any]) -> None:
        for version in (4, 7):
            wire.call("CreateTopics", version, Topics=[topic(f"{name}-{version}") | wrong], timeoutMs=10_000)

    @compared("beside_kafka_4")
    def test_t67_a_topic_named_twice(self, wire: Wire, name: str) -> None:
        wanted = [topic(f"{name}-a"), topic(name), topic(f"{name}-a", 2)]
        wire.call("CreateTopics", 7, Topics=wanted, timeoutMs=10_000)

    @compared("beside_kafka_4")
    def test_internal_names(self, wire: Wire) -> None:
        for internal in ("__consumer_offsets", "__transaction_state_of_ours"):
            wire.call("CreateTopics", 7, Topics=[topic(internal)], timeoutMs=10_000)


class TestMetadata:
    @compared("beside_kafka_4")
    def test_t19_every_version(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 3)
        for version in wire.versions("Metadata"):
            wire.call("Metadata", version, Topics=[{"Name": name}])
            if version >= 8:
                wire.call("Metadata", version, Topics=[{"Name": name}], IncludeTopicAuthorizedOperations=True)
            if version in (8, 9, 10):
                wire.call("Metadata", version, Topics=[], IncludeClusterAuthorizedOperations=True)
            if version >= 1:
                wire.call("Metadata", version, Topics=[])

    @compared("beside_kafka_4")
    def test_t18_unknown_topics_without_creation(self, wire: Wire, name: str) -> None:
        for version in wire.versions("Metadata")[4:]:
            wanted = [{"Name": name}, {"Name": "a/b"}, {"Name": name}]
            wire.call("Metadata", version, Topics=wanted, AllowAutoTopicCreation=False)

    @compared("beside_kafka_4")
    def test_t24_bad_names_create_nothing(self, wire: Wire) -> None:
        for version in (1, 4, 9, 12):
            wire.call("Metadata", version, Topics=[{"Name": bad} for bad in BAD_NAMES])

    @compared("beside_kafka_4")
    def test_t21_topics_by_id(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name)
        for version in (10, 12, 13):
            for wanted in (topic_id, NOT_THERE):
                wire.call("Metadata", version, Topics=[{"TopicId": wanted, "Name": None}])
        wire.call("Metadata", 12, Topics=[{"TopicId": topic_id, "Name": None}, {"TopicId": NOT_THERE, "Name": None}])
        wire.call("Metadata", 12, Topics=[{"TopicId": topic_id, "Name": name}])

    @compared("beside_kafka_4")
    def test_t17_automatic_creation(self, wire: Wire, name: str) -> None:
        def ready() -> bool:
            [answer] = wire.ask("Metadata", 9, Topics=[{"Name": name}])["Topics"]
            return bool(answer["ErrorCode"] == 0)

        wire.until(ready)
        wire.call("Metadata", 9, Topics=[{"Name": name}])


class TestDeleteTopics:
    @compared("beside_kafka_4")
    def test_every_version(self, wire: Wire, name: str) -> None:
        for version in wire.versions("DeleteTopics")[:-1]:
            wire.create_topic(name)
            wire.call("DeleteTopics", version, TopicNames=[name, f"{name}-unknown"], TimeoutMs=10_000)

    @compared("beside_kafka_4")
    def test_t21_by_name_and_by_id(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name)
        for wanted in (
            [{"Name": None, "TopicId": NOT_THERE}],
            [{"Name": None, "TopicId": bytes(16)}],
            [{"Name": name, "TopicId": topic_id}],
            [{"Name": "unknown"}],
            [{"Name": ""}],
            [{"Name": "a/b"}],
            [{"Name": name}, {"Name": name}],
            [{"Name": name}, {"Name": None, "TopicId": topic_id}],
            [{"Name": None, "TopicId": topic_id}],
            [{"Name": None, "TopicId": topic_id}],
        ):
            wire.call("DeleteTopics", 6, Topics=wanted, TimeoutMs=10_000)

    @compared("beside_kafka_4")
    def test_t73_made_again_at_once(self, wire: Wire, name: str) -> None:
        first = wire.create_topic(name, 2)
        wire.fill(name, 3)
        wire.call("DeleteTopics", 6, Topics=[{"Name": name}], TimeoutMs=10_000)
        second = wire.create_topic(name)
        wire.note("a new id", first != second)
        wire.fill(name, 1)
        wanted = [{"PartitionIndex": index, "Timestamp": -1} for index in (0, 1)]
        wire.call("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": name, "Partitions": wanted}])
        by_id = [{"TopicId": first, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 99}]}]
        wire.call("Fetch", 13, MinBytes=0, Topics=by_id)


class TestReassignments:
    @compared("beside_kafka_4")
    def test_what_one_broker_can_be_asked_for(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 2)
        lists = ([1], [9], [1, 9], [1, 1], [], None)
        for version in wire.versions("AlterPartitionReassignments"):
            for wanted in lists:
                partitions = [{"PartitionIndex": index, "Replicas": wanted} for index in (0, 1, 2, -1)]
                topics = [{"Name": name, "Partitions": partitions}, {"Name": "unknown", "Partitions": partitions[:1]}]
                wire.call("AlterPartitionReassignments", version, Topics=topics, TimeoutMs=10_000)
                if version >= 1:
                    more = {"AllowReplicationFactorChange": False}
                    wire.call("AlterPartitionReassignments", version, Topics=topics, TimeoutMs=10_000, **more)
        for topics in (None, [], [{"Name": name, "PartitionIndexes": [0, 9]}, {"Name": "x", "PartitionIndexes": [0]}]):
            wire.call("ListPartitionReassignments", 0, Topics=topics, TimeoutMs=10_000)


class TestCreatePartitions:
    @compared("beside_kafka_4")
    def test_t71_every_version(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        for count, version in enumerate(wire.versions("CreatePartitions"), 2):
            for validate_only in (True, False):
                wanted = [{"Name": name, "Count": count, "Assignments": None}, {"Name": "unknown", "Count": 2}]
                wire.call("CreatePartitions", version, Topics=wanted, TimeoutMs=10_000, ValidateOnly=validate_only)
            wire.wait_for_topic(name, count)
        wire.call("Metadata", 9, Topics=[{"Name": name}])

    @pytest.mark.parametrize(
        "wrong",
        [
            {"Count": 2},
            {"Count": 1},
            {"Count": 0},
            {"Count": -1},
            {"Count": 3, "Assignments": []},
            {"Count": 3, "Assignments": [{"BrokerIds": []}]},
            {"Count": 3, "Assignments": [{"BrokerIds": [9]}]},
            {"Count": 3, "Assignments": [{"BrokerIds": [1, 1]}]},
            {"Count": 3, "Assignments": [{"BrokerIds": [1]}, {"BrokerIds": [1]}]},
            {"Count": 4, "Assignments": [{"BrokerIds": [1]}]},
        ],
        ids=str,
    )
    @compared("beside_kafka_4")
    def test_t71_refusals(self, wire: Wire, name: str, wrong: dict[str, Any]) -> None:
        wire.create_topic(name, 2)
        wanted = {"Name": name, "Assignments": None, **wrong}
        wire.call("CreatePartitions", 3, Topics=[wanted], TimeoutMs=10_000, ValidateOnly=True)

    @compared("beside_kafka_4")
    def test_a_topic_named_twice(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wanted = [{"Name": name, "Count": count, "Assignments": None} for count in (2, 3)]
        wire.call("CreatePartitions", 3, Topics=wanted, TimeoutMs=10_000)


class TestDescribe:
    @compared("beside_kafka_4")
    def test_t22_the_cluster(self, wire: Wire) -> None:
        for version in wire.versions("DescribeCluster"):
            for operations in (False, True):
                for endpoint in (1, 2, 0, 3):
                    wire.note("endpoint type", endpoint)
                    wire.call(
                        "DescribeCluster",
                        version,
                        IncludeClusterAuthorizedOperations=operations,
                        EndpointType=endpoint,
                        IncludeFencedBrokers=True,
                    )

    @compared("beside_kafka_4")
    def test_t78_partitions_of_topics_in_pages(self, wire: Wire, name: str) -> None:
        for suffix, partitions in (("a", 3), ("b", 2), ("c", 1)):
            wire.create_topic(f"{name}-{suffix}", partitions)
        topics = [{"Name": f"{name}-{suffix}"} for suffix in "cabx"]
        for limit in (1, 2, 3, 4, 6, 7, 2000, 100_000, 0, -1):
            wire.call("DescribeTopicPartitions", 0, Topics=topics, ResponsePartitionLimit=limit)
        for suffix, index in (
            ("a", 0),
            ("a", 2),
            ("a", 3),
            ("b", 1),
            ("c", 0),
            ("x", 0),
            ("aa", 0),
            ("a", -1),
            ("z", 0),
        ):
            cursor = {"TopicName": f"{name}-{suffix}", "PartitionIndex": index}
            wire.note("cursor", (suffix, index))
            wire.call("DescribeTopicPartitions", 0, Topics=topics, ResponsePartitionLimit=2, Cursor=cursor)
        wire.call("DescribeTopicPartitions", 0, Topics=[{"Name": "a/b"}, {"Name": f"{name}-a"}, {"Name": f"{name}-a"}])

    @compared("beside_kafka_4")
    def test_t70_log_folders(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 3)
        wire.fill(name, 3, 2)
        for version in wire.versions("DescribeLogDirs"):
            for wanted in ([0, 2], [77], []):
                wire.call("DescribeLogDirs", version, Topics=[{"Topic": name, "Partitions": wanted}])
            wire.call("DescribeLogDirs", version, Topics=[{"Topic": "unknown", "Partitions": [0]}])
            wire.call("DescribeLogDirs", version, Topics=[])
