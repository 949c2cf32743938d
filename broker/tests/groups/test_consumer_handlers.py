"""The APIs of KIP-848 as clients see them, on real logs; and members of both protocols in one group."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from support.coordinator import GroupNode, coordinator

from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.group import Group
from odradek_protocol.errors import Error
from odradek_protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from odradek_protocol.internal.versioned import decode_newest, encode_versioned
from odradek_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek_protocol.messages.delete_groups import DeleteGroupsRequest
from odradek_protocol.messages.describe_groups import DescribeGroupsRequest
from odradek_protocol.messages.heartbeat import HeartbeatRequest
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek_protocol.messages.list_groups import ListGroupsRequest
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NOTHING: list[TopicPartitions] = []
ALL = [0, 1, 2]


@asynccontextmanager
async def serving(folder: Path, **settings: object) -> AsyncIterator[GroupNode]:
    """A node with the offsets topic and a topic t of three partitions; assignments are made at once."""
    async with coordinator(folder, **{"group_consumer_assignment_interval_ms": 0, **settings}) as node:
        await node.make_offsets_topic()
        await node.make_topic("t")
        yield node


async def beat(node: GroupNode, member_id: str, epoch: int = 0, *, version: int = 1, **told: Any) -> Any:
    if epoch == 0:
        told = {
            "rebalance_timeout_ms": 60_000,
            "topic_partitions": NOTHING,
            **({} if "subscribed_topic_regex" in told else {"subscribed_topic_names": ["t"]}),
            **told,
        }
    fields = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, **told}
    return await node.ask(ConsumerGroupHeartbeatRequest(**fields), version)


def owns(node: GroupNode, *partitions: int, topic: str = "t") -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=node.view.topics[topic].topic_id, partitions=list(partitions))]


def told(reply: Any) -> tuple[int, list[int] | None]:
    """The epoch and the partitions that a heartbeat tells."""
    assert reply.error_code == 0, reply.error_message
    if reply.assignment is None:
        return reply.member_epoch, None
    return reply.member_epoch, [index for topic in reply.assignment.topic_partitions for index in topic.partitions]


async def described(node: GroupNode, group_id: str = "g") -> Any:
    return (
        await node.ask(ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False), 1)
    ).groups[0]


async def commit(node: GroupNode, member_id: str, epoch: int, *, partition: int = 0, version: int = 9) -> int:
    row = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=5, committed_metadata="", committed_leader_epoch=-1
    )
    topics = [OffsetCommitRequestTopic(name="t", topic_id=node.view.topics["t"].topic_id, partitions=[row])]
    request = OffsetCommitRequest(group_id="g", member_id=member_id, generation_id_or_member_epoch=epoch, topics=topics)
    return int((await node.ask(request, version)).topics[0].partitions[0].error_code)


async def test_partitions_go_from_one_member_to_another_through_revocation(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        first = await beat(node, "a")
        assert told(first) == (2, ALL)
        assert first.heartbeat_interval_ms == 5000
        assert told(await beat(node, "a", 2)) == (2, None)
        assert told(await beat(node, "b")) == (3, [])
        asked = await beat(node, "a", 2)
        epoch, kept = told(asked)
        assert (epoch, len(kept or ())) == (2, 2)
        assert (await described(node)).group_state == "Reconciling"
        assert told(await beat(node, "b", 3)) == (3, None)
        assert told(await beat(node, "a", 2, topic_partitions=owns(node, *(kept or ())))) == (3, None)
        given = told(await beat(node, "b", 3))
        assert given == (3, [index for index in ALL if index not in (kept or ())])
        group = await described(node)
        assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
            "Stable",
            3,
            3,
            "uniform",
        )
        assert [member.member_type for member in group.members] == [1, 1]
        left = await beat(node, "a", -1)
        assert (left.error_code, left.member_epoch) == (0, -1)
        assert told(await beat(node, "b", 3)) == (4, ALL)


async def test_an_assignment_stands_for_its_interval(tmp_path: Path) -> None:
    async with serving(tmp_path, group_consumer_assignment_interval_ms=1000) as node:
        assert told(await beat(node, "a")) == (2, ALL)
        assert told(await beat(node, "b")) == (2, [])
        assert (await described(node)).group_state == "Assigning"
        await trio.sleep(1)
        assert told(await beat(node, "b", 2)) == (3, None)
        assert len(told(await beat(node, "a", 2))[1] or ()) == 2


async def test_t60_members_that_are_not_or_are_elsewhere_are_fenced(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        missing = await beat(node, "a", 4)
        assert (missing.error_code, missing.error_message) == (69, "Consumer group g not found.")
        await beat(node, "a")
        assert (await beat(node, "x", 2)).error_code == Error.UNKNOWN_MEMBER_ID
        ahead = await beat(node, "a", 3)
        assert ahead.error_code == Error.FENCED_MEMBER_EPOCH
        assert ahead.error_message.startswith("The consumer group member has a greater member epoch (3) than the one")
        await beat(node, "b")
        kept = told(await beat(node, "a", 2))[1] or []
        assert told(await beat(node, "a", 2, topic_partitions=owns(node, *kept)))[0] == 3
        # The reply may be lost: the epoch before is taken with what the member may have.
        assert told(await beat(node, "a", 2, topic_partitions=owns(node, *kept)))[0] == 3
        assert (await beat(node, "a", 2)).error_code == Error.FENCED_MEMBER_EPOCH
        assert (await beat(node, "a", 2, topic_partitions=owns(node, *ALL))).error_code == Error.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
async def test_requests_that_make_no_sense(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    async with serving(tmp_path) as node:
        reply = await beat(node, **{"member_id": "a", **fields})
        assert (reply.error_code, reply.error_message) == (Error.INVALID_REQUEST, text)


async def test_the_assignor_that_members_ask_for_is_taken_and_others_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        unknown = await beat(node, "a", server_assignor="nope")
        text = "ServerAssignor nope is not supported. Supported assignors: uniform, range."
        assert (unknown.error_code, unknown.error_message) == (Error.UNSUPPORTED_ASSIGNOR, text)
        await beat(node, "a", server_assignor="range")
        assert (await described(node)).assignor_name == "range"


async def test_a_pattern_stands_for_the_topics_there_are_and_those_to_come(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        bad = await beat(node, "a", subscribed_topic_regex="t(")
        assert bad.error_code == Error.INVALID_REGULAR_EXPRESSION
        assert node.groups.find("g") is None
        assert told(await beat(node, "a", subscribed_topic_regex="t.*")) == (2, ALL)
        await node.make_topic("t2", partitions=1)
        assert told(await beat(node, "a", 2)) == (2, None)
        await trio.sleep(11)
        assert told(await beat(node, "a", 2)) == (3, [*ALL, 0])
        assert (await described(node)).members[0].subscribed_topic_regex == "t.*"


async def test_new_partitions_and_deleted_topics_make_a_new_epoch(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert told(await beat(node, "a", subscribed_topic_names=["t", "u"])) == (2, ALL)
        await node.make_topic("u", partitions=1)
        assert told(await beat(node, "a", 2)) == (3, [*ALL, 0])
        await node.controller.delete_topic("u")
        assert told(await beat(node, "a", 3)) == (3, ALL)
        assert told(await beat(node, "a", 3, topic_partitions=owns(node, *ALL))) == (4, None)


async def test_static_members_come_back_to_what_they_had(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert told(await beat(node, "a", instance_id="i")) == (2, ALL)
        early = await beat(node, "b", instance_id="i")
        assert early.error_code == Error.UNRELEASED_INSTANCE_ID
        gone = await beat(node, "a", -2, instance_id="i")
        assert (gone.error_code, gone.member_epoch) == (0, -2)
        assert told(await beat(node, "b", instance_id="i")) == (2, ALL)
        assert (await beat(node, "a", 2, instance_id="i")).error_code == Error.FENCED_INSTANCE_ID
        assert (await beat(node, "a", -1, instance_id="j")).error_code == Error.UNKNOWN_MEMBER_ID
        assert (await described(node)).group_epoch == 2
        assert (await beat(node, "b", -1, instance_id="i")).error_code == 0
        assert (await described(node)).group_state == "Empty"


async def test_silent_members_and_those_that_give_up_nothing_are_fenced(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a", rebalance_timeout_ms=20_000)
        await beat(node, "b")
        assert told(await beat(node, "a", 2))[0] == 2
        for _ in range(6):
            await trio.sleep(5)
            await beat(node, "b", 3)
            silent = await beat(node, "a", 2)
        assert silent.error_code == Error.UNKNOWN_MEMBER_ID
        assert told(await beat(node, "b", 3, topic_partitions=NOTHING))[0] == 4
        await trio.sleep(46)
        assert (await beat(node, "b", 4)).error_code == Error.UNKNOWN_MEMBER_ID
        assert (await described(node)).group_state == "Empty"


async def test_a_group_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a", subscribed_topic_regex="t.*", rack_id="r", instance_id="i")
        await beat(node, "b", server_assignor="range")
        assert await commit(node, "b", 3) == 0
        before = await described(node)
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        assert await described(node) == before
        assert told(await beat(node, "b", 3)) == (3, None)
        await trio.sleep(46)
        assert (await beat(node, "b", 3)).error_code == Error.UNKNOWN_MEMBER_ID
        assert (await node.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results[0].error_code == 0
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        assert node.groups.find("g") is None


async def test_t60_commits_are_fenced_by_the_member_epoch(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert await commit(node, "a", 2) == Error.GROUP_ID_NOT_FOUND
        await beat(node, "a")
        assert await commit(node, "a", 2, version=8) == Error.UNSUPPORTED_VERSION
        assert await commit(node, "x", 2) == Error.UNKNOWN_MEMBER_ID
        assert await commit(node, "a", 3) == Error.STALE_MEMBER_EPOCH
        assert await commit(node, "", -1) == Error.UNKNOWN_MEMBER_ID
        assert await commit(node, "a", 2) == await commit(node, "a", 2, version=10) == 0
        await beat(node, "b")
        kept = told(await beat(node, "a", 2))[1] or []
        lost = next(index for index in ALL if index not in kept)
        assert await commit(node, "a", 2, partition=lost) == 0
        await beat(node, "a", 2, topic_partitions=owns(node, *kept))
        # In the epoch before, a member may commit what it still has (KIP-1251), and not what is another's.
        assert await commit(node, "a", 2, partition=kept[0]) == 0
        assert await commit(node, "a", 2, partition=lost) == Error.STALE_MEMBER_EPOCH

        async def fetched(member_id: str | None, epoch: int) -> int:
            group = OffsetFetchRequestGroup(group_id="g", topics=None, member_id=member_id, member_epoch=epoch)
            return int((await node.ask(OffsetFetchRequest(groups=[group]), 9)).groups[0].error_code)

        assert await fetched(None, -1) == await fetched("a", 3) == 0
        assert await fetched("a", 2) == Error.STALE_MEMBER_EPOCH
        assert await fetched("x", 3) == Error.UNKNOWN_MEMBER_ID


async def test_groups_are_listed_by_type_and_state_and_described_as_what_they_are(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a")

        async def listed(**filters: Any) -> list[tuple[str, str, str, str]]:
            groups = (await node.ask(ListGroupsRequest(**filters), 5)).groups
            return [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in groups]

        row = ("g", "consumer", "Stable", "consumer")
        assert (
            await listed() == await listed(types_filter=["Consumer"]) == await listed(states_filter=["stable"]) == [row]
        )
        assert await listed(types_filter=["classic"]) == await listed(states_filter=["Empty"]) == []
        old = (await node.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups[0]
        assert (old.error_code, old.group_state, old.error_message) == (69, "Dead", "Group g is not a classic group.")
        assert (await node.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups[0].error_code == 0
        assert (await node.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results[
            0
        ].error_code == Error.NON_EMPTY_GROUP
        assert (await described(node, "h")).error_message == "Group h not found."
        assert (await described(node, "")).error_code == Error.INVALID_GROUP_ID


async def test_the_size_of_a_group_is_limited(tmp_path: Path) -> None:
    async with serving(tmp_path, group_consumer_max_size=1) as node:
        await beat(node, "a")
        full = await beat(node, "b")
        text = "The consumer group has reached its maximum capacity of 1 members."
        assert (full.error_code, full.error_message) == (Error.GROUP_MAX_SIZE_REACHED, text)
        assert told(await beat(node, "a", 2)) == (2, None)


# -- Both protocols in one group --


def subscription(node: GroupNode, *owned: int) -> bytes:
    partitions = [TopicPartition(topic="t", partitions=list(owned))] if owned else []
    return encode_versioned(ConsumerProtocolSubscription(topics=["t"], owned_partitions=partitions), 1)


async def join(
    node: GroupNode, member_id: str = "", *, owned: tuple[int, ...] = (), version: int = 9, **more: Any
) -> Any:
    protocols = [JoinGroupRequestProtocol(name="cooperative-sticky", metadata=subscription(node, *owned))]
    fields: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": protocols,
        **more,
    }
    return await node.ask(JoinGroupRequest(**fields), version)


async def sync(node: GroupNode, member_id: str, generation: int, assignment: bytes | None = None) -> Any:
    rows = [] if assignment is None else [SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)]
    return await node.ask(
        SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
            assignments=rows,
        ),
        5,
    )


async def alive(node: GroupNode, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    return int((await node.ask(request, 4)).error_code)


def assigned(reply: Any) -> list[int]:
    assert reply.error_code == 0
    found = decode_newest(ConsumerProtocolAssignment, bytes(reply.assignment))
    return [index for each in found.assigned_partitions for index in each.partitions]


async def classic_member(node: GroupNode) -> str:
    """The id of the one member of a classic group, which owns all partitions in generation 1."""
    member_id = (await join(node)).member_id
    joined = await join(node, member_id)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, member_id)
    everything = encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="t", partitions=ALL)]), 1
    )
    assert assigned(await sync(node, member_id, 1, everything)) == ALL
    return str(member_id)


async def test_a_classic_group_moves_to_the_new_protocol_and_back_member_by_member(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        old = await classic_member(node)
        assert await commit(node, old, 1, version=8) == 0
        assert told(await beat(node, "new")) == (2, [])
        group = await described(node)
        assert [(each.member_id, each.member_type) for each in group.members] == [(old, 0), ("new", 1)]
        assert await alive(node, old, 1) == Error.REBALANCE_IN_PROGRESS
        joined = await join(node, old, owned=(0, 1, 2))
        assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, "")
        kept = assigned(await sync(node, old, 1))
        assert len(kept) == 2
        assert await alive(node, old, 1) == Error.REBALANCE_IN_PROGRESS
        joined = await join(node, old, owned=tuple(kept))
        assert joined.generation_id == 2
        assert assigned(await sync(node, old, 2)) == kept
        assert await alive(node, old, 2) == 0
        assert told(await beat(node, "new", 2)) == (2, [index for index in ALL if index not in kept])
        assert await commit(node, old, 2, version=8) == 0
        assert isinstance(node.groups.find("g"), ConsumerGroup)

        assert (await beat(node, "new", -1)).error_code == 0
        assert isinstance(node.groups.find("g"), Group)
        assert await alive(node, old, 2) == Error.REBALANCE_IN_PROGRESS
        rejoined = await join(node, old, owned=tuple(kept))
        assert (rejoined.generation_id, rejoined.leader) == (3, old)
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        group = node.groups.find("g")
        assert isinstance(group, Group)
        assert group.offsets.get("t", 0) is not None


async def test_a_classic_group_whose_assignor_has_data_of_its_own_does_not_move(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        old = (await join(node)).member_id
        await join(node, old)
        with_data = ConsumerProtocolAssignment(
            assigned_partitions=[TopicPartition(topic="t", partitions=ALL)], user_data=b"mine"
        )
        assert assigned(await sync(node, old, 1, encode_versioned(with_data, 1))) == ALL
        refused = await beat(node, "new")
        assert (refused.error_code, refused.error_message) == (
            Error.GROUP_ID_NOT_FOUND,
            "Cannot upgrade classic group g to consumer group because an unsupported custom assignor is in use. Please "
            "refer to the documentation or switch to a default assignor before re-attempting the upgrade.",
        )
        assert await alive(node, old, 1) == 0
        assert isinstance(node.groups.find("g"), Group)


async def test_a_group_of_both_protocols_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        old = await classic_member(node)
        await commit(node, old, 1, version=8)
        await beat(node, "new")
        before = await described(node)
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        assert await described(node) == before
        group = node.groups.find("g")
        assert group is not None
        assert group.offsets.get("t", 0) is not None
        assert await alive(node, old, 1) == Error.REBALANCE_IN_PROGRESS


async def test_a_member_of_the_classic_protocol_comes_to_a_consumer_group(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "new")
        wants_id = await join(node)
        assert wants_id.error_code == Error.MEMBER_ID_REQUIRED
        joined = await join(node, wants_id.member_id)
        assert (joined.error_code, joined.generation_id) == (0, 3)
        assert assigned(await sync(node, joined.member_id, 3)) == []
        assert (await join(node, protocol_type="connect")).error_code == Error.INCONSISTENT_GROUP_PROTOCOL
        assert (await sync(node, "new", 2)).error_code == Error.UNKNOWN_MEMBER_ID
        assert await alive(node, joined.member_id, 1) == Error.ILLEGAL_GENERATION
        left = LeaveGroupRequest(
            group_id="g",
            members=[
                MemberIdentity(member_id=joined.member_id, group_instance_id=None),
                MemberIdentity(member_id="nobody", group_instance_id=None),
            ],
        )
        assert [each.error_code for each in (await node.ask(left, 5)).members] == [0, Error.UNKNOWN_MEMBER_ID]
        assert [each.member_id for each in (await described(node)).members] == ["new"]


async def test_an_empty_group_takes_the_next_member_of_either_protocol(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "new")
        await commit(node, "new", 2)
        await beat(node, "new", -1)
        old = await classic_member(node)
        leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=old, group_instance_id=None)])
        assert (await node.ask(leave, 5)).error_code == 0
        assert told(await beat(node, "new")) == (2, ALL)
        group = node.groups.find("g")
        assert group is not None
        assert group.offsets.get("t", 0) is not None


@pytest.mark.parametrize(("policy", "code"), [("disabled", 69), ("downgrade", 69), ("UPGRADE", 0)])
async def test_the_policy_says_which_way_groups_may_move(tmp_path: Path, policy: str, code: int) -> None:
    async with serving(tmp_path, group_consumer_migration_policy=policy) as node:
        old = await classic_member(node)
        assert (await beat(node, "new")).error_code == code
        if code == 0:
            await beat(node, "new", -1)
            assert isinstance(node.groups.find("g"), ConsumerGroup)
        else:
            assert await alive(node, old, 1) == 0
