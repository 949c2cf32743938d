"""DescribeLogDirs over the wire."""

import shutil

import pytest
from support.batches import batch
from support.wire import WireClient

from odradek.testing import Broker
from odradek_protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@pytest.fixture
def folder(broker: Broker) -> str:
    assert broker.node is not None
    (folder,) = broker.node.config.log_dirs
    return folder


def describe(client: WireClient, *topics: tuple[str, list[int]], version: int = 5) -> DescribeLogDirsResult:
    """What is told of the one folder; without topics, all of it."""
    wanted = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics] or None
    reply = client.call(DescribeLogDirsRequest(topics=wanted), version)
    assert reply.error_code == 0
    (result,) = reply.results
    return result


def sizes(result: DescribeLogDirsResult) -> dict[str, dict[int, tuple[int, int, bool]]]:
    return {
        topic.name: {
            row.partition_index: (row.partition_size, row.offset_lag, row.is_future_key) for row in topic.partitions
        }
        for topic in result.topics
    }


@pytest.mark.parametrize("version", range(6))
def test_t70_null_topics_are_all(client: WireClient, topic: str, folder: str, version: int) -> None:
    client.create_topic(topic, partitions=2)
    data = batch(b"v" * 100)
    client.produce(topic, data, index=1)
    result = describe(client, version=version)
    assert (result.error_code, result.log_dir) == (0, folder)
    assert sizes(result)[topic] == {0: (0, 0, False), 1: (len(data), 0, False)}
    assert not result.is_cordoned


def test_t70_named_partitions_alone(client: WireClient, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    assert sizes(describe(client, (topic, [2, 0, 9, -1]), ("nowhere", [0]))) == {
        topic: {0: (0, 0, False), 2: (0, 0, False)}
    }
    assert sizes(describe(client, (topic, []))) == {}


def test_t70_space_is_told_from_version_4_on(client: WireClient, topic: str, folder: str) -> None:
    client.create_topic(topic)
    space = shutil.disk_usage(folder)
    for version in (4, 5):
        result = describe(client, (topic, [0]), version=version)
        assert result.total_bytes == space.total
        assert 0 < result.usable_bytes <= space.total
    result = describe(client, (topic, [0]), version=3)
    assert (result.total_bytes, result.usable_bytes) == (-1, -1)
