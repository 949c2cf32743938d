"""ListOffsets over the wire: every named place, timestamps, isolation, epochs, and the form of version 0."""

import pytest
from support.batches import batch, now_ms
from support.transactions import TransactionalProducer
from support.wire import WireClient

from odradek_protocol.errors import Error
from odradek_protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek_protocol.records.batch import TRANSACTIONAL
from odradek_protocol.records.compression import Codec

LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
FIRST_VERSIONS = {LATEST: 1, EARLIEST: 1, LARGEST: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
NEWEST = 11

OLD_RECORDS = {"message_timestamp_before_max_ms": str((1 << 63) - 1), "retention_ms": "-1"}
"""Settings of a topic that takes and keeps records of 1970."""

Row = tuple[int, int, int, int]


def wanted(timestamp: int, index: int = 0, **fields: int) -> ListOffsetsPartition:
    return ListOffsetsPartition(partition_index=index, timestamp=timestamp, **fields)


def ask(
    client: WireClient,
    topic: str,
    *partitions: ListOffsetsPartition,
    version: int = NEWEST,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> list[ListOffsetsPartitionResponse]:
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=partitions)],
    )
    reply = client.call(request, version)
    assert [row.name for row in reply.topics] == [topic]
    rows: list[ListOffsetsPartitionResponse] = reply.topics[0].partitions
    return rows


def row(client: WireClient, topic: str, timestamp: int, version: int = NEWEST, **fields: int) -> Row:
    """Error, timestamp, offset and epoch for the first partition; the epoch is -1 where the version has none."""
    found = ask(client, topic, wanted(timestamp), version=version, **fields)[0]
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """A topic of two partitions; the first has records at 1000, 1002, 1001 in one batch, at 1005, 1005 in another."""
    client.create_topic(topic, partitions=2, **OLD_RECORDS)
    client.produce(topic, batch(b"a", b"b", b"c", timestamps=[1000, 1002, 1001]))
    client.produce(topic, batch(b"d", b"e", timestamps=[1005, 1005], codec=Codec.GZIP))
    return topic


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_t48_every_version_has_both_ends(client: WireClient, filled: str, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    assert row(client, filled, LATEST, version) == (0, -1, 5, epoch)
    assert row(client, filled, EARLIEST, version) == (0, -1, 0, epoch)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (LARGEST, (0, 1005, 3, 0)),
        (EARLIEST_LOCAL, (0, -1, 0, 0)),
        (LATEST_TIERED, (0, -1, -1, -1)),
        (EARLIEST_PENDING, (0, -1, -1, -1)),
        (-7, (Error.UNSUPPORTED_VERSION, -1, -1, -1)),
        (-(1 << 63), (Error.UNSUPPORTED_VERSION, -1, -1, -1)),
        (0, (0, 1000, 0, 0)),
        (1000, (0, 1000, 0, 0)),
        (1001, (0, 1002, 1, 0)),
        (1002, (0, 1002, 1, 0)),
        (1003, (0, 1005, 3, 0)),
        (1005, (0, 1005, 3, 0)),
        (1006, (0, -1, -1, -1)),
        ((1 << 63) - 1, (0, -1, -1, -1)),
    ],
)
def test_t48_places_and_timestamps(client: WireClient, filled: str, timestamp: int, expected: Row) -> None:
    assert row(client, filled, timestamp) == expected


@pytest.mark.parametrize(("timestamp", "first"), FIRST_VERSIONS.items())
def test_t48_a_place_is_there_from_its_version_on(client: WireClient, filled: str, timestamp: int, first: int) -> None:
    for version in range(1, NEWEST + 1):
        refused = row(client, filled, timestamp, version) == (Error.UNSUPPORTED_VERSION, -1, -1, -1)
        assert refused == (version < first)


def test_t48_an_empty_partition(client: WireClient, filled: str) -> None:
    rows = ask(client, filled, wanted(LATEST, 1))
    assert (rows[0].error_code, rows[0].timestamp, rows[0].offset, rows[0].leader_epoch) == (0, -1, 0, 0)
    for timestamp, offset in ((EARLIEST, 0), (LARGEST, -1), (0, -1)):
        rows = ask(client, filled, wanted(timestamp, 1))
        assert (rows[0].error_code, rows[0].timestamp, rows[0].offset) == (0, -1, offset)


def test_t48_deleted_records_are_not_found(client: WireClient, filled: str) -> None:
    start = DeleteRecordsPartition(partition_index=0, offset=2)
    client.call(
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=filled, partitions=[start])], timeout_ms=10_000), 2
    )
    assert row(client, filled, EARLIEST) == (0, -1, 2, 0)
    assert row(client, filled, 0) == (0, 1001, 2, 0)
    assert row(client, filled, 1002) == (0, 1005, 3, 0)


def test_t48_log_append_time_is_that_of_the_batch(client: WireClient, topic: str) -> None:
    client.create_topic(topic, message_timestamp_type="LogAppendTime")
    before = now_ms()
    client.produce(topic, batch(b"a", b"b", timestamps=[1, 2]))
    error, timestamp, offset, _ = row(client, topic, before)
    assert (error, offset) == (0, 0)
    assert before <= timestamp <= now_ms()
    assert row(client, topic, LARGEST)[:3] == (0, timestamp, 0)


def test_t48_the_latest_committed_offset_is_that_of_the_oldest_open_transaction(
    client: WireClient, filled: str
) -> None:
    writer = TransactionalProducer(client, "writer")
    assert (writer.initialize(), writer.add(filled)) == (0, 0)
    records = batch(b"t", timestamps=[2000], producer=(writer.producer_id, 0, 0), attributes=TRANSACTIONAL)
    client.produce(filled, records, transactional_id="writer")
    assert row(client, filled, LATEST) == (0, -1, 6, 0)
    assert row(client, filled, 2000) == (0, 2000, 5, 0)
    assert row(client, filled, LATEST, isolation_level=1) == (0, -1, 5, 0)
    for hidden in (2000, LARGEST):
        assert row(client, filled, hidden, isolation_level=1) == (0, -1, -1, -1)
    assert row(client, filled, LATEST, isolation_level=1, replica_id=1) == (0, -1, 6, 0)


def test_t48_a_timestamp_is_found_across_segments(client: WireClient, topic: str) -> None:
    client.create_topic(topic, segment_bytes="1048576", **OLD_RECORDS)
    for number in range(5):
        client.produce(topic, batch(bytes(600_000), b"x", timestamps=[1000 + 10 * number, 1005 + 10 * number]))
    for number in range(5):
        assert row(client, topic, 1001 + 10 * number) == (0, 1005 + 10 * number, 2 * number + 1, 0)
        assert row(client, topic, 996 + 10 * number) == (0, 1000 + 10 * number, 2 * number, 0)
    assert row(client, topic, LARGEST) == (0, 1045, 9, 0)


def test_unknown_partitions(client: WireClient, filled: str) -> None:
    for timestamp in (LATEST, EARLIEST, LARGEST, 0):
        assert row(client, "nowhere", timestamp) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
        for index in (2, -1):
            (found,) = ask(client, filled, wanted(timestamp, index))
            assert (found.partition_index, found.error_code) == (index, Error.UNKNOWN_TOPIC_OR_PARTITION)
            assert (found.timestamp, found.offset, found.leader_epoch) == (-1, -1, -1)


def test_t44_the_leader_epoch_of_the_client_is_checked(client: WireClient, filled: str) -> None:
    for epoch, error in ((-1, 0), (0, 0), (1, Error.UNKNOWN_LEADER_EPOCH), (-2, Error.FENCED_LEADER_EPOCH)):
        for timestamp in (LATEST, 0):
            (found,) = ask(client, filled, wanted(timestamp, current_leader_epoch=epoch))
            assert (found.error_code, found.offset == -1) == (error, error != 0)


def test_a_partition_that_is_named_twice_is_refused_once(client: WireClient, filled: str) -> None:
    rows = ask(client, filled, wanted(LATEST), wanted(LATEST, 1), wanted(EARLIEST))
    errors = [(found.partition_index, found.error_code) for found in rows]
    assert errors == [(0, Error.INVALID_REQUEST), (1, 0)]


def test_many_partitions_in_one_request(client: WireClient, topic: str) -> None:
    client.create_topic(topic, partitions=50, **OLD_RECORDS)
    for index in range(50):
        client.produce(topic, batch(b"v", timestamps=[1000 + index]), index=index)
    rows = ask(client, topic, *(wanted(1000, index) for index in range(50)))
    assert [(found.partition_index, found.timestamp, found.offset) for found in rows] == [
        (index, 1000 + index, 0) for index in range(50)
    ]


def old_style(client: WireClient, topic: str, timestamp: int, count: int) -> list[int]:
    (found,) = ask(client, topic, wanted(timestamp, max_num_offsets=count), version=0)
    assert found.error_code == 0
    return list(found.old_style_offsets)


def test_t49_version_0_gives_lists(client: WireClient, topic: str) -> None:
    client.create_topic(topic, segment_bytes="1048576")
    assert old_style(client, topic, LATEST, 1) == [0]
    for _ in range(4):
        client.produce(topic, batch(bytes(600_000), b"x"))
    assert old_style(client, topic, LATEST, 1) == [8]
    assert old_style(client, topic, LATEST, 3) == [8, 6, 4]
    assert old_style(client, topic, LATEST, 100) == [8, 6, 4, 2, 0]
    assert old_style(client, topic, EARLIEST, 100) == [0]
    assert old_style(client, topic, 1, 100) == []
    for none in (0, -1):
        assert old_style(client, topic, LATEST, none) == []


def test_t49_version_0_has_no_places_but_both_ends(client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    for name in (topic, "nowhere"):
        (found,) = ask(client, name, wanted(LARGEST, max_num_offsets=1), version=0)
        assert (found.error_code, list(found.old_style_offsets)) == (Error.UNSUPPORTED_VERSION, [])


def test_t49_version_0_has_no_offsets_in_errors(client: WireClient) -> None:
    (found,) = ask(client, "nowhere", wanted(LATEST, max_num_offsets=1), version=0)
    assert (found.error_code, list(found.old_style_offsets)) == (Error.UNKNOWN_TOPIC_OR_PARTITION, [])
