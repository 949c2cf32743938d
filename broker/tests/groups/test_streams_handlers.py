"""The APIs of KIP-1071 as clients see them, on real logs; and streams groups where groups of any kind are asked for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from support.coordinator import GroupNode, coordinator

from odradek.cluster.features import STREAMS_VERSION
from odradek.groups.group import Group
from odradek.groups.internal_topics import InternalTopics
from odradek.groups.streams_group import StreamsGroup
from odradek.handlers import streams_group_describe, streams_group_heartbeat
from odradek_protocol.errors import Error
from odradek_protocol.messages import streams_group_heartbeat as messages
from odradek_protocol.messages.delete_groups import DeleteGroupsRequest
from odradek_protocol.messages.list_groups import ListGroupsRequest
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from odradek_protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

HANDLERS = (streams_group_describe, streams_group_heartbeat)
"""Imported so that `ask` finds them in the registry."""

AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
STALE_TOPOLOGY, MISSING_SOURCE_TOPICS, _, MISSING_INTERNAL_TOPICS, SHUTDOWN_APPLICATION, ASSIGNMENT_DELAYED = range(6)


@asynccontextmanager
async def serving(folder: Path, **settings: object) -> AsyncIterator[GroupNode]:
    """A node with the offsets topic and a topic t of three partitions; tasks are given out at once."""
    async with coordinator(folder, **{**AT_ONCE, **settings}) as node:
        node.groups.internal_topics = InternalTopics(node.controller)
        if "t" not in node.view.topics:
            await node.make_offsets_topic()
            await node.make_topic("t")
        await node.until_loaded()
        yield node


def subtopology(name: str = "0", *sources: str, **told: Any) -> messages.Subtopology:
    lists: dict[str, Any] = {
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
        **told,
    }
    return messages.Subtopology(subtopology_id=name, source_topics=sources or ["t"], **lists)


def internal_topic(name: str, **configs: str) -> messages.TopicInfo:
    rows = [messages.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return messages.TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=rows)


def tasks(*partitions: int, subtopology_id: str = "0") -> list[messages.TaskIds]:
    return [messages.TaskIds(subtopology_id=subtopology_id, partitions=partitions)] if partitions else []


def owns(*partitions: int) -> dict[str, Any]:
    return {"active_tasks": tasks(*partitions), "standby_tasks": [], "warmup_tasks": []}


async def beat(
    node: GroupNode, member_id: str, epoch: int = 0, *subtopologies: messages.Subtopology, **told: Any
) -> Any:
    if epoch == 0:
        topology = messages.Topology(epoch=0, subtopologies=subtopologies or [subtopology()])
        first = {"rebalance_timeout_ms": 60_000, "topology": topology, "process_id": f"p-{member_id}", **owns()}
        told = {**first, **told}
    fields = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, "endpoint_information_epoch": 0, **told}
    return await node.ask(StreamsGroupHeartbeatRequest(**fields), 1)


def told(reply: Any) -> tuple[int, list[int] | None]:
    """The epoch and the active tasks that a heartbeat tells."""
    assert reply.error_code == 0, reply.error_message
    if reply.active_tasks is None:
        return reply.member_epoch, None
    return reply.member_epoch, [index for each in reply.active_tasks for index in each.partitions]


def codes(reply: Any) -> list[int]:
    return [status.status_code for status in reply.status]


async def described(node: GroupNode, group_id: str = "g", version: int = 1) -> Any:
    request = StreamsGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=False, include_topology_description=True
    )
    return (await node.ask(request, version)).groups[0]


async def commit(node: GroupNode, member_id: str, epoch: int, partition: int = 0, version: int = 9) -> int:
    row = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=5, committed_metadata="", committed_leader_epoch=-1
    )
    topics = [OffsetCommitRequestTopic(name="t", topic_id=node.view.topics["t"].topic_id, partitions=[row])]
    request = OffsetCommitRequest(group_id="g", member_id=member_id, generation_id_or_member_epoch=epoch, topics=topics)
    return int((await node.ask(request, version)).topics[0].partitions[0].error_code)


async def fetched(node: GroupNode, member_id: str | None = None, epoch: int = -1) -> int:
    """The error of an OffsetFetch, or the offset of partition 0."""
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    group = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=topics)
    reply = (await node.ask(OffsetFetchRequest(groups=[group], require_stable=False), 9)).groups[0]
    return int(reply.error_code or reply.topics[0].partitions[0].committed_offset)


async def test_tasks_go_from_one_member_to_another_through_revocation(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        first = await beat(node, "a")
        assert told(first) == (2, [0, 1, 2])
        assert (first.heartbeat_interval_ms, first.acceptable_recovery_lag) == (5000, -1)
        assert told(await beat(node, "a", 2)) == (2, None)
        assert told(await beat(node, "b")) == (3, [])
        assert told(await beat(node, "a", 2)) == (2, [0, 1])
        assert (await described(node)).group_state == "Reconciling"
        assert told(await beat(node, "b", 3)) == (3, None)
        assert told(await beat(node, "a", 2, **owns(0, 1))) == (3, None)
        assert told(await beat(node, "b", 3)) == (3, [2])
        group = await described(node)
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
        assert (group.assignor_name, group.topology_description_status) == ("sticky", 1)
        assert [member.process_id for member in group.members] == ["p-a", "p-b"]
        left = await beat(node, "a", -1)
        assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
        assert told(await beat(node, "b", 3)) == (4, [0, 1, 2])


async def test_a_restart_finds_the_group(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a", user_endpoint=messages.Endpoint(host="here", port=40_000), rack_id="r")
        await beat(node, "b", client_tags=[messages.KeyValue(key="zone", value="1")])
        await beat(node, "a", 2)
        before = await described(node)
        assert await commit(node, "a", 2) == 0
    async with serving(tmp_path) as node:
        after = await described(node)
        assert after == before
        assert await fetched(node) == 5
        assert told(await beat(node, "a", 2, **owns(0, 1))) == (3, None)
        assert told(await beat(node, "b", 3)) == (3, [2])


async def test_internal_topics_are_made_in_the_background(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        parts = (
            subtopology("0", repartition_sink_topics=["between"]),
            messages.Subtopology(
                subtopology_id="1",
                source_topics=[],
                source_topic_regex=[],
                state_changelog_topics=[internal_topic("store", cleanup_policy="compact")],
                repartition_sink_topics=[],
                repartition_source_topics=[internal_topic("between")],
                copartition_groups=[],
            ),
        )
        first = await beat(node, "a", 0, *parts)
        assert (told(first), codes(first)) == ((2, []), [MISSING_INTERNAL_TOPICS])
        group = await described(node)
        assert group.group_state == "NotReady"
        assert [topic.partitions for topic in group.topology.subtopologies[1].state_changelog_topics] == [0]
        await trio.sleep(1)
        assert node.view.topics["store"].configs == {"cleanup.policy": "compact"}
        second = await beat(node, "a", 2)
        assert codes(second) == []
        assert [each.subtopology_id for each in second.active_tasks] == ["0", "1"]
        group = await described(node)
        assert [topic.partitions for topic in group.topology.subtopologies[1].state_changelog_topics] == [3]


async def test_a_topic_that_cannot_be_made_is_told_and_tried_again_later(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        store = internal_topic("store", cleanup_policy="nonsense")
        await beat(node, "a", 0, subtopology("0", state_changelog_topics=[store]))
        await trio.sleep(1)
        reply = await beat(node, "a", 2)
        assert reply.status[0].status_detail.startswith("Internal topics are missing: store; Creation failed: store (")
        await trio.sleep(11)
        reply = await beat(node, "a", 2)
        assert reply.status[0].status_detail == "Internal topics are missing: store"


async def test_the_first_assignment_waits_for_more_members(tmp_path: Path) -> None:
    async with serving(tmp_path, group_streams_initial_rebalance_delay_ms=3000) as node:
        first = await beat(node, "a")
        assert (told(first), codes(first)) == ((1, []), [ASSIGNMENT_DELAYED])
        assert told(await beat(node, "b")) == (1, [])
        await trio.sleep(3.1)
        group = await described(node)
        assert (group.group_epoch, group.assignment_epoch) == (3, 3)
        assert told(await beat(node, "a", 1)) == (3, [0, 2])
        assert told(await beat(node, "b", 1)) == (3, [1])


async def test_an_assignment_stands_for_its_interval(tmp_path: Path) -> None:
    async with serving(tmp_path, group_streams_assignment_interval_ms=1000) as node:
        assert told(await beat(node, "a")) == (2, [0, 1, 2])
        second = await beat(node, "b")
        assert (told(second), codes(second)) == ((2, []), [ASSIGNMENT_DELAYED])
        await trio.sleep(1.1)
        assert told(await beat(node, "b", 2)) == (3, None)


async def test_who_is_silent_is_fenced(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a")
        await beat(node, "b")
        await trio.sleep(30)
        assert told(await beat(node, "a", 2)) == (2, [0, 1])
        await trio.sleep(16)
        assert told(await beat(node, "a", 2, **owns(0, 1)))[0] >= 3
        assert (await beat(node, "b", 3)).error_code == Error.UNKNOWN_MEMBER_ID
        await trio.sleep(46)
        assert (await described(node)).group_state == "Empty"


async def test_who_does_not_give_up_its_tasks_in_time_is_fenced(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a", rebalance_timeout_ms=10_000)
        await beat(node, "b")
        assert told(await beat(node, "a", 2)) == (2, [0, 1])
        await trio.sleep(5)
        assert told(await beat(node, "a", 2, **owns(0, 1, 2))) == (2, None)
        await trio.sleep(6)
        assert (await beat(node, "a", 2)).error_code == Error.UNKNOWN_MEMBER_ID
        assert told(await beat(node, "b", 3)) == (4, [0, 1, 2])


async def test_endpoints_of_all_members_are_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a", user_endpoint=messages.Endpoint(host="here", port=1))
        reply = await beat(node, "b", user_endpoint=messages.Endpoint(host="there", port=2))
        found = {each.user_endpoint.host: each.active_partitions for each in reply.partitions_by_user_endpoint}
        assert list(found) == ["here", "there"]
        assert [(each.topic, each.partitions) for each in found["here"]] == [("t", [0, 1, 2])]
        assert reply.endpoint_information_epoch == 2
        assert (await beat(node, "b", 3, endpoint_information_epoch=2)).partitions_by_user_endpoint is None


async def test_the_application_is_shut_down_by_one_member(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a")
        await beat(node, "b")
        assert codes(await beat(node, "a", 2, shutdown_application=True)) == [SHUTDOWN_APPLICATION]
        assert codes(await beat(node, "b", 3)) == [SHUTDOWN_APPLICATION]
        for member_id in ("a", "b"):
            await beat(node, member_id, -1)
        assert codes(await beat(node, "c")) == []


async def test_topologies_of_other_epochs(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        newer = messages.Topology(epoch=1, subtopologies=[subtopology()])
        await beat(node, "a", topology=newer)
        assert codes(await beat(node, "b")) == [STALE_TOPOLOGY]
        newest = messages.Topology(epoch=2, subtopologies=[subtopology()])
        assert (await beat(node, "c", topology=newest)).error_code == Error.INVALID_REQUEST
        assert (await beat(node, "a", 2, **owns(9))).error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"member_id": " "}, Error.INVALID_REQUEST),
        ({"instance_id": "i"}, Error.INVALID_REQUEST),
        ({"warmup_tasks": tasks(0)}, Error.INVALID_REQUEST),
        ({"topology": None}, Error.INVALID_REQUEST),
        ({"active_tasks": tasks(0)}, Error.INVALID_REQUEST),
        ({"member_epoch": 3}, Error.INVALID_REQUEST),
        ({"member_epoch": -2, "topology": None}, Error.INVALID_REQUEST),
        ({"member_epoch": -3, "topology": None}, Error.INVALID_REQUEST),
        ({"member_epoch": -1, "topology": None, **owns()}, Error.GROUP_ID_NOT_FOUND),
        ({"member_epoch": 3, "topology": None, **owns()}, Error.GROUP_ID_NOT_FOUND),
        ({"topology": messages.Topology(epoch=-1, subtopologies=[])}, Error.STREAMS_INVALID_TOPOLOGY_EPOCH),
        (
            {"topology": messages.Topology(epoch=0, subtopologies=[subtopology(), subtopology()])},
            Error.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": messages.Topology(epoch=0, subtopologies=[subtopology("0", "__transaction_state")])},
            Error.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": messages.Topology(epoch=0, subtopologies=[subtopology("0", "a b")])},
            Error.STREAMS_INVALID_TOPOLOGY,
        ),
    ],
)
async def test_requests_that_are_refused(tmp_path: Path, told: dict[str, Any], error: Error) -> None:
    async with serving(tmp_path) as node:
        fields: dict[str, Any] = {"member_id": "a", **told}
        member_id, epoch = fields.pop("member_id"), fields.pop("member_epoch", 0)
        if epoch:
            fields.setdefault("topology", messages.Topology(epoch=0, subtopologies=[]))
            reply = await beat(node, member_id, epoch, **fields)
        else:
            reply = await beat(node, member_id, **fields)
        assert reply.error_code == error
        assert node.groups.find("g") is None


async def test_the_feature_may_be_off(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await node.features.update({STREAMS_VERSION: 0})
        assert (await beat(node, "a")).error_code == Error.UNSUPPORTED_VERSION
        assert (await described(node)).error_code == Error.UNSUPPORTED_VERSION


async def test_offsets_are_the_members(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a")
        assert await commit(node, "a", 2) == 0
        assert await commit(node, "a", 2, version=8) == Error.UNSUPPORTED_VERSION
        assert await commit(node, "x", 2) == Error.UNKNOWN_MEMBER_ID
        assert await commit(node, "", -1) == Error.UNKNOWN_MEMBER_ID
        assert await commit(node, "a", 3) == Error.STALE_MEMBER_EPOCH
        await beat(node, "a", 2, rack_id="r")
        assert await commit(node, "a", 2) == 0
        assert await commit(node, "a", 1) == Error.STALE_MEMBER_EPOCH
        assert await fetched(node, "a", 3) == 5
        assert await fetched(node, "a", 2) == Error.STALE_MEMBER_EPOCH
        assert await fetched(node, "x", 3) == Error.UNKNOWN_MEMBER_ID
        assert await fetched(node) == 5
        await beat(node, "a", -1)
        assert await commit(node, "", -1) == 0


async def test_groups_are_listed_and_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await beat(node, "a")
        listed = (await node.ask(ListGroupsRequest(states_filter=["stable"], types_filter=["Streams"]), 5)).groups
        assert [(each.group_id, each.protocol_type, each.group_type) for each in listed] == [
            ("g", "streams", "streams")
        ]
        delete = DeleteGroupsRequest(groups_names=["g"])
        assert (await node.ask(delete, 2)).results[0].error_code == Error.NON_EMPTY_GROUP
        await beat(node, "a", -1)
        assert (await node.ask(delete, 2)).results[0].error_code == 0
        assert (await described(node)).error_code == Error.GROUP_ID_NOT_FOUND
        assert (await described(node, "")).error_code == Error.INVALID_GROUP_ID
    async with serving(tmp_path) as node:
        assert node.groups.find("g") is None


async def test_a_group_of_offsets_becomes_a_streams_group_and_keeps_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert await commit(node, "", -1) == 0
        assert isinstance(node.groups.find("g"), Group)
        await beat(node, "a")
        assert isinstance(node.groups.find("g"), StreamsGroup)
        assert await fetched(node) == 5
    async with serving(tmp_path) as node:
        assert isinstance(node.groups.find("g"), StreamsGroup)
        assert await fetched(node) == 5


async def test_offsets_of_an_empty_group_expire_and_the_group_with_them(tmp_path: Path) -> None:
    settings = {"offsets_retention_minutes": 1, "offsets_retention_check_interval_ms": 1000}
    async with serving(tmp_path, **settings) as node:
        await beat(node, "a")
        await commit(node, "a", 2)
        for _ in range(3):
            await trio.sleep(30)
            await beat(node, "a", 2)
        assert await fetched(node) == 5
        await beat(node, "a", -1)
        await trio.sleep(62)
        assert node.groups.find("g") is None
