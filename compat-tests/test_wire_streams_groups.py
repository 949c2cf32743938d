"""Streams groups beside a real Kafka: topologies, internal topics, tasks that go from member to member, offsets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared

if TYPE_CHECKING:
    from wire.client import Reply, Wire

GROUP = 32
SET = 0
JOINS = 0
LEAVES = -1
MISSING_INTERNAL_TOPICS = 3
DEADLINE_S = 30
PAUSE_S = 0.05

TASKS: dict[str, Any] = {"ActiveTasks": None, "StandbyTasks": None, "WarmupTasks": None}
NO_TASKS: dict[str, Any] = {"ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": []}
ABSENT: dict[str, Any] = {
    "EndpointInformationEpoch": 0,
    "InstanceId": None,
    "RackId": None,
    "Topology": None,
    "ProcessId": None,
    "UserEndpoint": None,
    "ClientTags": None,
    "TaskOffsets": None,
    "TaskEndOffsets": None,
    **TASKS,
}


def topic_info(name: str, partitions: int = 0, **configs: str) -> dict[str, Any]:
    rows = [{"Key": key, "Value": value} for key, value in configs.items()]
    return {"Name": name, "Partitions": partitions, "ReplicationFactor": 0, "TopicConfigs": rows}


def subtopology(number: int, *sources: str, **told: Any) -> dict[str, Any]:
    return {
        "SubtopologyId": str(number),
        "SourceTopics": sources,
        "SourceTopicRegex": [],
        "StateChangelogTopics": [],
        "RepartitionSinkTopics": [],
        "RepartitionSourceTopics": [],
        "CopartitionGroups": [],
        **told,
    }


def copartitioned(*sources: int, repartition: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"SourceTopics": sources, "SourceTopicRegex": [], "RepartitionSourceTopics": repartition}


def tasks(**partitions: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"SubtopologyId": name.removeprefix("s"), "Partitions": found} for name, found in partitions.items()]


def owns(**partitions: tuple[int, ...]) -> dict[str, Any]:
    return {**NO_TASKS, "ActiveTasks": tasks(**partitions)}


class Application:
    """One application that reads a topic of its own, of four partitions; tasks are given out at once."""

    def __init__(self, wire: Wire, name: str, **configs: str) -> None:
        self.wire = wire
        self.group = name
        self.topic = f"{name}-topic"
        self.topic_id = wire.create_topic(self.topic, partitions=4)
        self.topology: dict[str, Any] = {"Epoch": 0, "Subtopologies": [subtopology(0, self.topic)]}
        settings = {
            "streams.initial.rebalance.delay.ms": "0",
            "streams.assignment.interval.ms": "0",
            **{key.replace("_", "."): value for key, value in configs.items()},
        }
        rows = [{"Name": key, "ConfigOperation": SET, "Value": value} for key, value in settings.items()]
        resource = {"ResourceType": GROUP, "ResourceName": name, "Configs": rows}
        wire.call("IncrementalAlterConfigs", 1, Resources=[resource])
        self._await_settings(settings)

    def _await_settings(self, settings: dict[str, str]) -> None:
        """Wait until the broker goes by the settings: a KRaft broker learns of them from the controller."""
        resource = {"ResourceType": GROUP, "ResourceName": self.group, "ConfigurationKeys": list(settings)}
        deadline = time.monotonic() + DEADLINE_S
        found: dict[str, str] = {}
        while found != settings:
            assert time.monotonic() < deadline, found
            rows = self.wire.ask("DescribeConfigs", 4, Resources=[resource])["Results"][0]["Configs"]
            found = {row["Name"]: row["Value"] for row in rows}

    def request(self, member: str, epoch: int, told: dict[str, Any]) -> dict[str, Any]:
        body = {**ABSENT, "RebalanceTimeoutMs": -1, "ShutdownApplication": False}
        if epoch == JOINS:
            body |= {**NO_TASKS, "RebalanceTimeoutMs": 60_000, "Topology": self.topology, "ProcessId": f"p-{member}"}
        return {**body, "GroupId": self.group, "MemberId": member, "MemberEpoch": epoch, **told}

    def beat(self, member: str, epoch: int = JOINS, **told: Any) -> Reply:
        reply: Reply = self.wire.call("StreamsGroupHeartbeat", 0, **self.request(member, epoch, told))
        return reply

    def describe(self, group: str | None = None) -> None:
        self.wire.call("StreamsGroupDescribe", 0, GroupIds=[self.group if group is None else group])

    def await_internal_topics(self, member: str, *topics: dict[str, Any]) -> None:
        """Join, wait until the broker has made the internal topics, and send heartbeats until it sees them."""
        epoch = self.wire.ask("StreamsGroupHeartbeat", 0, **self.request(member, JOINS, {}))["MemberEpoch"]
        names = [{"TopicId": bytes(16), "Name": topic["Name"]} for topic in topics]
        deadline = time.monotonic() + DEADLINE_S
        asked = {"Topics": names, "AllowAutoTopicCreation": False}
        while any(each["ErrorCode"] for each in self.wire.ask("Metadata", 12, **asked)["Topics"]):
            assert time.monotonic() < deadline, "the topics are not made"
            time.sleep(PAUSE_S)
        reply = self.wire.ask("StreamsGroupHeartbeat", 0, **self.request(member, epoch, {}))
        while any(each["StatusCode"] == MISSING_INTERNAL_TOPICS for each in reply["Status"]):
            assert time.monotonic() < deadline, "the topics are not seen"
            time.sleep(PAUSE_S)
            reply = self.wire.ask("StreamsGroupHeartbeat", 0, **self.request(member, reply["MemberEpoch"], {}))
        self.wire.note("tasks", [reply[role] for role in TASKS])

    def commit(self, member: str, epoch: int, partition: int = 0, version: int = 9) -> None:
        partitions = [{"PartitionIndex": partition, "CommittedOffset": 5}]
        topics = [{"Name": self.topic, "TopicId": self.topic_id, "Partitions": partitions}]
        epochs = {"MemberId": member, "GenerationIdOrMemberEpoch": epoch}
        self.wire.call("OffsetCommit", version, GroupId=self.group, Topics=topics, **epochs)

    def fetch(self, member: str | None, epoch: int) -> None:
        topics = [{"Name": self.topic, "PartitionIndexes": [0, 1, 2, 3]}]
        group = {"GroupId": self.group, "MemberId": member, "MemberEpoch": epoch, "Topics": topics}
        self.wire.call("OffsetFetch", 9, Groups=[group])

    def listed(self) -> None:
        for states, types in (([], []), (["Stable"], []), (["empty"], []), ([], ["Streams"]), ([], ["consumer"])):
            groups = self.wire.ask("ListGroups", 5, StatesFilter=states, TypesFilter=types)["Groups"]
            self.wire.note("listed", [each for each in groups if each["GroupId"] == self.group])


class TestMembers:
    @compared("beside_kafka_4")
    def test_a_member_joins_and_leaves(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.describe()
        application.beat("m")
        application.beat("m", 2)
        application.describe()
        application.listed()
        wire.call("DeleteGroups", 2, GroupsNames=[name])
        application.beat("m", 3)
        application.beat("m", 1)
        application.beat("n", 2)
        application.beat("m", LEAVES)
        application.beat("m", LEAVES)
        application.describe()
        application.listed()
        wire.call("DeleteGroups", 2, GroupsNames=[name])
        application.beat("m", LEAVES)
        application.beat("m", 2)
        application.describe()
        application.describe("")

    @compared("beside_kafka_4")
    def test_tasks_go_from_one_member_to_another(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.beat("a")
        application.beat("b")
        application.beat("a", 2)
        application.describe()
        application.beat("b", 3)
        application.beat("a", 2, **owns(s0=(0, 1, 2, 3)))
        application.beat("a", 2, **owns(s0=(0, 1)))
        application.beat("b", 3)
        application.describe()
        application.beat("a", 2, **owns(s0=(0, 1)))
        application.beat("a", 2, **owns(s0=(0, 3)))
        application.beat("a", LEAVES)
        application.beat("b", 3)
        application.describe()

    @compared("beside_kafka_4")
    def test_a_process_with_two_members(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        for member in ("a", "b"):
            application.beat(member, ProcessId="one")
        application.beat("a", 2, **owns(s0=(0, 1)))
        application.beat("b", 3)
        application.beat("b", 3, ClientTags=[{"Key": "zone", "Value": "1"}], RackId="r")
        application.beat("a", 3)
        application.describe()

    @compared("beside_kafka_4")
    def test_endpoints(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.beat("a")
        application.beat("a", 2, UserEndpoint={"Host": "here", "Port": 40_000})
        application.beat("a", 3, UserEndpoint={"Host": "here", "Port": 40_000})
        application.beat("b", UserEndpoint={"Host": "there", "Port": 1}, ProcessId="p-b")
        application.beat("a", 3, **owns(s0=(0, 1, 2, 3)))
        application.beat("a", 3, **owns(s0=(0, 1)))
        application.beat("b", 4, EndpointInformationEpoch=1)
        application.describe()

    @compared("beside_kafka_4")
    def test_a_shutdown_of_the_application(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.beat("a")
        application.beat("b")
        application.beat("a", 2, ShutdownApplication=True)
        application.beat("b", 3)
        application.beat("a", LEAVES)
        application.beat("b", 3)
        application.beat("b", LEAVES)
        application.beat("c")

    @compared("beside_kafka_4")
    def test_standby_tasks(self, wire: Wire, name: str) -> None:
        application = Application(wire, name, streams_num_standby_replicas="1")
        changelog = topic_info(f"{name}-store-changelog", **{"cleanup.policy": "compact"})
        application.topology["Subtopologies"] = [subtopology(0, application.topic, StateChangelogTopics=[changelog])]
        application.await_internal_topics("a", changelog)
        application.describe()
        application.beat("b")
        application.beat("a", 3, **owns(s0=(0, 1)))
        application.beat("a", 3)
        application.beat("b", 4)
        application.describe()

    @compared("beside_kafka_4")
    def test_the_first_assignment_waits(self, wire: Wire, name: str) -> None:
        application = Application(wire, name, streams_initial_rebalance_delay_ms="600000")
        application.beat("a")
        application.beat("a", 1)
        application.beat("b")
        application.describe()


class TestTopologies:
    @compared("beside_kafka_4")
    def test_internal_topics_are_made(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        by_city = topic_info(f"{name}-by-city-repartition", **{"cleanup.policy": "delete", "retention.ms": "-1"})
        fixed = topic_info(f"{name}-fixed-repartition", 2)
        changelog = topic_info(f"{name}-sums-changelog", **{"cleanup.policy": "compact"})
        application.topology["Subtopologies"] = [
            subtopology(0, application.topic, RepartitionSinkTopics=[by_city["Name"], fixed["Name"]]),
            subtopology(1, RepartitionSourceTopics=[by_city], StateChangelogTopics=[changelog]),
            subtopology(2, RepartitionSourceTopics=[fixed]),
        ]
        application.await_internal_topics("a", by_city, fixed, changelog)
        application.describe()
        for topic in (by_city, fixed, changelog):
            wire.call("Metadata", 12, Topics=[{"TopicId": bytes(16), "Name": topic["Name"]}])
            resource = {"ResourceType": 2, "ResourceName": topic["Name"], "ConfigurationKeys": ["cleanup.policy"]}
            wire.call("DescribeConfigs", 4, Resources=[resource])

    @compared("beside_kafka_4")
    def test_topics_that_cannot_be_made(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        changelog = topic_info(f"{name}-changelog", **{"cleanup.policy": "nonsense"})
        application.topology["Subtopologies"] = [subtopology(0, application.topic, StateChangelogTopics=[changelog])]
        deadline = time.monotonic() + DEADLINE_S
        reply = wire.ask("StreamsGroupHeartbeat", 0, **application.request("a", JOINS, {}))
        while "Creation failed" not in reply["Status"][0]["StatusDetail"] and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            reply = wire.ask("StreamsGroupHeartbeat", 0, **application.request("a", reply["MemberEpoch"], {}))
        wire.note("status", reply["Status"])
        application.describe()

    @compared("beside_kafka_4")
    def test_topics_that_are_missing_or_unfit(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        small = f"{name}-small"
        application.topology["Subtopologies"] = [
            subtopology(0, application.topic, small, CopartitionGroups=[copartitioned(0, 1)])
        ]
        application.beat("a")
        application.describe()
        application.listed()
        wire.create_topic(small, partitions=2)
        application.beat("a", 2)
        application.describe()

    @compared("beside_kafka_4")
    def test_a_repartition_topic_beside_another_topic(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        repartition = topic_info(f"{name}-repartition", 3)
        application.topology["Subtopologies"] = [
            subtopology(0, application.topic, RepartitionSinkTopics=[repartition["Name"]]),
            subtopology(
                1,
                application.topic,
                RepartitionSourceTopics=[repartition],
                CopartitionGroups=[copartitioned(0, repartition=(0,))],
            ),
        ]
        application.beat("a")

    @compared("beside_kafka_4")
    def test_topologies_that_can_never_work(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        topic, looped = application.topic, topic_info(f"{name}-loop")
        impossible: dict[str, list[dict[str, Any]]] = {
            "changelog": [subtopology(0, topic, StateChangelogTopics=[topic_info("c", 1)])],
            "no source": [subtopology(0)],
            "loop": [
                subtopology(0, RepartitionSourceTopics=[looped], RepartitionSinkTopics=[looped["Name"]]),
            ],
            "never written": [subtopology(0, topic, RepartitionSourceTopics=[looped])],
            "internal": [subtopology(0, "__consumer_offsets")],
            "illegal": [subtopology(0, "a b")],
            "pattern": [subtopology(0, SourceTopicRegex=["a.*"])],
        }
        for subtopologies in impossible.values():
            application.topology["Subtopologies"] = subtopologies
            application.beat("a")
        application.describe()

    @compared("beside_kafka_4")
    def test_another_topology(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        first = dict(application.topology, Epoch=1)
        application.beat("a", Topology=first)
        application.beat("b", Topology=application.topology)
        application.beat("b", 3)
        application.beat("c", Topology=dict(first, Epoch=2))
        application.beat("c", Topology=dict(first, Subtopologies=[subtopology(7, application.topic)]))
        application.beat("a", 2, **owns(s7=(0,)))
        application.beat("a", 2, **owns(s0=(9,)))
        application.describe()

    @compared("beside_kafka_4")
    def test_a_topic_gets_partitions(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.beat("a")
        topics = [{"Name": application.topic, "Count": 6, "Assignments": None}]
        wire.call("CreatePartitions", 3, Topics=topics, TimeoutMs=30_000, ValidateOnly=False)
        deadline = time.monotonic() + DEADLINE_S
        reply = application.wire.ask("StreamsGroupHeartbeat", 0, **application.request("a", 2, {}))
        while reply["MemberEpoch"] == 2 and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            reply = application.wire.ask("StreamsGroupHeartbeat", 0, **application.request("a", 2, {}))
        wire.note("tasks", [reply[role] for role in TASKS])


class TestRequests:
    @compared("beside_kafka_4")
    def test_requests_that_are_refused(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        refused: list[tuple[int, dict[str, Any]]] = [
            (JOINS, {"MemberId": " "}),
            (JOINS, {"GroupId": ""}),
            (JOINS, {"RackId": ""}),
            (JOINS, {"InstanceId": "i"}),
            (JOINS, {"TaskOffsets": []}),
            (JOINS, {"TaskEndOffsets": []}),
            (JOINS, {"WarmupTasks": tasks(s0=(0,))}),
            (JOINS, {"RebalanceTimeoutMs": -1}),
            (JOINS, {"ActiveTasks": None}),
            (JOINS, {"StandbyTasks": tasks(s0=(0,))}),
            (JOINS, {"Topology": None}),
            (1, {"ActiveTasks": []}),
            (1, {"Topology": application.topology}),
            (-2, {}),
            (-3, {}),
            (5, {}),
            (LEAVES, {}),
        ]
        for epoch, told in refused:
            application.beat("m", epoch, **told)

    @compared("beside_kafka_4")
    def test_a_full_group(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.beat("a", ProcessId=None)
        application.beat("a", 2, RebalanceTimeoutMs=1000)
        application.beat("a")
        application.describe()


class TestOffsets:
    @compared("beside_kafka_4")
    def test_offsets_of_members(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.beat("a")
        application.commit("a", 2)
        application.commit("a", 1)
        application.commit("a", 3)
        application.commit("b", 2)
        application.commit("", -1)
        application.commit("a", 2, version=8)
        application.beat("a", 2, RackId="r")
        application.commit("a", 2)
        application.commit("a", 2, version=8)
        application.fetch("a", 3)
        application.fetch("a", 2)
        application.fetch("b", 3)
        application.fetch(None, -1)
        topics = [{"Name": application.topic, "Partitions": [{"PartitionIndex": 0}]}]
        wire.call("OffsetDelete", 0, GroupId=name, Topics=topics)
        application.beat("a", LEAVES)
        application.commit("", -1)
        wire.call("OffsetDelete", 0, GroupId=name, Topics=topics)
        application.fetch(None, -1)

    @compared("beside_kafka_4")
    def test_members_of_other_kinds(self, wire: Wire, name: str) -> None:
        application = Application(wire, name)
        application.commit("", -1)
        application.beat("a")
        application.fetch(None, -1)
        for _ in range(2):
            wire.call("DescribeGroups", 5, Groups=[name])
            wire.call("DescribeGroups", 6, Groups=[name])
            wire.call("ConsumerGroupDescribe", 1, GroupIds=[name])
            wire.call("ShareGroupDescribe", 1, GroupIds=[name])
            subscribed = {"SubscribedTopicNames": [application.topic], "SubscribedTopicRegex": None}
            wire.call(
                "ConsumerGroupHeartbeat",
                1,
                **{**subscribed, "InstanceId": None, "RackId": None, "ServerAssignor": None},
                GroupId=name,
                MemberId="c",
                MemberEpoch=0,
                RebalanceTimeoutMs=1000,
                TopicPartitions=[],
            )
            wire.call(
                "ShareGroupHeartbeat",
                1,
                GroupId=name,
                MemberId="c",
                MemberEpoch=0,
                RackId=None,
                SubscribedTopicNames=[application.topic],
            )
            wire.call("Heartbeat", 4, GroupId=name, GenerationId=1, MemberId="c", GroupInstanceId=None)
            wire.call("LeaveGroup", 2, GroupId=name, MemberId="c")
            application.beat("a", LEAVES)
        protocols = [{"Name": "range", "Metadata": b""}]
        wire.call(
            "JoinGroup",
            3,
            GroupId=name,
            SessionTimeoutMs=10_000,
            RebalanceTimeoutMs=10_000,
            MemberId="",
            ProtocolType="consumer",
            Protocols=protocols,
        )
        application.beat("a")
        application.describe()
        application.fetch(None, -1)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("streams.session.timeout.ms", "50000"),
            ("streams.session.timeout.ms", "44999"),
            ("streams.heartbeat.interval.ms", "15001"),
            ("streams.num.standby.replicas", "3"),
            ("streams.num.standby.replicas", "-1"),
            ("streams.initial.rebalance.delay.ms", "-1"),
            ("streams.initial.rebalance.delay.ms", "0"),
            ("streams.assignment.interval.ms", "15001"),
        ],
    )
    @compared("beside_kafka_4")
    def test_settings_of_a_group(self, wire: Wire, name: str, key: str, value: str) -> None:
        rows = [{"Name": key, "ConfigOperation": SET, "Value": value}]
        resource = {"ResourceType": GROUP, "ResourceName": name, "Configs": rows}
        wire.call("IncrementalAlterConfigs", 1, Resources=[resource])
        resource = {"ResourceType": GROUP, "ResourceName": name, "ConfigurationKeys": [key]}
        wire.call("DescribeConfigs", 4, Resources=[resource], IncludeSynonyms=True)
