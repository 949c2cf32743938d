"""Metadata is answered from memory until it changes, and never wrongly."""

from pathlib import Path
from typing import Any

import pytest
from support.cluster import Cluster, Dialled, ask, cluster

from odradek import reply_cache
from odradek_protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

TOPICS = [MetadataRequest(topics=None), DescribeTopicPartitionsRequest(topics=())]


async def make(node: Cluster, *names: str) -> None:
    for name in names:
        await node.controller.create_topic_if_absent(name)


def names(reply: Any) -> list[str]:
    return sorted(topic.name for topic in reply.topics)


@pytest.mark.parametrize("question", TOPICS, ids=["Metadata", "DescribeTopicPartitions"])
async def test_a_change_is_seen_at_once(tmp_path: Path, question: Any) -> None:
    async with cluster(tmp_path) as node:
        await make(node, "a")
        assert names(await ask(node, question)) == names(await ask(node, question)) == ["a"]
        assert len(node.metadata_replies) == 1
        await make(node, "b")
        assert names(await ask(node, question)) == ["a", "b"]
        await node.controller.create_partitions("a", 3)
        described = await ask(node, question)
        assert [len(topic.partitions) for topic in described.topics if topic.name == "a"] == [3]
        await node.controller.delete_topic("a")
        assert names(await ask(node, question)) == ["b"]


async def test_each_question_has_its_own_answer(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        await make(node, "a", "b")
        for _ in range(2):
            for name in ("a", "b"):
                assert names(await ask(node, MetadataRequest(topics=[MetadataRequestTopic(name=name)]))) == [name]
                listed = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)])
                assert names(await ask(node, listed)) == [name]
            assert names(await ask(node, MetadataRequest(topics=()))) == []
            for version in (1, 12):
                assert names(await ask(node, MetadataRequest(topics=None), version)) == ["a", "b"]


async def test_t23_who_dials_another_address_is_told_another(tmp_path: Path) -> None:
    async with cluster(tmp_path) as node:
        for _ in range(2):
            for port in (1111, 2222):
                reply = await ask(node, MetadataRequest(topics=None), dialled=Dialled(port=port))
                assert [broker.port for broker in reply.brokers] == [port]


async def test_errors_are_not_kept(tmp_path: Path) -> None:
    async with cluster(tmp_path, auto_create_topics_enable="false") as node:
        for question in (
            MetadataRequest(topics=[MetadataRequestTopic(name="nope")]),
            DescribeTopicPartitionsRequest(topics=[TopicRequest(name="nope")]),
        ):
            assert (await ask(node, question)).topics[0].error_code == 3
        assert len(node.metadata_replies) == 0


@pytest.mark.parametrize("limit", ["MAX_REPLIES", "MAX_BYTES"])
async def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    async with cluster(tmp_path) as node:
        await make(node, *(f"t{index}" for index in range(9)))
        size = 4 if limit == "MAX_REPLIES" else 400
        monkeypatch.setattr(reply_cache, limit, size)
        for index in range(9):
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{index}")])
            assert names(await ask(node, asked)) == [f"t{index}"]
            assert 0 < len(node.metadata_replies) <= 4
