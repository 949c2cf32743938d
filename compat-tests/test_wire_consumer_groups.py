"""Consumer groups of KIP-848 beside a real Kafka: members, epochs, assignments, both protocols in one group."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared

if TYPE_CHECKING:
    from wire.client import Reply, Wire

GROUP = 32
TIMEOUT_MS = 60_000
CURRENT = 1
JOINS = 0
LEAVES = -1
WILL_BE_BACK = -2


class Members:
    """The members of one group, whose assignments are made at once, on a topic of three partitions."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire = wire
        self.group = name
        self.topic = f"{name}-topic"
        self.topic_id = wire.create_topic(self.topic, partitions=3)
        configs = [{"Name": "consumer.assignment.interval.ms", "ConfigOperation": 0, "Value": "0"}]
        resources = [{"ResourceType": GROUP, "ResourceName": name, "Configs": configs}]
        wire.call("IncrementalAlterConfigs", 1, Resources=resources)

    def beat(self, member: str, epoch: int = JOINS, *, version: int = CURRENT, **told: Any) -> Reply:
        body: dict[str, Any] = {"GroupId": self.group, "MemberId": member, "MemberEpoch": epoch, **ABSENT, **told}
        if epoch == JOINS:
            body = {**body, "RebalanceTimeoutMs": TIMEOUT_MS, "TopicPartitions": [], **told}
            if "SubscribedTopicRegex" not in told and "SubscribedTopicNames" not in told:
                body["SubscribedTopicNames"] = [self.topic]
        reply: Reply = self.wire.call("ConsumerGroupHeartbeat", version, **body)
        return reply

    def owns(self, *partitions: int) -> list[dict[str, Any]]:
        return [{"TopicId": self.topic_id, "Partitions": partitions}] if partitions else []

    def describe(self) -> None:
        self.wire.call("ConsumerGroupDescribe", 1, GroupIds=[self.group])

    def commit(self, member: str, epoch: int, partition: int = 0, version: int = 9) -> None:
        partitions = [{"PartitionIndex": partition, "CommittedOffset": 5}]
        topics = [{"Name": self.topic, "TopicId": self.topic_id, "Partitions": partitions}]
        epochs = {"MemberId": member, "GenerationIdOrMemberEpoch": epoch}
        self.wire.call("OffsetCommit", version, GroupId=self.group, Topics=topics, **epochs)

    def fetch(self, member: str | None, epoch: int) -> None:
        topics = [{"Name": self.topic, "PartitionIndexes": [0, 1, 2]}]
        group = {"GroupId": self.group, "MemberId": member, "MemberEpoch": epoch, "Topics": topics}
        self.wire.call("OffsetFetch", 9, Groups=[group])


ABSENT: dict[str, Any] = {
    "InstanceId": None,
    "RackId": None,
    "SubscribedTopicNames": None,
    "SubscribedTopicRegex": None,
    "ServerAssignor": None,
    "TopicPartitions": None,
}


class TestMembers:
    @compared("beside_kafka_4")
    def test_t60_partitions_go_from_one_member_to_another(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        members.describe()
        members.beat("a", 2)
        members.beat("a")
        members.beat("a", 2)
        members.describe()
        members.beat("b")
        members.describe()
        members.beat("b", 3)
        members.beat("a", 2)
        members.describe()
        members.commit("a", 2)
        members.commit("a", 2, 2)
        members.beat("a", 2, TopicPartitions=members.owns(0, 1))
        members.describe()
        members.beat("a", 2, TopicPartitions=members.owns(0, 1))
        members.beat("a", 2)
        members.beat("b", 3)
        members.describe()
        members.commit("a", 2)
        members.commit("a", 2, 2)
        members.beat("a", LEAVES)
        members.describe()
        members.beat("b", 3)
        members.describe()
        members.beat("b", LEAVES)
        members.beat("b", LEAVES)
        members.describe()

    @compared("beside_kafka_4")
    def test_t60_who_is_refused(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        for version in wire.versions("ConsumerGroupHeartbeat"):
            for fields in REFUSED:
                members.beat(**{"member": "a", "version": version, **fields})
        members.beat("a", ServerAssignor="range")
        for epoch in (2, 0, -1, -2):
            members.beat("x", epoch)
        members.beat("a", 6)
        members.beat("a", 2, InstanceId="i")
        members.beat("a", 0)
        members.describe()
        wire.call("ConsumerGroupDescribe", 0, GroupIds=["", f"{name}-none"])

    @compared("beside_kafka_4")
    def test_t60_offsets_are_fenced_by_epochs(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        members.commit("a", 2)
        members.commit("a", 2, version=8)
        members.beat("a")
        for member, epoch in (("a", 2), ("a", 1), ("a", 0), ("a", 3), ("a", -1), ("x", 2), ("", -1)):
            members.commit(member, epoch)
            members.fetch(member, epoch)
        members.commit("a", 2, version=8)
        members.commit("a", 2, version=10)
        members.fetch(None, -1)
        wire.call(
            "OffsetDelete", 0, GroupId=name, Topics=[{"Name": members.topic, "Partitions": [{"PartitionIndex": 0}]}]
        )
        wire.call("DeleteGroups", 2, GroupsNames=[name])
        members.beat("a", LEAVES)
        members.commit("", -1)
        wire.call("DeleteGroups", 2, GroupsNames=[name])
        members.describe()

    @compared("beside_kafka_4")
    def test_static_members(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        members.beat("a", InstanceId="i", RackId="r")
        members.beat("b", InstanceId="i")
        members.beat("b", 2, InstanceId="i")
        members.beat("a", WILL_BE_BACK, InstanceId="i")
        members.describe()
        members.beat("a", 2, InstanceId="i")
        members.beat("b", InstanceId="i")
        members.describe()
        members.beat("a", 2, InstanceId="i")
        members.beat("a", LEAVES, InstanceId="i")
        members.beat("b", LEAVES, InstanceId="j")
        members.beat("b", LEAVES, InstanceId="i")
        members.describe()

    @compared("beside_kafka_4")
    def test_subscriptions_change(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        other = f"{name}-other"
        wire.create_topic(other, partitions=1)
        members.beat("a", SubscribedTopicNames=[])
        members.describe()
        members.beat("a", 1, SubscribedTopicNames=[members.topic])
        members.beat("a", 2, SubscribedTopicNames=[other])
        members.describe()
        members.beat("a", 2, TopicPartitions=[])
        members.beat("a", 3, ServerAssignor="range", RebalanceTimeoutMs=5)
        members.describe()

    @compared("beside_kafka_4")
    def test_groups_of_both_kinds_are_listed(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        members.beat("a")
        for version in wire.versions("ListGroups"):
            for states in ([], ["Stable"], ["Empty"]):
                for types in ([], ["consumer"], ["Classic"]):
                    reply = wire.ask("ListGroups", version, StatesFilter=states, TypesFilter=types)
                    wire.note(
                        f"{version} {states} {types}", [each for each in reply["Groups"] if each["GroupId"] == name]
                    )
        for version in wire.versions("DescribeGroups"):
            wire.call("DescribeGroups", version, Groups=[name])


REFUSED: list[dict[str, Any]] = [
    {"member": " "},
    {"InstanceId": ""},
    {"RackId": ""},
    {"RebalanceTimeoutMs": -1},
    {"TopicPartitions": None},
    {"SubscribedTopicNames": None},
    {"epoch": -3},
    {"epoch": -2},
    {"ServerAssignor": "nope"},
    {"SubscribedTopicRegex": "(", "SubscribedTopicNames": None},
    {"SubscribedTopicRegex": "(?=a)", "SubscribedTopicNames": None},
]


def subscription(topic: str, *owned: int) -> bytes:
    """Write what a consumer says of itself, in version 1."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    had = name + struct.pack(f">i{len(owned)}i", len(owned), *owned) if owned else b""
    return struct.pack(">hi", 1, 1) + name + struct.pack(">ii", -1, bool(owned)) + had


class TestBothProtocols:
    @compared("beside_kafka_4")
    def test_a_group_moves_and_comes_back(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        old = wire.ask("JoinGroup", 9, **_join(members, ""))["MemberId"]
        wire.call("JoinGroup", 9, **_join(members, old))
        topic = struct.pack(">h", len(members.topic)) + members.topic.encode()
        everything = struct.pack(">hi", 1, 1) + topic + struct.pack(">i3ii", 3, 0, 1, 2, -1)
        named = {"GroupId": name, "MemberId": old, "ProtocolType": "consumer", "ProtocolName": "cooperative-sticky"}
        wire.call("SyncGroup", 5, GenerationId=1, Assignments=[{"MemberId": old, "Assignment": everything}], **named)
        members.commit(old, 1, version=8)
        members.beat("new")
        members.describe()
        alive = {"GroupId": name, "MemberId": old}
        wire.call("Heartbeat", 4, GenerationId=1, **alive)
        wire.call("SyncGroup", 5, GenerationId=1, **named)
        wire.call("JoinGroup", 9, **_join(members, old, 0, 1, 2))
        wire.call("SyncGroup", 5, GenerationId=1, **named)
        wire.call("Heartbeat", 4, GenerationId=1, **alive)
        wire.call("JoinGroup", 9, **_join(members, old, 0, 1))
        wire.call("SyncGroup", 5, GenerationId=2, **named)
        wire.call("Heartbeat", 4, GenerationId=2, **alive)
        members.beat("new", 2)
        members.describe()
        members.commit(old, 2, version=8)
        members.commit(old, 1, version=8)
        members.beat("new", LEAVES)
        members.describe()
        wire.call("Heartbeat", 4, GenerationId=2, **alive)
        wire.call("JoinGroup", 9, **_join(members, old, 0, 1))
        wire.call("DescribeGroups", 5, Groups=[name])

    @compared("beside_kafka_4")
    def test_a_group_whose_assignor_has_data_of_its_own_stays(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        old = wire.ask("JoinGroup", 9, **_join(members, ""))["MemberId"]
        wire.call("JoinGroup", 9, **_join(members, old))
        named = {"GroupId": name, "MemberId": old, "ProtocolType": "consumer", "ProtocolName": "cooperative-sticky"}
        data = struct.pack(">hii4s", 1, 0, 4, b"mine")
        wire.call("SyncGroup", 5, GenerationId=1, Assignments=[{"MemberId": old, "Assignment": data}], **named)
        members.beat("new")
        wire.call("Heartbeat", 4, GenerationId=1, GroupId=name, MemberId=old)
        wire.call("DescribeGroups", 5, Groups=[name])

    @compared("beside_kafka_4")
    def test_a_member_of_the_classic_protocol_comes_and_goes(self, wire: Wire, name: str) -> None:
        members = Members(wire, name)
        members.beat("new")
        old = wire.call("JoinGroup", 9, **_join(members, ""))["MemberId"]
        wire.call("JoinGroup", 9, **_join(members, old))
        members.describe()
        wire.call("JoinGroup", 9, **{**_join(members, ""), "ProtocolType": "connect"})
        named = {"GroupId": name, "ProtocolType": "consumer", "ProtocolName": "cooperative-sticky"}
        for member, generation in ((old, 3), (old, 2), ("new", 2), ("x", 1)):
            wire.call("SyncGroup", 5, GenerationId=generation, MemberId=member, **named)
            wire.call("Heartbeat", 4, GroupId=name, MemberId=member, GenerationId=generation)
        rows = [{"MemberId": old}, {"MemberId": "x"}, {"MemberId": "", "GroupInstanceId": "i"}]
        wire.call("LeaveGroup", 5, GroupId=name, Members=rows)
        members.describe()


def _join(members: Members, member: str, *owned: int) -> dict[str, Any]:
    return {
        "GroupId": members.group,
        "SessionTimeoutMs": TIMEOUT_MS,
        "RebalanceTimeoutMs": TIMEOUT_MS,
        "MemberId": member,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "cooperative-sticky", "Metadata": subscription(members.topic, *owned)}],
    }


class TestConfigs:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("consumer.session.timeout.ms", "50000"),
            ("consumer.session.timeout.ms", "44999"),
            ("consumer.session.timeout.ms", "60001"),
            ("consumer.session.timeout.ms", "x"),
            ("consumer.heartbeat.interval.ms", "5000"),
            ("consumer.heartbeat.interval.ms", "1"),
            ("consumer.assignment.interval.ms", "15001"),
            ("consumer.nope", "1"),
        ],
    )
    @compared("beside_kafka_4")
    def test_settings_of_a_group(self, wire: Wire, name: str, key: str, value: str) -> None:
        rows = [{"Name": key, "ConfigOperation": 0, "Value": value}]
        for group in (name, ""):
            wire.call(
                "IncrementalAlterConfigs",
                1,
                Resources=[{"ResourceType": GROUP, "ResourceName": group, "Configs": rows}],
            )
        resource = {"ResourceType": GROUP, "ResourceName": name, "ConfigurationKeys": KEYS}
        wire.call("DescribeConfigs", 4, Resources=[resource], IncludeSynonyms=True)


KEYS = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms")
