"""Fetch, and what tells or moves the offsets of a log, beside a real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared
from wire.questions import fetch, list_offsets
from wire.records import NOW_MS, batch

if TYPE_CHECKING:
    from wire.client import Wire

HOUR_MS = 3_600_000
NOT_THERE = b"\7" * 16


class TestFetch:
    @compared("beside_kafka_4")
    def test_t13_t37_t41_t42_t47_every_version(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name, 2)
        wire.fill(name, 3, 2, 1)
        for version in wire.versions("Fetch"):
            for isolation in (0, 1):
                for offset in (0, 1, 3, 6, 7, -1, -2):
                    wire.note("offset", offset)
                    fetch(wire, name, offset, version=version, TopicId=topic_id, IsolationLevel=isolation)

    @compared("beside_kafka_4")
    def test_t46_unknown_topics_and_partitions(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name)
        for version in wire.versions("Fetch"):
            for topic, key in ((name, topic_id), ("unknown", NOT_THERE), ("a/b", bytes(16))):
                for index in (77, -1):
                    wanted = [{"Partition": index, "PartitionMaxBytes": 100}]
                    topics = [{"Topic": topic, "TopicId": key, "Partitions": wanted}]
                    wire.call("Fetch", version, MinBytes=1, MaxWaitMs=0, Topics=topics)

    @compared("beside_kafka_4")
    def test_t45_racks(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.fill(name, 2)
        for rack in ("", "somewhere"):
            fetch(wire, name, 0, RackId=rack)

    @pytest.mark.parametrize("limits", [(1, 1 << 20), (1 << 20, 1), (150, 1 << 20), (1 << 20, 150), (0, 0)])
    @compared("beside_kafka_4")
    def test_t36_limits(self, wire: Wire, name: str, limits: tuple[int, int]) -> None:
        wire.create_topic(name, 2)
        wire.fill(name, 3, 2, 1)
        wire.fill(name, 1, 1, index=1)
        for version in (4, 12):
            fetch(wire, name, 0, 0, version=version, MaxBytes=limits[0], limit=limits[1])

    @compared("beside_kafka_4")
    def test_t38_below_the_start(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.fill(name, 3, 2, 1)
        topics = [{"Name": name, "Partitions": [{"PartitionIndex": 0, "Offset": 4}]}]
        wire.call("DeleteRecords", 2, Topics=topics, TimeoutMs=10_000)
        for offset in (0, 3, 4, 5, 6, 7):
            fetch(wire, name, offset)
        for special in (-1, -2, -3, 0):
            list_offsets(wire, 7, name, special)

    @compared("beside_kafka_4")
    def test_t44_leader_epochs(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.fill(name, 3)
        for version in (9, 12):
            for epoch in (-1, 0, 1, 50, -2):
                wire.note("epoch", epoch)
                fetch(wire, name, 0, version=version, CurrentLeaderEpoch=epoch)
        for epoch in (-1, 0, 1, 50):
            wire.note("last fetched", epoch)
            fetch(wire, name, 3, LastFetchedEpoch=epoch)
            fetch(wire, name, 5, LastFetchedEpoch=epoch)

    @compared("beside_kafka_4")
    def test_t40_sessions(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name, 3)
        wire.fill(name, 2)
        for version in (7, 11, 12, 13, 18):
            common: dict[str, Any] = {"version": version, "TopicId": topic_id}
            session = fetch(wire, name, 0, 0, 0, **common, SessionId=0, SessionEpoch=0)["SessionId"]
            fetch(wire, name, 2, **common, SessionId=session, SessionEpoch=1)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=2)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=9)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=3)
            wire.fill(name, 1, index=1)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=4)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=5)
            forgotten = [{"Topic": name, "TopicId": topic_id, "Partitions": [1]}]
            fetch(wire, name, **common, SessionId=session, SessionEpoch=6, ForgottenTopicsData=forgotten)
            fetch(wire, name, 9, **common, SessionId=session, SessionEpoch=7)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=8)
            fetch(wire, name, 0, **common, SessionId=session, SessionEpoch=-1)
            fetch(wire, name, **common, SessionId=session, SessionEpoch=9)
            fetch(wire, name, 0, **common, SessionId=12345, SessionEpoch=1)
            fetch(wire, name, 0, **common, SessionId=12345, SessionEpoch=0)
            fetch(wire, name, 0, **common, SessionId=0, SessionEpoch=5)

    @compared("beside_kafka_4")
    def test_t21_a_session_whose_topic_is_deleted(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name)
        session = fetch(wire, "", 0, version=13, TopicId=topic_id, SessionId=0, SessionEpoch=0)["SessionId"]
        wire.call("DeleteTopics", 6, Topics=[{"Name": name}], TimeoutMs=10_000)
        wire.until(
            lambda: (
                wire.ask("Metadata", 4, Topics=[{"Name": name}], AllowAutoTopicCreation=False)["Topics"][0]["ErrorCode"]
                == 3
            )
        )
        fetch(wire, "", version=13, SessionId=session, SessionEpoch=1)
        wire.create_topic(name)
        fetch(wire, "", version=13, SessionId=session, SessionEpoch=2)

    @compared("beside_kafka_4")
    def test_t39_waits(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.fill(name, 1)
        fetch(wire, name, 1, MaxWaitMs=200, MinBytes=1)
        fetch(wire, name, 0, MaxWaitMs=200, MinBytes=100_000)
        # A limit that cuts a batch off is as good as what it cuts: nobody waits for more.
        fetch(wire, name, 0, MaxWaitMs=60_000, MinBytes=10, limit=10)
        with wire.other_connection() as other:
            partition = {"Partition": 0, "FetchOffset": 1, "PartitionMaxBytes": 1000}
            other.send("Fetch", 4, MaxWaitMs=10_000, MinBytes=1, Topics=[{"Topic": name, "Partitions": [partition]}])
            wire.fill(name, 1)
            other.receive("Fetch", 4)


class TestOffsets:
    SPECIALS = (
        -1,
        -2,
        -3,
        -4,
        -5,
        -6,
        -7,
        0,
        NOW_MS,
        NOW_MS + 1,
        NOW_MS + 4,
        NOW_MS + 5,
        NOW_MS + HOUR_MS,
        2**63 - 1,
        -(2**63),
    )

    @compared("beside_kafka_4")
    def test_t48_every_version(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 2)
        wire.produce(name, batch(b"a", b"b", b"c"))
        wire.produce(name, batch(b"d", b"e", timestamps=[NOW_MS + 5, NOW_MS + 4]))
        wire.produce(name, batch(b"f", timestamps=[NOW_MS + 2]))
        for version in wire.versions("ListOffsets"):
            for isolation in (0, 1):
                for special in self.SPECIALS:
                    for index in (0, 1):
                        list_offsets(wire, version, name, special, index, IsolationLevel=isolation)

    @compared("beside_kafka_4")
    def test_t48_what_is_not_there(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        for version in wire.versions("ListOffsets"):
            for topic, index in ((name, 77), (name, -1), ("unknown", 0), ("a/b", 0)):
                list_offsets(wire, version, topic, -1, index)
            for epoch in (0, 1, -1, -2):
                list_offsets(wire, version, name, -1, CurrentLeaderEpoch=epoch)
            wanted = [{"PartitionIndex": 0, "Timestamp": timestamp} for timestamp in (-1, -2)]
            wire.call("ListOffsets", version, ReplicaId=-1, Topics=[{"Name": name, "Partitions": wanted}])

    @pytest.mark.parametrize("replica", [-2, -3, 1, 9])
    @compared("beside_kafka_4")
    def test_replicas_that_ask(self, wire: Wire, name: str, replica: int) -> None:
        wire.create_topic(name)
        wire.fill(name, 2)
        for special in (-1, 0):
            list_offsets(wire, 7, name, special, ReplicaId=replica)

    @compared("beside_kafka_4")
    def test_t48_log_append_time_decides(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, message_timestamp_type="LogAppendTime")
        wire.produce(name, batch(b"a", b"b", timestamps=[5, 6]))
        for special in (0, 6, NOW_MS + HOUR_MS):
            topics = [{"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": special}]}]
            [topic] = wire.ask("ListOffsets", 3, ReplicaId=-1, Topics=topics)["Topics"]
            wire.note("offset", topic["Partitions"][0]["Offset"])

    @compared("beside_kafka_4")
    def test_t44_ends_of_leader_epochs(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 2)
        wire.fill(name, 3)
        for version in wire.versions("OffsetForLeaderEpoch"):
            for replica in (-1, -2, 1, 9):
                for current, epoch in ((-1, 0), (0, 0), (1, 0), (-1, 42), (0, -1), (-1, -2), (-2, 0)):
                    partitions = [
                        {"Partition": index, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch}
                        for index in (0, 1, 77)
                    ]
                    topics = [{"Topic": name, "Partitions": partitions}, {"Topic": "unknown", "Partitions": partitions}]
                    wire.call("OffsetForLeaderEpoch", version, ReplicaId=replica, Topics=topics)


class TestDeleteRecords:
    @compared("beside_kafka_4")
    def test_t72_every_version(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 2)
        wire.fill(name, 3, 2, 1, 1)
        for version, offset in zip(wire.versions("DeleteRecords"), (2, 3, -1), strict=True):
            for wanted in (offset, 0, 8, -2, -(2**63), 2**63 - 1):
                wire.note("offset", wanted)
                partitions = [{"PartitionIndex": index, "Offset": wanted} for index in (0, 1, 77, -1)]
                topics = [{"Name": name, "Partitions": partitions}, {"Name": "unknown", "Partitions": partitions[:1]}]
                wire.call("DeleteRecords", version, Topics=topics, TimeoutMs=10_000)
            fetch(wire, name, 0)
            list_offsets(wire, 7, name, -2)

    @compared("beside_kafka_4")
    def test_t72_topics_that_keep_their_records(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, cleanup_policy="compact")
        wire.create_topic(f"{name}-both", cleanup_policy="compact,delete")
        for topic in (name, f"{name}-both", "__consumer_offsets", "a/b", ""):
            topics = [{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": -1}]}]
            wire.call("DeleteRecords", 2, Topics=topics, TimeoutMs=10_000)
