"""The handlers of topics and the cluster, each request and reply through the codec; traps by their numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from support.cluster import Cluster, Dialled, ask, cluster

from odradek.cluster.plans import NewTopic
from odradek.cluster.view import BrokerView, Endpoint, PartitionView, TopicView
from odradek.handlers.registry import load_all
from odradek_protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek_protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek_protocol.messages.describe_cluster import DescribeClusterRequest
from odradek_protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek_protocol.schema import NULL_UUID

load_all()

NOT_ASKED = -2147483648
SOME_ID = bytes(15) + b"\x05"


def metadata_of(*names: str | None, auto_create: bool = False, **rest: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create, **rest)


def metadata_by_id(*ids: bytes) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids])


def add_broker(node: Cluster, node_id: int, rack: str | None = None, **endpoints: Endpoint) -> None:
    node.view.brokers[node_id] = BrokerView(node_id, rack, endpoints)


def add_topic(node: Cluster, name: str, *partitions: PartitionView) -> TopicView:
    topic = TopicView(name, name.encode().rjust(16, b"\0"), partitions, {}, internal=False)
    node.view.put_topic(topic)
    return topic


# Metadata


async def test_metadata_as_kafka_tells_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        made = await node.controller.create_topic(NewTopic("t1", 3))
        reply = await ask(node, metadata_of("t1"), 12)
        assert (reply.cluster_id, reply.controller_id, reply.throttle_time_ms) == (node.view.cluster_id, 1, 0)
        assert [(one.node_id, one.host, one.port, one.rack) for one in reply.brokers] == [(1, "127.0.0.1", 9092, None)]
        (topic,) = reply.topics
        assert (topic.error_code, topic.name, topic.topic_id, topic.is_internal) == (0, "t1", made.topic_id, False)
        assert topic.topic_authorized_operations == NOT_ASKED
        told = [
            (one.error_code, one.partition_index, one.leader_id, one.leader_epoch, one.replica_nodes, one.isr_nodes)
            for one in topic.partitions
        ]
        assert told == [(0, index, 1, 0, [1], [1]) for index in range(3)]
        assert all(one.offline_replicas == [] for one in topic.partitions)


async def test_t14_null_asks_for_all_and_an_empty_array_for_none_except_in_version_0(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        for name in ("a", "b", "c"):
            await node.controller.create_topic(NewTopic(name))
        assert len((await ask(node, MetadataRequest(topics=()), 0)).topics) == 3
        for version in range(1, 14):
            assert len((await ask(node, MetadataRequest(topics=None), version)).topics) == 3
            assert (await ask(node, MetadataRequest(topics=()), version)).topics == []


async def test_t17_auto_creation_answers_when_the_leader_serves(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        replies: list[Any] = []

        async def look() -> None:
            reply = await ask(node, metadata_of("auto", auto_create=True))
            assert "auto" in node.partitions.topics
            replies.append(reply)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(look)
        assert {(reply.topics[0].error_code, len(reply.topics[0].partitions)) for reply in replies} == {(0, 1)}
        assert len({reply.topics[0].topic_id for reply in replies}) == 1


async def test_t18_both_the_request_and_the_broker_allow_auto_creation(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        reply = await ask(node, metadata_of("nope"))
        assert [(one.error_code, one.name, one.partitions, one.topic_id) for one in reply.topics] == [
            (3, "nope", [], NULL_UUID)
        ]
        # Below version 4 a request cannot say no.
        assert (await ask(node, metadata_of("old"), 3)).topics[0].error_code == 0
    async with cluster(tmp_path, auto_create_topics_enable="false") as node:
        assert (await ask(node, metadata_of("nope", auto_create=True))).topics[0].error_code == 3
        assert set(node.view.topics) == {"old"}


async def test_auto_creation_of_an_internal_topic_gives_it_its_own_settings(tmp_path: Path) -> None:
    settings = {"offsets_topic_num_partitions": "4", "offsets_topic_replication_factor": "1"}
    async with cluster(tmp_path, **settings) as node:
        (topic,) = (await ask(node, metadata_of("__consumer_offsets", auto_create=True))).topics
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 4)


@pytest.mark.parametrize(("version", "no_listener"), [(0, 5), (5, 5), (6, 72), (13, 72)])
async def test_t20_a_partition_without_a_leader_to_reach_has_leader_minus_1(
    tmp_path: Path, version: int, no_listener: int
) -> None:
    async with cluster(tmp_path) as node:
        add_broker(node, 2, INSIDE=Endpoint("inside", 1))
        add_topic(
            node,
            "t",
            PartitionView(leader=-1, leader_epoch=3, replicas=(1, 3), isr=(3,)),
            PartitionView(leader=3, leader_epoch=4, replicas=(3, 1), isr=(3, 1)),
            PartitionView(leader=2, leader_epoch=5, replicas=(2,), isr=(2,)),
            PartitionView(leader=1, leader_epoch=6, replicas=(1, 3), isr=(1,)),
        )
        reply = await ask(node, metadata_of("t"), version)
        told = [(one.error_code, one.leader_id) for one in reply.topics[0].partitions]
        assert told == [(5, -1), (5, -1), (no_listener, -1), (9 if version == 0 else 0, 1)]
        if version >= 7:
            assert [one.leader_epoch for one in reply.topics[0].partitions] == [3, 4, 5, 6]
        if version >= 5:
            assert [one.offline_replicas for one in reply.topics[0].partitions] == [[3], [3], [], [3]]


async def test_t21_topics_by_id(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        first = await node.controller.create_topic(NewTopic("t"))
        assert [(one.error_code, one.name) for one in (await ask(node, metadata_by_id(first.topic_id))).topics] == [
            (0, "t")
        ]
        await node.controller.delete_topic("t")
        await node.controller.create_topic(NewTopic("t"))
        (gone,) = (await ask(node, metadata_by_id(first.topic_id))).topics
        assert (gone.error_code, gone.name, gone.topic_id) == (100, None, first.topic_id)


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_and_null_names_below_version_12_are_refused(tmp_path: Path, version: int) -> None:
    async with cluster(tmp_path) as node:
        (by_id,) = (await ask(node, metadata_by_id(SOME_ID), version)).topics
        assert (by_id.error_code, by_id.name) == (42, "")
        (null,) = (await ask(node, metadata_of(None), version)).topics
        assert (null.error_code, null.name) == (42, "")


async def test_t22_authorized_operations_are_told_when_asked_for(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        await node.controller.create_topic(NewTopic("t"))
        for version in range(8, 14):
            asked = metadata_of("t", include_topic_authorized_operations=True)
            assert (await ask(node, asked, version)).topics[0].topic_authorized_operations == 3576
        for version in (8, 9, 10):
            asked = metadata_of("t", include_cluster_authorized_operations=True)
            assert (await ask(node, asked, version)).cluster_authorized_operations == 8096
            assert (await ask(node, metadata_of("t"), version)).cluster_authorized_operations == NOT_ASKED


async def test_t23_the_address_is_the_one_dialled_unless_listeners_are_advertised(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        reply = await ask(node, metadata_of(), dialled=Dialled(host="192.0.2.7", port=12345))
        assert [(one.host, one.port) for one in reply.brokers] == [("192.0.2.7", 12345)]
    async with cluster(tmp_path, advertised_listeners="PLAINTEXT://broker.example.org:9092") as node:
        add_broker(node, 1, PLAINTEXT=Endpoint("broker.example.org", 9092))
        reply = await ask(node, metadata_of(), dialled=Dialled(host="192.0.2.7", port=12345))
        assert [(one.host, one.port) for one in reply.brokers] == [("broker.example.org", 9092)]


async def test_t23_brokers_are_told_by_the_listener_that_the_client_came_through(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        add_broker(node, 1, INSIDE=Endpoint("in-1", 1), OUTSIDE=Endpoint("out-1", 1))
        add_broker(node, 2, "r", INSIDE=Endpoint("in-2", 2), OUTSIDE=Endpoint("out-2", 2))
        add_broker(node, 3, INSIDE=Endpoint("in-3", 3))
        outside = await ask(node, metadata_of(), dialled=Dialled("OUTSIDE", "dialled", 9))
        assert [(one.node_id, one.host, one.port, one.rack) for one in outside.brokers] == [
            (1, "dialled", 9, None),
            (2, "out-2", 2, "r"),
        ]
        inside = await ask(node, metadata_of(), dialled=Dialled("INSIDE", "dialled", 9))
        assert [one.host for one in inside.brokers] == ["dialled", "in-2", "in-3"]


@pytest.mark.parametrize("name", ["bad/name", "", ".", "x" * 250])
async def test_t24_an_invalid_name_is_17_and_makes_nothing(tmp_path: Path, name: str) -> None:
    async with cluster(tmp_path) as node:
        for auto_create in (False, True):
            reply = await ask(node, metadata_of(name, auto_create=auto_create))
            assert [(one.error_code, one.name) for one in reply.topics] == [(17, name)]
        assert node.view.topics == {}


async def test_one_topic_that_fails_leaves_the_others_alone(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        await node.controller.create_topic(NewTopic("a.b"))
        reply = await ask(node, metadata_of("a_b", "a.b", "new", "bad/name", "new", auto_create=True))
        assert [(one.name, one.error_code) for one in reply.topics] == [
            ("a_b", 17),
            ("a.b", 0),
            ("new", 0),
            ("bad/name", 17),
        ]


# DescribeCluster


async def test_t22_describe_cluster(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        for version in (0, 1, 2):
            reply = await ask(node, DescribeClusterRequest(include_cluster_authorized_operations=False), version)
            assert (reply.error_code, reply.error_message, reply.endpoint_type) == (0, None, 1)
            assert (reply.cluster_id, reply.controller_id) == (node.view.cluster_id, 1)
            assert [(one.broker_id, one.host, one.port) for one in reply.brokers] == [(1, "127.0.0.1", 9092)]
            assert reply.cluster_authorized_operations == NOT_ASKED
            asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
            assert (await ask(node, asked, version)).cluster_authorized_operations == 8096


async def test_a_controller_that_the_client_cannot_reach_is_not_told(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
        assert (await ask(node, asked, dialled=Dialled("OTHER"))).controller_id == -1


@pytest.mark.parametrize(("kind", "error"), [(2, 114), (3, 115), (0, 115)])
async def test_describe_cluster_of_another_kind_of_endpoint(tmp_path: Path, kind: int, error: int) -> None:
    async with cluster(tmp_path) as node:
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=kind)
        assert (await ask(node, asked)).error_code == error


# DescribeTopicPartitions


def pages(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def rows(reply: Any) -> list[tuple[str, int, list[int]]]:
    return [(one.name, one.error_code, [part.partition_index for part in one.partitions]) for one in reply.topics]


def next_cursor(reply: Any) -> tuple[str, int] | None:
    cursor = reply.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_t78_a_page_ends_with_a_cursor(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        made = await node.controller.create_topic(NewTopic("t1", 3))
        reply = await ask(node, pages("t1", "nope", limit=2))
        assert rows(reply) == [("nope", 3, []), ("t1", 0, [0, 1])]
        assert next_cursor(reply) == ("t1", 2)
        unknown, known = reply.topics
        assert (unknown.topic_id, unknown.topic_authorized_operations) == (NULL_UUID, 3576)
        assert (known.topic_id, known.topic_authorized_operations) == (made.topic_id, 3576)
        first = known.partitions[0]
        assert (first.leader_id, first.leader_epoch, first.replica_nodes, first.isr_nodes) == (1, 0, [1], [1])
        assert (first.eligible_leader_replicas, first.last_known_elr, first.offline_replicas) == ([], [], [])
        rest = await ask(node, pages("t1", "nope", limit=2, cursor=("t1", 2)))
        assert rows(rest) == [("t1", 0, [2])]
        assert rest.next_cursor is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
async def test_t78_pages_together_are_everything_once(tmp_path: Path, limit: int) -> None:
    async with cluster(tmp_path) as node:
        for name, count in (("c", 4), ("a", 3), ("b", 1)):
            await node.controller.create_topic(NewTopic(name, count))
        seen = []
        cursor = None
        for _ in range(20):
            reply = await ask(node, pages(limit=limit, cursor=cursor))
            page = [(name, index) for name, _, indexes in rows(reply) for index in indexes]
            assert 1 <= len(page) <= limit
            seen.extend(page)
            cursor = next_cursor(reply)
            if cursor is None:
                break
        assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]


async def test_t78_the_broker_has_a_limit_of_its_own(tmp_path: Path) -> None:
    async with cluster(tmp_path, max_request_partition_size_limit="2") as node:
        await node.controller.create_topic(NewTopic("t", 5))
        assert rows(await ask(node, pages())) == [("t", 0, [0, 1])]
        # A limit that makes no sense still gets on.
        assert rows(await ask(node, pages(limit=0))) == [("t", 0, [0])]
        assert rows(await ask(node, pages(limit=-5))) == [("t", 0, [0])]


async def test_t78_cursors_that_make_no_sense(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        await node.controller.create_topic(NewTopic("t", 2))
        reply = await ask(node, pages("u", "t", cursor=("t", -1)))
        assert rows(reply) == [("u", 42, []), ("t", 42, [])]
        assert [one.topic_authorized_operations for one in reply.topics] == [NOT_ASKED, NOT_ASKED]
        assert rows(await ask(node, pages("t", cursor=("other", 0)))) == [("t", 42, [])]
        # One past the end, or on a topic that was deleted meanwhile, is nothing amiss.
        assert rows(await ask(node, pages(cursor=("t", 9)))) == [("t", 0, [])]
        assert rows(await ask(node, pages(cursor=("s", 1)))) == [("t", 0, [0, 1])]
        assert rows(await ask(node, pages("bad/name"))) == [("bad/name", 17, [])]


# CreateTopics


def creatable(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in assignments
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def creation(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=validate_only)


def outcome(reply: Any) -> list[tuple[str, int, str | None]]:
    return [(one.name, one.error_code, one.error_message) for one in reply.topics]


async def test_t67_create_topics_as_kafka_answers_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        (made,) = (await ask(node, creation(creatable("t1", 3)))).topics
        assert (made.name, made.error_code, made.error_message) == ("t1", 0, None)
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        assert made.topic_id == node.view.topics["t1"].topic_id != NULL_UUID
        assert len(made.configs) == 37
        assert [one.name for one in made.configs] == sorted(one.name for one in made.configs)
        assert outcome(await ask(node, creation(creatable("t1")))) == [("t1", 36, "Topic 't1' already exists.")]
        twice = creation(creatable("dup"), creatable("dup"), creatable("ok"))
        assert outcome(await ask(node, twice)) == [("ok", 0, None), ("dup", 42, "Duplicate topic name.")]
        assert "dup" not in node.view.topics
        text = (
            "Topic name is invalid: 'bad/name' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
        assert outcome(await ask(node, creation(creatable("bad/name")))) == [("bad/name", 17, text)]
        (defaults,) = (await ask(node, creation(creatable("d", -1, -1)))).topics
        assert (defaults.error_code, defaults.num_partitions, defaults.replication_factor) == (0, 1, 1)
        (_, code, message), *_ = outcome(await ask(node, creation(creatable("r", 1, 3))))
        assert code == 38
        assert message is not None
        assert message.startswith(
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
            "only 1 broker(s) are registered"
        )
        bad = creation(creatable("c", configs={"nope": "1"}))
        assert outcome(await ask(node, bad)) == [("c", 40, "Unknown topic config name: nope")]
        await ask(node, creation(creatable("a.b")))
        assert outcome(await ask(node, creation(creatable("a_b")))) == [
            ("a_b", 17, "Topic 'a_b' collides with existing topic: a.b")
        ]


@pytest.mark.parametrize("version", range(8))
async def test_t67_every_version_creates(tmp_path: Path, version: int) -> None:
    async with cluster(tmp_path) as node:
        reply = await ask(node, creation(creatable("t", 2, configs={"retention.ms": "5000"})), version)
        assert reply.topics[0].error_code == 0
        assert len(node.view.topics["t"].partitions) == 2
        again = await ask(node, creation(creatable("t")), version)
        assert again.topics[0].error_code == 36


async def test_t67_the_settings_that_result_tell_their_source(tmp_path: Path) -> None:
    async with cluster(tmp_path, log_segment_bytes="2000000") as node:
        reply = await ask(node, creation(creatable("t", configs={"retention.ms": "5000"})))
        told = {one.name: (one.value, one.config_source) for one in reply.topics[0].configs}
        assert told["retention.ms"] == ("5000", 1)
        assert told["segment.bytes"] == ("2000000", 4)
        assert told["cleanup.policy"] == ("delete", 5)
        assert not any(one.is_sensitive or one.read_only for one in reply.topics[0].configs)


async def test_t67_manual_assignments(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        reply = await ask(node, creation(creatable("t", -1, -1, [(1, [1]), (0, [1])])))
        assert (reply.topics[0].error_code, reply.topics[0].num_partitions) == (0, 2)
        bad = await ask(node, creation(creatable("u", -1, -1, [(0, [9])])))
        assert outcome(bad) == [
            ("u", 39, "The manual partition assignment includes broker 9, but no such broker is registered.")
        ]
        both = await ask(node, creation(creatable("u", 1, -1, [(0, [1])])))
        assert both.topics[0].error_code == 42


async def test_t67_validate_only_makes_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        reply = await ask(node, creation(creatable("t", 4), creatable("bad/name"), validate_only=True))
        assert [(one.error_code, one.num_partitions) for one in reply.topics] == [(0, 4), (17, -1)]
        assert len(reply.topics[0].configs) == 37
        assert node.view.topics == {}


# DeleteTopics


def deletion(*topics: str | bytes | tuple[str | None, bytes]) -> DeleteTopicsRequest:
    """By name, by id, or by both."""
    states = []
    for topic in topics:
        match topic:
            case str():
                states.append(DeleteTopicState(name=topic, topic_id=NULL_UUID))
            case bytes():
                states.append(DeleteTopicState(name=None, topic_id=topic))
            case (name, topic_id):
                states.append(DeleteTopicState(name=name, topic_id=topic_id))
    return DeleteTopicsRequest(topics=states, timeout_ms=5000)


def deleted(reply: Any) -> list[tuple[str | None, int, str | None]]:
    return [(one.name, one.error_code, one.error_message) for one in reply.responses]


async def test_t73_delete_then_create_at_once(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        made = await node.controller.create_topic(NewTopic("t"))
        reply = await ask(node, deletion("t"))
        assert deleted(reply) == [("t", 0, None)]
        assert reply.responses[0].topic_id == made.topic_id
        assert (await ask(node, creation(creatable("t")))).topics[0].error_code == 0
        assert deleted(await ask(node, deletion("nope"))) == [
            ("nope", 3, "This server does not host this topic-partition.")
        ]


@pytest.mark.parametrize("version", range(6))
async def test_t73_by_name_in_older_versions(tmp_path: Path, version: int) -> None:
    async with cluster(tmp_path) as node:
        await node.controller.create_topic(NewTopic("t"))
        asked = DeleteTopicsRequest(topic_names=["t", "nope"], timeout_ms=5000)
        reply = await ask(node, asked, version)
        assert [(one.name, one.error_code) for one in reply.responses] == [("nope", 3), ("t", 0)]
        assert node.view.topics == {}


async def test_t73_by_id(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        made = await node.controller.create_topic(NewTopic("t"))
        assert deleted(await ask(node, deletion(SOME_ID))) == [(None, 100, "This server does not host this topic ID.")]
        assert deleted(await ask(node, deletion(made.topic_id))) == [("t", 0, None)]


async def test_what_cannot_be_deleted_is_not(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        t_id = (await node.controller.create_topic(NewTopic("t"))).topic_id
        u_id = (await node.controller.create_topic(NewTopic("u"))).topic_id
        await node.controller.create_topic(NewTopic("ok"))
        asked = deletion((None, NULL_UUID), ("t", t_id), "t", "t", u_id, "u", "ok")
        assert deleted(await ask(node, asked)) == [
            (None, 42, "Neither topic name nor id were specified."),
            ("t", 42, "You may not specify both topic name and topic id."),
            ("t", 42, "Duplicate topic name."),
            ("u", 42, "The provided topic name maps to an ID that was already supplied."),
            ("ok", 0, None),
        ]
        assert set(node.view.topics) == {"t", "u"}


@pytest.mark.parametrize(("version", "error"), [(1, 42), (2, 42), (3, 73), (5, 73)])
async def test_t73_deletion_can_be_switched_off(tmp_path: Path, version: int, error: int) -> None:
    async with cluster(tmp_path, delete_topic_enable="false") as node:
        await node.controller.create_topic(NewTopic("t"))
        asked = DeleteTopicsRequest(topic_names=["t", "nope"], timeout_ms=5000)
        reply = await ask(node, asked, version)
        assert [(one.name, one.error_code) for one in reply.responses] == [("t", error), ("nope", error)]
        assert set(node.view.topics) == {"t"}


# CreatePartitions


def growth(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    wanted = None
    if assignments is not None:
        wanted = [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=wanted)


def growing(*topics: CreatePartitionsTopic, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=validate_only)


def grown(reply: Any) -> list[tuple[str, int, str | None]]:
    return [(one.name, one.error_code, one.error_message) for one in reply.results]


async def test_t71_create_partitions_as_kafka_answers_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        await node.controller.create_topic(NewTopic("t1", 3))
        assert grown(await ask(node, growing(growth("t1", 2)))) == [
            ("t1", 37, "The topic t1 currently has 3 partition(s); 2 would not be an increase.")
        ]
        assert grown(await ask(node, growing(growth("t1", 3)))) == [("t1", 37, "Topic already has 3 partition(s).")]
        for version in range(4):
            assert grown(await ask(node, growing(growth("t1", 4 + version)), version)) == [("t1", 0, None)]
            assert len(node.view.topics["t1"].partitions) == 4 + version
        assert grown(await ask(node, growing(growth("t1", 9), validate_only=True))) == [("t1", 0, None)]
        assert grown(await ask(node, growing(growth("t1", 8, [[1]])))) == [("t1", 0, None)]
        assert len(node.view.topics["t1"].partitions) == 8


async def test_t71_one_row_for_each_topic(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        await node.controller.create_topic(NewTopic("t"))
        reply = await ask(node, growing(growth("nope", 2), growth("dup", 2), growth("dup", 3), growth("t", 2)))
        assert grown(reply) == [
            ("nope", 3, "This server does not host this topic-partition."),
            ("t", 0, None),
            ("dup", 42, "Duplicate topic name."),
        ]


# InitProducerId


def init(transactional_id: str | None = None, producer_id: int = -1, epoch: int = -1) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60000, producer_id=producer_id, producer_epoch=epoch
    )


def identity(reply: Any) -> tuple[int, int, int]:
    return reply.error_code, reply.producer_id, reply.producer_epoch


async def test_t35_an_idempotent_producer_gets_an_id_of_its_own(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        for version in range(6):
            assert identity(await ask(node, init(), version)) == (0, version, 0)
        assert identity(await ask(node, init(producer_id=3, epoch=7))) == (0, 6, 0)
    async with cluster(tmp_path) as node:
        assert identity(await ask(node, init())) == (0, 1000, 0)


async def test_t35_what_gets_none(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        assert identity(await ask(node, init(producer_id=3))) == (42, -1, -1)
        assert identity(await ask(node, init(epoch=3))) == (42, -1, -1)
