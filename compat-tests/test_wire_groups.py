"""Groups and their offsets beside a real Kafka."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.client import Wire

NOT_THERE = b"\7" * 16
SESSION_MS = 30_000


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    """Write what a consumer says of itself, in version 0. Kafka parses it, and never answers if it cannot."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(user_data)) + user_data


def protocols(*names: str, topics: Sequence[str] = ()) -> list[dict[str, Any]]:
    return [{"Name": name, "Metadata": subscription(*topics, user_data=name.encode())} for name in names]


def join(wire: Wire, version: int, group: str, member: str = "", **more: Any) -> Any:
    send_join(wire, version, group, member, **more)
    return wire.receive("JoinGroup", version)


def send_join(wire: Wire, version: int, group: str, member: str = "", **more: Any) -> None:
    body = {
        "GroupId": group,
        "SessionTimeoutMs": SESSION_MS,
        "RebalanceTimeoutMs": SESSION_MS,
        "MemberId": member,
        "ProtocolType": "consumer",
        "Protocols": protocols("range"),
        **more,
    }
    wire.send("JoinGroup", version, **body)


def sync(wire: Wire, version: int, group: str, member: str, generation: int, **more: Any) -> Any:
    return wire.call("SyncGroup", version, GroupId=group, MemberId=member, GenerationId=generation, **more)


def stable(wire: Wire, group: str) -> str:
    """Make a group of one member, which is stable in generation 1, and return its id."""
    member = str(join(wire, 3, group)["MemberId"])
    sync(wire, 3, group, member, 1, Assignments=[{"MemberId": member, "Assignment": b"assigned"}])
    return member


def commit(wire: Wire, version: int, group: str, topic: str, *offsets: int, **more: Any) -> None:
    inner = {key: more.pop(key) for key in ("CommittedMetadata", "CommittedLeaderEpoch") if key in more}
    topic_id = more.pop("TopicId", bytes(16))
    partitions = [{"PartitionIndex": index, "CommittedOffset": offset, **inner} for index, offset in enumerate(offsets)]
    topics = [{"Name": topic, "TopicId": topic_id, "Partitions": partitions}]
    wire.call("OffsetCommit", version, GroupId=group, Topics=topics, **more)


def fetch_offsets(
    wire: Wire, version: int, group: str, topics: list[tuple[str, bytes, list[int]]] | None, **more: Any
) -> None:
    old, new = None, None
    if topics is not None:
        old = [{"Name": name, "PartitionIndexes": indexes} for name, _, indexes in topics]
        new = [{"Name": name, "TopicId": key, "PartitionIndexes": indexes} for name, key, indexes in topics]
    wire.call("OffsetFetch", version, GroupId=group, Topics=old, Groups=[{"GroupId": group, "Topics": new}], **more)


def describe(wire: Wire, *groups: str) -> None:
    wire.call("DescribeGroups", 5, Groups=groups)


class TestFindCoordinator:
    @compared("beside_kafka_4")
    def test_t50_every_version(self, wire: Wire, name: str) -> None:
        for version in wire.versions("FindCoordinator"):
            for keys in ([name], [name, "", "other"], []):
                wire.call("FindCoordinator", version, Key=name, CoordinatorKeys=keys)
            for kind in (2, 3, -1):
                wire.call("FindCoordinator", version, Key=name, CoordinatorKeys=[name], KeyType=kind)


class TestMembership:
    @compared("beside_kafka_4")
    def test_t51_life_of_a_member_in_every_version(self, wire: Wire, name: str) -> None:
        for version in wire.versions("JoinGroup"):
            group = f"{name}-{version}"
            first = join(wire, version, group)
            member = first["MemberId"]
            if version >= 4:
                # Not described here: Kafka shows a group as of its last write, and nothing of this one is written yet.
                first = join(wire, version, group, member)
            wire.note("name of the member", member.rpartition("-")[0].startswith("probe-"))
            other = min(version, 5)
            assignments = [{"MemberId": member, "Assignment": b"assigned"}]
            named = {"ProtocolType": "consumer", "ProtocolName": "range"}
            sync(wire, other, group, member, first["GenerationId"], Assignments=assignments, **named)
            describe(wire, group)
            wire.call("Heartbeat", min(version, 4), GroupId=group, MemberId=member, GenerationId=1)
            members = [{"MemberId": member}]
            wire.call("LeaveGroup", other, GroupId=group, MemberId=member, Members=members)
            wire.call("LeaveGroup", other, GroupId=group, MemberId=member, Members=members)
            describe(wire, group)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"GroupId": ""},
            {"SessionTimeoutMs": 1},
            {"SessionTimeoutMs": 5999},
            {"SessionTimeoutMs": 1_800_001},
            {"SessionTimeoutMs": -1},
            {"Protocols": []},
            {"Protocols": [{"Name": "", "Metadata": b""}]},
            {"ProtocolType": ""},
            {"MemberId": "nobody"},
            {"MemberId": "nobody", "GroupInstanceId": "static"},
            {"GroupInstanceId": ""},
            {"GroupInstanceId": "a b"},
        ],
        ids=str,
    )
    @compared("beside_kafka_4")
    def test_t52_joins_that_are_refused(self, wire: Wire, name: str, wrong: dict[str, Any]) -> None:
        for version in (0, 3, 5, 9):
            join(wire, version, f"{name}-{version}", **wrong)

    @compared("beside_kafka_4")
    def test_t52_a_stable_group(self, wire: Wire, name: str) -> None:
        member = stable(wire, name)
        for version in wire.versions("Heartbeat"):
            for group, who, generation in (
                (name, member, 1),
                (name, member, 0),
                (name, member, 2),
                (name, "nobody", 1),
                (name, "", 1),
                ("unknown", member, 1),
                ("", member, 1),
            ):
                wire.call("Heartbeat", version, GroupId=group, MemberId=who, GenerationId=generation)
        for version in wire.versions("SyncGroup"):
            named = {"ProtocolType": "consumer", "ProtocolName": "range"}
            sync(wire, version, name, member, 1, **named)
            sync(wire, version, name, member, 2, **named)
            sync(wire, version, name, "nobody", 1, **named)
            sync(wire, version, "unknown", member, 1, **named)
            sync(wire, version, "", member, 1, **named)
            sync(wire, version, name, member, 1, ProtocolType="connect", ProtocolName="range")
            sync(wire, version, name, member, 1, ProtocolType="consumer", ProtocolName="sticky")
            sync(wire, version, name, member, 1)
        for version in wire.versions("JoinGroup"):
            join(wire, version, name, Protocols=protocols("other"))
            join(wire, version, name, ProtocolType="connect")
            join(wire, version, name, "nobody")
        describe(wire, name)

    @compared("beside_kafka_4")
    def test_t52_joining_again(self, wire: Wire, name: str) -> None:
        member = stable(wire, name)
        join(wire, 3, name, member)
        wire.call("Heartbeat", 3, GroupId=name, MemberId=member, GenerationId=2)
        describe(wire, name)
        assignments = [{"MemberId": member, "Assignment": b""}, {"MemberId": "nobody", "Assignment": b"x"}]
        sync(wire, 3, name, member, 2, Assignments=assignments)
        describe(wire, name)

    @compared("beside_kafka_4")
    def test_t53_t55_two_members(self, wire: Wire, name: str) -> None:
        first = stable(wire, name)
        other = wire.other_connection()
        second = join(other, 5, name)["MemberId"]
        send_join(other, 5, name, second, Protocols=protocols("roundrobin", "range"))
        wire.until(
            lambda: wire.ask("DescribeGroups", 0, Groups=[name])["Groups"][0]["GroupState"] == "PreparingRebalance"
        )
        wire.call("Heartbeat", 3, GroupId=name, MemberId=first, GenerationId=1)
        describe(wire, name)
        topic = f"{name}-topic"
        wire.create_topic(topic)
        commit(wire, 7, name, topic, 5, MemberId=first, GenerationIdOrMemberEpoch=1)
        join(wire, 5, name, first)
        other.receive("JoinGroup", 5)
        describe(wire, name)
        commit(wire, 7, name, topic, 6, MemberId=first, GenerationIdOrMemberEpoch=2)
        other.send("SyncGroup", 3, GroupId=name, MemberId=second, GenerationId=2)
        sync(wire, 3, name, first, 2, Assignments=[{"MemberId": second, "Assignment": b"for the second"}])
        other.receive("SyncGroup", 3)
        describe(wire, name)
        wire.call("LeaveGroup", 3, GroupId=name, Members=[{"MemberId": second}, {"MemberId": "nobody"}])
        wire.call("Heartbeat", 3, GroupId=name, MemberId=first, GenerationId=2)
        wire.call("Heartbeat", 3, GroupId=name, MemberId=second, GenerationId=2)

    @compared("beside_kafka_4")
    def test_static_members(self, wire: Wire, name: str) -> None:
        first = join(wire, 5, name, GroupInstanceId="one")
        member = first["MemberId"]
        assignments = [{"MemberId": member, "Assignment": b"assigned"}]
        sync(wire, 3, name, member, 1, GroupInstanceId="one", Assignments=assignments)
        for instance, who in (("one", member), ("one", "nobody"), ("two", member), (None, member)):
            wire.call("Heartbeat", 3, GroupId=name, MemberId=who, GenerationId=1, GroupInstanceId=instance)
            sync(wire, 3, name, who, 1, GroupInstanceId=instance)
        again = join(wire, 5, name, GroupInstanceId="one")
        wire.note("has a new id", again["MemberId"] != member)
        join(wire, 9, name, GroupInstanceId="one")
        wire.call("Heartbeat", 3, GroupId=name, MemberId=member, GenerationId=1, GroupInstanceId="one")
        join(wire, 5, name, member, GroupInstanceId="one")
        describe(wire, name)
        for version in (3, 4, 5):
            members = [{"MemberId": "", "GroupInstanceId": "two"}, {"MemberId": member, "GroupInstanceId": "one"}]
            wire.call("LeaveGroup", version, GroupId=name, Members=members)
        wire.call("LeaveGroup", 3, GroupId=name, Members=[{"MemberId": "", "GroupInstanceId": "one"}])
        describe(wire, name)

    @compared("beside_kafka_4")
    def test_t59_leaving(self, wire: Wire, name: str) -> None:
        member = stable(wire, name)
        for version in wire.versions("LeaveGroup"):
            for group, who in ((name, "nobody"), ("unknown", member), ("", member), (name, "")):
                wire.call("LeaveGroup", version, GroupId=group, MemberId=who, Members=[{"MemberId": who}])
        wire.call("LeaveGroup", 3, GroupId=name, Members=[])
        wire.call("LeaveGroup", 3, GroupId=name, Members=[{"MemberId": member}, {"MemberId": member}])

    @compared("beside_kafka_4")
    def test_t53_t54_the_protocol_that_all_share_is_chosen(self, wire: Wire, name: str) -> None:
        other = wire.other_connection()
        first = join(wire, 3, name, Protocols=protocols("a", "b", "c"))["MemberId"]
        send_join(other, 3, name, Protocols=protocols("d", "c", "b"))
        wire.until(
            lambda: wire.ask("DescribeGroups", 0, Groups=[name])["Groups"][0]["GroupState"] == "PreparingRebalance"
        )
        join(wire, 3, name, first, Protocols=protocols("a", "b", "c"))
        other.receive("JoinGroup", 3)


class TestOffsets:
    @compared("beside_kafka_4")
    def test_t56_t57_every_version(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name, 3)
        for version in wire.versions("OffsetCommit"):
            commit(
                wire,
                version,
                name,
                name,
                5,
                6,
                CommittedMetadata=f"v{version}",
                CommittedLeaderEpoch=0,
                TopicId=topic_id,
            )
            commit(wire, version, f"{name}-{version}", name, version, TopicId=topic_id)
        for version in wire.versions("OffsetFetch"):
            fetch_offsets(wire, version, name, [(name, topic_id, [0, 1, 2, 77, -1]), ("unknown", NOT_THERE, [0])])
            fetch_offsets(wire, version, "nobody", [(name, topic_id, [0])])
            fetch_offsets(wire, version, name, [])
            fetch_offsets(wire, version, name, [(name, topic_id, [0])], RequireStable=True)
            if version >= 2:
                fetch_offsets(wire, version, name, None)
                fetch_offsets(wire, version, "nobody", None)
            fetch_offsets(wire, version, "", [(name, topic_id, [0])])

    @pytest.mark.parametrize(
        "more",
        [
            {"CommittedMetadata": None},
            {"CommittedMetadata": ""},
            {"CommittedMetadata": "x" * 4096},
            {"CommittedMetadata": "x" * 4097},
            {"CommittedMetadata": "\u00fc" * 2048},
            {"CommittedMetadata": "\u00fc" * 4096},
            {"CommittedLeaderEpoch": 5},
            {"CommittedLeaderEpoch": -5},
            {"MemberId": "nobody"},
            {"GenerationIdOrMemberEpoch": 0},
            {"GenerationIdOrMemberEpoch": 5, "MemberId": "nobody"},
            {"GenerationIdOrMemberEpoch": -2},
            {"GroupInstanceId": "static"},
            {"GroupId": ""},
            {"RetentionTimeMs": 1},
            {"RetentionTimeMs": -5},
        ],
        ids=lambda more: str(more)[:50],
    )
    @compared("beside_kafka_4")
    def test_t52_t56_commits_of_all_kinds(self, wire: Wire, name: str, more: dict[str, Any]) -> None:
        topic_id = wire.create_topic(name, 2)
        for version in (2, 5, 7, 9, 10):
            group = more.get("GroupId", f"{name}-{version}")
            rest = {key: value for key, value in more.items() if key != "GroupId"}
            commit(wire, version, group, name, 5, -1, TopicId=topic_id, **rest)
            fetch_offsets(wire, 5, group, [(name, topic_id, [0, 1])])

    @compared("beside_kafka_4")
    def test_t56_unknown_topics(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name)
        for version in wire.versions("OffsetCommit"):
            topics = [
                {
                    "Name": topic,
                    "TopicId": key,
                    "Partitions": [{"PartitionIndex": index, "CommittedOffset": 5} for index in (0, 77, -1)],
                }
                for topic, key in ((name, topic_id), ("unknown", NOT_THERE), ("a/b", bytes(16)))
            ]
            wire.call("OffsetCommit", version, GroupId=name, Topics=topics)
            wire.call("OffsetCommit", version, GroupId=name, Topics=[])

    @compared("beside_kafka_4")
    def test_t52_commits_to_an_active_group(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        member = stable(wire, name)
        for who, generation in ((member, 1), (member, 2), (member, 0), (member, -1), ("", -1), ("nobody", 1), ("", 1)):
            for version in (2, 7, 9):
                commit(wire, version, name, name, 5, MemberId=who, GenerationIdOrMemberEpoch=generation)
        for epoch in (-1, 0, 5):
            for who in (None, member):
                groups = [{"GroupId": name, "MemberId": who, "MemberEpoch": epoch, "Topics": None}]
                wire.call("OffsetFetch", 9, Groups=groups)

    @compared("beside_kafka_4")
    def test_many_groups_in_one_request(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        commit(wire, 8, name, name, 5)
        wanted = [{"Name": name, "PartitionIndexes": [0]}]
        groups = [{"GroupId": group, "Topics": topics} for group in (name, "nobody", "") for topics in (wanted, None)]
        for version in (8, 9):
            wire.call("OffsetFetch", version, Groups=groups)
            wire.call("OffsetFetch", version, Groups=[])

    @compared("beside_kafka_4")
    def test_offset_delete(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, 2)
        commit(wire, 8, name, name, 5, 6)
        for group, topic, indexes in (
            (name, name, [0, 77, -1]),
            (name, "unknown", [0]),
            (name, name, []),
            ("nobody", name, [0]),
            ("", name, [0]),
        ):
            topics = [{"Name": topic, "Partitions": [{"PartitionIndex": index} for index in indexes]}]
            wire.call("OffsetDelete", 0, GroupId=group, Topics=topics)
            wire.call("OffsetDelete", 0, GroupId=group, Topics=[])
        fetch_offsets(wire, 5, name, None)
        topics = [{"Name": name, "Partitions": [{"PartitionIndex": 1}]}]
        member = join(wire, 3, name, Protocols=protocols("range", topics=[name]))["MemberId"]
        sync(wire, 3, name, member, 1)
        wire.call("OffsetDelete", 0, GroupId=name, Topics=topics)


class TestAdmin:
    @compared("beside_kafka_4")
    def test_t58_describe(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        stable(wire, name)
        commit(wire, 8, f"{name}-simple", name, 5)
        for version in wire.versions("DescribeGroups"):
            wire.call("DescribeGroups", version, Groups=[name, f"{name}-simple", "unknown", ""])
            wire.call("DescribeGroups", version, Groups=[name, "unknown"], IncludeAuthorizedOperations=True)
            wire.call("DescribeGroups", version, Groups=[])

    @compared("beside_kafka_4")
    def test_list(self, wire: Wire, name: str) -> None:
        stable(wire, name)
        for version in wire.versions("ListGroups"):
            for states in ([], ["Stable"], ["stable"], ["Empty", "Stable"], ["Nonsense"], [""]):
                for types in ([], ["classic"], ["Classic"], ["consumer"], ["nonsense"]):
                    reply = wire.ask("ListGroups", version, StatesFilter=states, TypesFilter=types)
                    found = [group for group in reply["Groups"] if group["GroupId"] == name]
                    wire.note("ListGroups", (version, states, types, reply["ErrorCode"], found))

    @compared("beside_kafka_4")
    def test_t59_delete(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        stable(wire, f"{name}-active")
        for version in wire.versions("DeleteGroups"):
            commit(wire, 8, name, name, 5)
            wire.call("DeleteGroups", version, GroupsNames=[name, f"{name}-active", "unknown", ""])
            wire.call("DeleteGroups", version, GroupsNames=[])
            fetch_offsets(wire, 5, name, None)
        commit(wire, 8, name, name, 5)
        wire.call("DeleteGroups", 2, GroupsNames=[name, name])
