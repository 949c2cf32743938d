"""DeleteRecords over the wire."""

import pytest
from support.batches import batch
from support.wire import WireClient

from odradek_protocol.errors import Error
from odradek_protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest


def delete(client: WireClient, topic: str, offset: int, index: int = 0, version: int = 2) -> tuple[int, int]:
    """Error and low watermark."""
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=10_000)
    reply = client.call(request, version)
    assert [each.name for each in reply.topics] == [topic]
    (result,) = reply.topics[0].partitions
    assert result.partition_index == index
    return result.error_code, result.low_watermark


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """A topic with seven records, in batches of two and five."""
    client.create_topic(topic)
    for count in (2, 5):
        client.produce(topic, batch(*[b"v"] * count))
    return topic


@pytest.mark.parametrize("version", range(3))
def test_t72_minus_one_is_the_high_watermark(client: WireClient, filled: str, version: int) -> None:
    assert delete(client, filled, -1, version=version) == (0, 7)
    assert client.fetch(filled, 0).error_code == Error.OFFSET_OUT_OF_RANGE
    data = client.fetch(filled, 7)
    assert (data.error_code, data.log_start_offset, data.high_watermark) == (0, 7, 7)


@pytest.mark.parametrize("offset", [8, 1 << 40, -2, -(1 << 63)])
def test_t72_an_offset_that_is_not_there_is_out_of_range(client: WireClient, filled: str, offset: int) -> None:
    assert delete(client, filled, offset) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert client.fetch(filled, 0).log_start_offset == 0


def test_the_start_moves_forward_only(client: WireClient, filled: str) -> None:
    for offset, low_watermark in ((0, 0), (3, 3), (1, 3), (3, 3), (7, 7)):
        assert delete(client, filled, offset) == (0, low_watermark)
    assert delete(client, filled, -1) == (0, 7)


def test_a_start_inside_a_batch_leaves_the_batch_readable(client: WireClient, filled: str) -> None:
    assert delete(client, filled, 4) == (0, 4)
    assert client.fetch(filled, 3).error_code == Error.OFFSET_OUT_OF_RANGE
    data = client.fetch(filled, 4)
    assert (data.error_code, data.log_start_offset) == (0, 4)
    assert data.records


def test_records_go_on_behind_deleted_ones(client: WireClient, filled: str) -> None:
    delete(client, filled, -1)
    reply = client.produce(filled, batch(b"more"))
    assert (reply.base_offset, reply.log_start_offset) == (7, 7)


def test_unknown_partitions(client: WireClient, filled: str) -> None:
    for name, index in (("nowhere", 0), (filled, 1), (filled, -1)):
        assert delete(client, name, 0, index) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_compacted_topics_keep_their_records(client: WireClient, topic: str) -> None:
    client.create_topic(topic, cleanup_policy="compact")
    client.produce(topic, batch(b"v", keys=[b"k"]))
    assert delete(client, topic, -1) == (Error.POLICY_VIOLATION, -1)


def test_compacted_topics_that_also_delete_do_not(client: WireClient, topic: str) -> None:
    client.create_topic(topic, cleanup_policy="compact,delete")
    client.produce(topic, batch(b"v", keys=[b"k"]))
    assert delete(client, topic, -1) == (0, 1)


def test_internal_topics_keep_their_records(client: WireClient, topic: str) -> None:
    client.call(FindCoordinatorRequest(key=topic, key_type=0), 3)
    assert delete(client, "__consumer_offsets", -1) == (Error.INVALID_TOPIC_EXCEPTION, -1)
