"""The group APIs as clients see them, in every version, with the answers that were measured on Kafka."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from support.coordinator import GroupNode, coordinator
from trio.testing import wait_all_tasks_blocked

from odradek.cluster.authorized_operations import GROUP_OPERATIONS
from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek_protocol.errors import Error
from odradek_protocol.internal.consumer_protocol import ConsumerProtocolSubscription
from odradek_protocol.internal.versioned import encode_versioned
from odradek_protocol.messages.delete_groups import DeleteGroupsRequest
from odradek_protocol.messages.describe_groups import NOT_ASKED, DescribeGroupsRequest
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.heartbeat import HeartbeatRequest
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek_protocol.messages.list_groups import ListGroupsRequest
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek_protocol.schema import NULL_UUID

SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 0)


@asynccontextmanager
async def serving(folder: Path, **settings: object) -> AsyncIterator[GroupNode]:
    """A node with the offsets topic and a topic t of three partitions."""
    async with coordinator(folder, **settings) as node:
        await node.make_offsets_topic()
        await node.make_topic("t")
        yield node


def join_request(member_id: str = "", group_id: str = "g", **changes: Any) -> JoinGroupRequest:
    fields: dict[str, Any] = {
        "group_id": group_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        **changes,
    }
    return JoinGroupRequest(**fields)


def sync_request(member_id: str, generation: int, assignment: bytes | None = None, **changes: Any) -> SyncGroupRequest:
    assignments = [] if assignment is None else [SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)]
    fields: dict[str, Any] = {
        "group_id": "g",
        "generation_id": generation,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": assignments,
        **changes,
    }
    return SyncGroupRequest(**fields)


async def stable_member(node: GroupNode, **changes: Any) -> str:
    """The id of the one member of group g, generation 1."""
    joined = await node.ask(join_request(**changes), 3)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    synced = await node.ask(sync_request(joined.member_id, 1, b"abc", protocol_type=None, protocol_name=None), 3)
    assert (synced.error_code, synced.assignment) == (0, b"abc")
    return str(joined.member_id)


def commit_request(offset: int, *, group_id: str = "g", topic: str = "t", index: int = 0, **changes: Any) -> Any:
    metadata = changes.pop("metadata", "m")
    partition = OffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata=metadata, committed_leader_epoch=-1
    )
    named = OffsetCommitRequestTopic(name=topic, topic_id=changes.pop("topic_id", NULL_UUID), partitions=[partition])
    return OffsetCommitRequest(group_id=group_id, topics=[named], **changes)


async def commit(node: GroupNode, offset: int, *, version: int = 8, **changes: Any) -> int:
    reply = await node.ask(commit_request(offset, **changes), version)
    return int(reply.topics[0].partitions[0].error_code)


async def fetched(node: GroupNode, *, group_id: str = "g", index: int = 0) -> tuple[int, int, str, int]:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[index])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)])
    found = (await node.ask(request, 8)).groups[0].topics[0].partitions[0]
    return found.committed_offset, found.committed_leader_epoch, found.metadata, found.error_code


# -- FindCoordinator --


@pytest.mark.parametrize("version", range(7))
async def test_t50_the_first_look_up_makes_the_topic_and_finds_a_coordinator_that_serves(
    tmp_path: Path, version: int
) -> None:
    async with coordinator(tmp_path) as node:
        reply = await node.ask(FindCoordinatorRequest(key="g", coordinator_keys=["g"]), version)
        found = reply if version < 4 else reply.coordinators[0]
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "10.1.2.3", 9093)
        assert found.error_message == ("" if version >= 4 else "NONE" if version else None)
        assert CONSUMER_OFFSETS in node.view.topics
        assert (await node.ask(join_request(), 3)).error_code == 0


async def test_many_coordinators_at_once(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        reply = await node.ask(FindCoordinatorRequest(coordinator_keys=["a", "b", "c"]), 4)
        assert [(found.key, found.error_code, found.node_id) for found in reply.coordinators] == [
            ("a", 0, 1),
            ("b", 0, 1),
            ("c", 0, 1),
        ]


@pytest.mark.parametrize(
    ("key_type", "version", "error"),
    [
        (1, 1, Error.COORDINATOR_NOT_AVAILABLE),
        (1, 6, Error.COORDINATOR_NOT_AVAILABLE),
        (2, 5, Error.INVALID_REQUEST),
        (2, 6, Error.INVALID_REQUEST),
        (9, 6, Error.INVALID_REQUEST),
    ],
)
async def test_coordinators_that_are_not_here(tmp_path: Path, key_type: int, version: int, error: Error) -> None:
    async with coordinator(tmp_path) as node:
        reply = await node.ask(FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=["k"]), version)
        found = reply if version < 4 else reply.coordinators[0]
        assert (found.error_code, found.node_id, found.host, found.port) == (error, -1, "", -1)
        assert found.error_message


async def test_t50_a_topic_that_cannot_be_made_is_told_as_retriable(tmp_path: Path) -> None:
    async with coordinator(tmp_path, offsets_topic_replication_factor=3) as node:
        reply = await node.ask(FindCoordinatorRequest(key="g"), 3)
        assert reply.error_code == Error.COORDINATOR_NOT_AVAILABLE


# -- JoinGroup, SyncGroup, Heartbeat, LeaveGroup --


@pytest.mark.parametrize("version", range(10))
async def test_t51_a_join_in_every_version(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        first = await node.ask(join_request(), version)
        assert first.member_id.startswith("probe-")
        if version >= 4:
            assert (first.error_code, first.generation_id, first.leader) == (Error.MEMBER_ID_REQUIRED, -1, "")
            assert first.protocol_name == (None if version >= 7 else "")
            assert list(first.members) == []
            first = await node.ask(join_request(first.member_id), version)
        assert (first.error_code, first.generation_id, first.protocol_name) == (0, 1, "range")
        assert first.protocol_type == ("consumer" if version >= 7 else None)
        assert first.leader == first.member_id
        assert [(member.member_id, member.metadata) for member in first.members] == [(first.member_id, SUBSCRIPTION)]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"session_timeout_ms": 5_999}, Error.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 6_000}, Error.NONE),
        ({"session_timeout_ms": 1_800_000}, Error.NONE),
        ({"session_timeout_ms": 1_800_001}, Error.INVALID_SESSION_TIMEOUT),
        ({"group_id": ""}, Error.INVALID_GROUP_ID),
        ({"protocols": []}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "zz"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
async def test_t52_joins_that_are_refused(tmp_path: Path, changes: dict[str, Any], error: Error) -> None:
    async with serving(tmp_path) as node:
        assert (await node.ask(join_request(**changes), 3)).error_code == error


async def test_a_client_without_a_rebalance_timeout_is_given_its_session_timeout(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        joined = await node.ask(join_request(), 0)
        group = node.groups.find("g")
        assert group is not None
        assert group.members[joined.member_id].rebalance_timeout_ms == 10_000


async def test_a_static_member_is_named_after_its_instance_and_skips_the_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        joined = await node.ask(join_request(group_instance_id="i"), 9)
        assert joined.error_code == 0
        assert joined.member_id.startswith("i-")
        await node.ask(sync_request(joined.member_id, 1, b"abc", group_instance_id="i"), 5)
        again = await node.ask(join_request(group_instance_id="i"), 9)
        assert (again.skip_assignment, again.leader == again.member_id, again.generation_id) == (True, True, 1)
        fenced = await node.ask(
            HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id, group_instance_id="i"), 4
        )
        assert fenced.error_code == Error.FENCED_INSTANCE_ID


@pytest.mark.parametrize("version", range(6))
async def test_t53_a_sync_in_every_version(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        joined = await node.ask(join_request(), 3)
        reply = await node.ask(sync_request(joined.member_id, 1, b"\x00\xff"), version)
        assert (reply.error_code, reply.assignment) == (0, b"\x00\xff")
        assert (reply.protocol_type, reply.protocol_name) == (("consumer", "range") if version >= 5 else (None, None))


async def test_t53_a_member_that_is_assigned_nothing_gets_empty_bytes(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        joined = await node.ask(join_request(), 3)
        for version in (3, 4, 5):
            assert (await node.ask(sync_request(joined.member_id, 1), version)).assignment == b""


async def test_a_sync_that_does_not_name_its_protocol_is_refused_where_it_has_to(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        member_id = await stable_member(node)
        nameless = sync_request(member_id, 1, protocol_type=None)
        assert (await node.ask(nameless, 5)).error_code == Error.INCONSISTENT_GROUP_PROTOCOL
        assert (await node.ask(sync_request(member_id, 1, group_id=""), 5)).error_code == Error.INVALID_GROUP_ID
        assert (await node.ask(sync_request(member_id, 1, group_id="no"), 5)).error_code == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(5))
async def test_t52_heartbeats(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        member_id = await stable_member(node)

        async def beat(group_id: str, member: str, generation: int) -> int:
            request = HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member)
            return int((await node.ask(request, version)).error_code)

        assert await beat("g", member_id, 1) == 0
        assert await beat("g", member_id, 2) == Error.ILLEGAL_GENERATION
        assert await beat("g", "zz", 1) == Error.UNKNOWN_MEMBER_ID
        assert await beat("gnone", member_id, 1) == Error.UNKNOWN_MEMBER_ID
        assert await beat("", member_id, 1) == Error.INVALID_GROUP_ID


async def test_t52_the_life_of_a_group(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        member_id = await stable_member(node)
        active = {"member_id": member_id, "generation_id_or_member_epoch": 1}
        assert await commit(node, 1, **active) == 0
        assert await commit(node, 1) == Error.UNKNOWN_MEMBER_ID
        assert await commit(node, 1, member_id=member_id, generation_id_or_member_epoch=9) == Error.ILLEGAL_GENERATION
        for changes in (
            {"protocol_type": "connect"},
            {"protocols": [JoinGroupRequestProtocol(name="x", metadata=b"")]},
        ):
            assert (await node.ask(join_request(**changes), 3)).error_code == Error.INCONSISTENT_GROUP_PROTOCOL
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.ask, join_request(), 3)
            await wait_all_tasks_blocked()
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
            assert (await node.ask(beat, 4)).error_code == Error.REBALANCE_IN_PROGRESS
            assert await commit(node, 2, **active) == 0
            waiting = await node.ask(sync_request(member_id, 1), 5)
            assert waiting.error_code == Error.REBALANCE_IN_PROGRESS
            members = [MemberIdentity(member_id=member_id), MemberIdentity(member_id="zz")]
            left = await node.ask(LeaveGroupRequest(group_id="g", members=members), 5)
        assert left.error_code == 0
        assert [(each.member_id, each.group_instance_id, each.error_code) for each in left.members] == [
            (member_id, None, 0),
            ("zz", None, Error.UNKNOWN_MEMBER_ID),
        ]


@pytest.mark.parametrize("version", range(6))
async def test_t59_leaving_in_every_version(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        member_id = await stable_member(node)

        async def leave(group_id: str, member: str) -> tuple[int, list[int]]:
            members = [MemberIdentity(member_id=member)]
            reply = await node.ask(LeaveGroupRequest(group_id=group_id, member_id=member, members=members), version)
            return reply.error_code, [each.error_code for each in reply.members]

        unknown = Error.UNKNOWN_MEMBER_ID
        one = version < 3
        assert await leave("g", "zz") == ((unknown, []) if one else (0, [unknown]))
        assert await leave("gnone", member_id) == ((unknown, []) if one else (0, [unknown]))
        assert await leave("", member_id) == (Error.INVALID_GROUP_ID, [])
        assert await leave("g", member_id) == ((0, []) if one else (0, [0]))
        assert await leave("g", member_id) == ((unknown, []) if one else (0, [unknown]))


# -- OffsetCommit, OffsetFetch --


@pytest.mark.parametrize("version", range(11))
async def test_t56_a_commit_in_every_version(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        topic_id = node.view.topics["t"].topic_id
        assert await commit(node, 5, version=version, topic_id=topic_id) == 0
        assert await fetched(node) == (5, -1, "m", 0)
        assert await commit(node, 6, version=version, topic_id=topic_id, index=3) == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(node, 6, version=version, topic_id=topic_id, index=-1) == Error.UNKNOWN_TOPIC_OR_PARTITION
        unknown = Error.UNKNOWN_TOPIC_ID if version >= 10 else Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(node, 6, version=version, topic="nope", topic_id=b"x" * 16) == unknown


async def test_t56_metadata_round_trips_and_has_a_limit(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert await commit(node, 1, metadata="ünï\u0000") == 0
        assert await fetched(node) == (1, -1, "ünï\u0000", 0)
        assert await commit(node, 2, metadata=None) == 0
        assert await fetched(node) == (2, -1, "", 0)
        assert await commit(node, 3, metadata="x" * 4096) == 0
        assert await commit(node, 4, metadata="x" * 4097) == Error.OFFSET_METADATA_TOO_LARGE
        assert (await fetched(node))[0] == 3


async def test_t56_leader_epochs_round_trip(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        request = commit_request(7)
        request.topics[0].partitions[0].committed_leader_epoch = 4
        await node.ask(request, 6)
        assert await fetched(node) == (7, 4, "m", 0)


async def test_t52_commits_to_groups_that_are_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        stale = {"group_id": "gnone", "member_id": "zz", "generation_id_or_member_epoch": 3}
        assert await commit(node, 1, version=8, **stale) == Error.ILLEGAL_GENERATION
        assert await commit(node, 1, version=9, **stale) == Error.GROUP_ID_NOT_FOUND
        assert await commit(node, 1, group_id="") == 0, "Kafka keeps offsets of a group without a name"
        assert await commit(node, 1, group_id="gs") == 0
        unknown = {"group_id": "gs", "member_id": "zz", "generation_id_or_member_epoch": 1}
        assert await commit(node, 1, **unknown) == Error.UNKNOWN_MEMBER_ID


async def test_one_request_may_store_a_part(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        request = commit_request(1)
        request.topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=9, committed_metadata=metadata)
                    for index, metadata in ((0, "m"), (1, "x" * 5000), (7, "m"))
                ],
            )
            for name in ("t", "nope")
        ]
        reply = await node.ask(request, 8)
        assert [[each.error_code for each in topic.partitions] for topic in reply.topics] == [
            [0, Error.OFFSET_METADATA_TOO_LARGE, Error.UNKNOWN_TOPIC_OR_PARTITION],
            [Error.UNKNOWN_TOPIC_OR_PARTITION] * 3,
        ]
        request.member_id = "zz"
        request.generation_id_or_member_epoch = 1
        reply = await node.ask(request, 8)
        assert [each.error_code for each in reply.topics[0].partitions] == [
            Error.UNKNOWN_MEMBER_ID,
            Error.UNKNOWN_MEMBER_ID,
            Error.UNKNOWN_TOPIC_OR_PARTITION,
        ]


@pytest.mark.parametrize("version", range(8))
async def test_t57_offsets_of_one_group(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]

        async def fetch(topics: Any) -> tuple[int, list[tuple[str, list[tuple[int, int, str, int]]]]]:
            reply = await node.ask(OffsetFetchRequest(group_id="g", topics=topics), version)
            return reply.error_code, [
                (
                    topic.name,
                    [
                        (each.committed_offset, each.committed_leader_epoch, each.metadata, each.error_code)
                        for each in topic.partitions
                    ],
                )
                for topic in reply.topics
            ]

        nothing = (-1, -1, "", 0)
        assert await fetch(wanted) == (0, [("t", [nothing, nothing])])
        assert await fetch([OffsetFetchRequestTopic(name="nope", partition_indexes=[9])]) == (0, [("nope", [nothing])])
        if version >= 2:
            assert await fetch(None) == (0, [])
        await commit(node, 5)
        assert await fetch(wanted) == (0, [("t", [(5, -1, "m", 0), nothing])])
        assert await fetch([]) == (0, [])
        if version >= 2:
            assert await fetch(None) == (0, [("t", [(5, -1, "m", 0)])])
        node.groups.stop()
        error = Error.NOT_COORDINATOR
        assert await fetch(wanted) == ((error, []) if version >= 2 else (0, [("t", [(-1, -1, "", error)] * 2)]))


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_t14_t57_offsets_of_many_groups(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        known_id = node.view.topics["t"].topic_id
        await commit(node, 5)
        named = OffsetFetchRequestTopics(name="t", topic_id=known_id, partition_indexes=[0, 2])
        unknown = OffsetFetchRequestTopics(name="nope", topic_id=b"x" * 16, partition_indexes=[0])
        groups = [
            OffsetFetchRequestGroup(group_id="g", topics=[named, unknown]),
            OffsetFetchRequestGroup(group_id="g", topics=None),
            OffsetFetchRequestGroup(group_id="gx", topics=None),
            OffsetFetchRequestGroup(group_id="gx", topics=[named]),
        ]
        reply = await node.ask(OffsetFetchRequest(groups=groups, require_stable=True), version)
        assert [(group.group_id, group.error_code) for group in reply.groups] == [
            ("g", 0),
            ("g", 0),
            ("gx", 0),
            ("gx", 0),
        ]
        found = [
            [[(each.committed_offset, each.error_code) for each in topic.partitions] for topic in group.topics]
            for group in reply.groups
        ]
        missing = Error.UNKNOWN_TOPIC_ID if version >= 10 else 0
        assert found == [[[(5, 0), (-1, 0)], [(-1, missing)]], [[(5, 0)]], [], [[(-1, 0), (-1, 0)]]]
        told = reply.groups[1].topics[0]
        assert (told.name, told.topic_id) == (("t", NULL_UUID) if version < 10 else ("", known_id))


async def test_t57_offsets_of_a_topic_that_is_gone_have_no_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await commit(node, 5)
        await node.controller.delete_topic("t")
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        assert [topic.name for topic in (await node.ask(request, 9)).groups[0].topics] == ["t"]
        assert list((await node.ask(request, 10)).groups[0].topics) == []


async def test_offsets_of_a_group_that_is_elsewhere(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        group = (await node.ask(request, 8)).groups[0]
        assert (group.error_code, list(group.topics)) == (Error.NOT_COORDINATOR, [])


# -- DescribeGroups, ListGroups, DeleteGroups, OffsetDelete --


@pytest.mark.parametrize("version", range(7))
async def test_t58_descriptions(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        member_id = await stable_member(node)
        request = DescribeGroupsRequest(groups=["g", "gnone"], include_authorized_operations=version >= 3)
        known, unknown = (await node.ask(request, version)).groups
        assert (known.error_code, known.group_id, known.group_state) == (0, "g", "Stable")
        assert (known.protocol_type, known.protocol_data) == ("consumer", "range")
        assert known.authorized_operations == (GROUP_OPERATIONS if version >= 3 else NOT_ASKED)
        member = known.members[0]
        assert (member.member_id, member.client_id, member.client_host) == (member_id, "probe", "/127.0.0.1")
        assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"abc")
        error = Error.GROUP_ID_NOT_FOUND if version >= 6 else 0
        assert (unknown.error_code, unknown.group_state, unknown.protocol_type) == (error, "Dead", "")
        assert unknown.error_message == ("Group gnone not found." if version >= 6 else None)
        assert list(unknown.members) == []


async def test_a_group_that_is_not_stable_is_described_without_metadata(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await node.ask(join_request(), 3)
        (group,) = (await node.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
        assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
        assert [(each.member_metadata, each.member_assignment) for each in group.members] == [(b"", b"")]
        node.groups.stop()
        (group,) = (await node.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
        assert (group.error_code, group.group_state) == (Error.NOT_COORDINATOR, "")


async def test_a_rebalancing_group_is_described_with_its_last_assignment(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        member_id = await stable_member(node)
        await node.ask(join_request(member_id=member_id), 3)
        (group,) = (await node.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
        assert group.group_state == "CompletingRebalance"
        assert [(each.member_metadata, each.member_assignment) for each in group.members] == [(b"", b"abc")]


@pytest.mark.parametrize(
    ("version", "states", "types", "expected"),
    [
        (0, [], [], ["g", "gs"]),
        (3, [], [], ["g", "gs"]),
        (4, ["stable"], [], ["g"]),
        (4, [" EMPTY", "Stable"], [], ["g", "gs"]),
        (4, ["nonsense"], [], []),
        (5, ["Empty"], ["CLASSIC"], ["gs"]),
        (5, [], ["classic"], ["g", "gs"]),
        (5, [], ["consumer"], []),
    ],
)
async def test_lists_of_groups(
    tmp_path: Path, version: int, states: list[str], types: list[str], expected: list[str]
) -> None:
    async with serving(tmp_path) as node:
        await stable_member(node)
        await commit(node, 1, group_id="gs")
        reply = await node.ask(ListGroupsRequest(states_filter=states, types_filter=types), version)
        assert sorted(group.group_id for group in reply.groups) == expected
        for group in reply.groups:
            simple = group.group_id == "gs"
            assert group.protocol_type == ("" if simple else "consumer")
            assert group.group_state == (("Empty" if simple else "Stable") if version >= 4 else "")
            assert group.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", range(4))
async def test_t59_deletions(tmp_path: Path, version: int) -> None:
    async with serving(tmp_path) as node:
        await stable_member(node)
        await commit(node, 1, group_id="gs")
        reply = await node.ask(DeleteGroupsRequest(groups_names=["g", "gs", "gnone"]), version)
        assert [(each.group_id, each.error_code) for each in reply.results] == [
            ("g", Error.NON_EMPTY_GROUP),
            ("gs", 0),
            ("gnone", Error.GROUP_ID_NOT_FOUND),
        ]
        assert (await fetched(node, group_id="gs"))[0] == -1
        assert (await node.ask(DescribeGroupsRequest(groups=["gs"]), 5)).groups[0].group_state == "Dead"


async def test_a_deleted_group_stays_deleted_and_may_come_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await commit(node, 1)
        await node.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        assert (await node.ask(ListGroupsRequest(), 5)).groups == []
        assert await commit(node, 2) == 0
        assert (await fetched(node))[0] == 2


def delete_offsets_request(group_id: str, **topics: list[int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in topics.items()
        ],
    )


async def test_offsets_that_are_deleted_one_by_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await node.make_topic("u")
        member_id = await stable_member(node)
        for topic in ("t", "u"):
            await commit(node, 1, topic=topic, member_id=member_id, generation_id_or_member_epoch=1)
        reply = await node.ask(delete_offsets_request("g", t=[0], u=[0, 1, 9], nope=[0], empty=[]), 0)
        assert reply.error_code == 0
        assert {topic.name: [each.error_code for each in topic.partitions] for topic in reply.topics} == {
            "t": [Error.GROUP_SUBSCRIBED_TO_TOPIC],
            "u": [0, 0, Error.UNKNOWN_TOPIC_OR_PARTITION],
            "nope": [Error.UNKNOWN_TOPIC_OR_PARTITION],
        }
        group = node.groups.find("g")
        assert group is not None
        assert group.offsets.partitions() == [("t", 0)]


async def test_offsets_that_may_not_be_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await stable_member(node, protocol_type="connect")

        async def delete(group_id: str) -> tuple[int, Any]:
            reply = await node.ask(delete_offsets_request(group_id, t=[0]), 0)
            return reply.error_code, list(reply.topics)

        assert await delete("g") == (Error.NON_EMPTY_GROUP, [])
        assert await delete("gnone") == (Error.GROUP_ID_NOT_FOUND, [])
        assert await delete("") == (Error.INVALID_GROUP_ID, [])
