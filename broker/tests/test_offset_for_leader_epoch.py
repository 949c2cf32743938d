"""OffsetForLeaderEpoch over the wire."""

import pytest
from support.batches import batch
from support.wire import WireClient

from odradek_protocol.errors import Error
from odradek_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

UNKNOWN = (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def ask(
    client: WireClient,
    topic: str,
    epoch: int,
    *,
    index: int = 0,
    current: int = -1,
    version: int = 4,
    replica_id: int = -1,
) -> tuple[int, int, int]:
    """Error, epoch (-1 where the version has none) and end offset."""
    partition = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    )
    (result,) = client.call(request, version).topics[0].partitions
    assert result.partition == index
    return result.error_code, result.leader_epoch, result.end_offset


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """A topic with seven records of epoch 0."""
    client.create_topic(topic)
    client.produce(topic, batch(*[b"v"] * 7))
    return topic


@pytest.mark.parametrize("version", range(5))
def test_t44_the_newest_epoch_ends_with_the_log(client: WireClient, filled: str, version: int) -> None:
    assert ask(client, filled, 0, version=version) == (0, 0 if version else -1, 7)


@pytest.mark.parametrize("epoch", [42, -1])
def test_t44_an_unknown_epoch_is_no_error(client: WireClient, filled: str, epoch: int) -> None:
    assert ask(client, filled, epoch) == (0, -1, -1)


def test_t44_an_epoch_before_all_known_ones_ends_where_they_begin(client: WireClient, filled: str) -> None:
    assert ask(client, filled, -5) == (0, -5, 0)


@pytest.mark.parametrize("replica_id", [-1, -2, 0, 5])
def test_t44_whoever_asks_is_answered(client: WireClient, filled: str, replica_id: int) -> None:
    assert ask(client, filled, 0, replica_id=replica_id) == (0, 0, 7)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_t44_the_epoch_of_the_client_is_checked(client: WireClient, filled: str, version: int) -> None:
    for current, expected in (
        (-1, (0, 0, 7)),
        (0, (0, 0, 7)),
        (1, (Error.UNKNOWN_LEADER_EPOCH, -1, -1)),
        (-2, (Error.FENCED_LEADER_EPOCH, -1, -1)),
    ):
        assert ask(client, filled, 0, current=current, version=version) == expected


def test_unknown_partitions(client: WireClient, filled: str) -> None:
    assert ask(client, "nowhere", 0) == UNKNOWN
    for index in (1, -1):
        assert ask(client, filled, 0, index=index) == UNKNOWN
