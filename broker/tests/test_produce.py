"""Produce over the wire: what is appended, what is refused with which code, and when there is no reply."""

import pytest
from support.batches import batch, now_ms
from support.wire import WireClient, produce_request

from odradek.testing import Broker
from odradek_protocol.errors import Error
from odradek_protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest
from odradek_protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek_protocol.records.batch import CONTROL, TRANSACTIONAL, iter_batches, read_header
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.read import read_records

HOUR_MS = 3_600_000


@pytest.fixture
def made(client: WireClient, topic: str) -> str:
    """The name of a topic of one partition."""
    client.create_topic(topic)
    return topic


def latest(client: WireClient, topic: str) -> int:
    asked = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    )
    offset: int = client.call(asked, 5).topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends(client: WireClient, made: str, version: int) -> None:
    first = client.produce(made, batch(b"a", b"b"), version=version)
    second = client.produce(made, batch(b"c"), version=version)
    assert [(one.error_code, one.base_offset) for one in (first, second)] == [(0, 0), (0, 2)]


def test_version_13_appends_by_topic_id(client: WireClient, topic: str) -> None:
    topic_id = client.create_topic(topic)
    reply = client.produce("", batch(b"a"), version=13, topic_id=topic_id)
    assert (reply.error_code, reply.base_offset) == (0, 0)
    assert client.produce("", batch(b"a"), version=13, topic_id=b"\7" * 16).error_code == Error.UNKNOWN_TOPIC_ID


def test_t25_base_offset_is_that_of_the_batch(client: WireClient, made: str) -> None:
    client.produce(made, batch(b"a", b"b", b"c"))
    reply = client.produce(made, batch(b"d", b"e"))
    assert (reply.base_offset, reply.log_append_time_ms, reply.log_start_offset) == (3, -1, 0)
    refused = client.produce(made, batch(b"f", crc=1))
    assert (refused.base_offset, refused.log_append_time_ms) == (-1, -1)


def test_t26_offset_and_epoch_are_the_brokers(client: WireClient, made: str) -> None:
    assert client.produce(made, batch(b"a", base_offset=777)).error_code == Error.INVALID_RECORD
    assert client.produce(made, batch(b"a", partition_leader_epoch=55)).error_code == 0
    stored = read_header(client.fetch(made, 0).records)
    assert (stored.base_offset, stored.partition_leader_epoch) == (0, 0)


REFUSED = {
    "bad crc": (batch(b"a", crc=12345), 9, Error.CORRUPT_MESSAGE),
    "two batches": (batch(b"a") + batch(b"b"), 9, Error.INVALID_RECORD),
    "magic 1": (batch(b"a", magic=1), 9, Error.INVALID_RECORD),
    "control batch": (batch(b"a", attributes=CONTROL), 9, Error.INVALID_RECORD),
    "too few records": (batch(b"a", record_count=2), 9, Error.INVALID_RECORD),
    "no records": (batch(b"a", record_count=0, last_offset_delta=-1), 9, Error.INVALID_RECORD),
    "empty": (b"", 9, Error.INVALID_RECORD),
    "null": (None, 9, Error.INVALID_RECORD),
    "zstd below version 7": (batch(b"a", codec=Codec.ZSTD), 6, Error.UNSUPPORTED_COMPRESSION_TYPE),
    "no gzip inside": (batch(b"a", attributes=Codec.GZIP), 9, Error.UNKNOWN_SERVER_ERROR),
    "cut short": (batch(b"a")[:-1], 9, Error.INVALID_RECORD),
    "shorter than a header": (batch(b"a")[:60], 9, Error.INVALID_RECORD),
}


@pytest.mark.parametrize(("records", "version", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_t27_what_is_refused_with_which_code(
    client: WireClient, made: str, records: bytes | None, version: int, error: Error
) -> None:
    reply = client.produce(made, records, version=version)
    assert (Error(reply.error_code), reply.base_offset) == (error, -1)
    assert latest(client, made) == 0


def test_t27_t46_unknown_topics_partitions_and_acks(client: WireClient, made: str) -> None:
    assert client.produce("nowhere", batch(b"a")).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce(made, batch(b"a"), index=99).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce(made, batch(b"a"), index=-1).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce(made, batch(b"a"), acks=2).error_code == Error.INVALID_REQUIRED_ACKS


def test_t27_an_unknown_partition_of_a_known_topic_id(client: WireClient, topic: str) -> None:
    topic_id = client.create_topic(topic)
    for index in (1, -1):
        reply = client.produce("", batch(b"a"), index=index, version=13, topic_id=topic_id)
        assert reply.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    reply = client.produce("", batch(b"a"), version=13, topic_id=b"\7" * 16)
    assert reply.error_code == Error.UNKNOWN_TOPIC_ID


def test_clients_may_not_write_to_internal_topics(broker: Broker, client: WireClient) -> None:
    client.create_topic("__transaction_state")
    records = batch(b"a", keys=[b"k"])
    reply = client.produce("__transaction_state", records)
    assert (reply.error_code, reply.log_start_offset) == (Error.INVALID_TOPIC_EXCEPTION, -1)
    with WireClient(broker.port, "__admin_client") as admin:
        assert admin.produce("__transaction_state", records).error_code == 0


def test_a_transactional_batch_needs_a_transactional_id(client: WireClient, made: str) -> None:
    for producer in ((-1, -1, -1), (77, 0, 0)):
        reply = client.produce(made, batch(b"a", producer=producer, attributes=TRANSACTIONAL))
        assert (reply.error_code, reply.base_offset) == (Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)
    assert latest(client, made) == 0


def test_t27_timestamps_out_of_range_are_named(client: WireClient, made: str) -> None:
    late = now_ms() + 2 * HOUR_MS
    reply = client.produce(made, batch(b"a", b"b", timestamps=[now_ms(), late]))
    assert (reply.error_code, [one.batch_index for one in reply.record_errors]) == (Error.INVALID_TIMESTAMP, [1])
    assert str(late) in reply.record_errors[0].batch_index_error_message
    assert reply.error_message == "One or more records have been rejected due to invalid timestamp"
    assert client.produce(made, batch(b"a", timestamps=[now_ms() + HOUR_MS - 60_000])).error_code == 0


def test_t27_compacted_topics_want_keys(client: WireClient, topic: str) -> None:
    client.create_topic(topic, cleanup_policy="compact")
    reply = client.produce(topic, batch(b"a", b"b", keys=[b"k", None]))
    assert (reply.error_code, [one.batch_index for one in reply.record_errors]) == (Error.INVALID_RECORD, [1])
    assert f"{topic}-0" in reply.record_errors[0].batch_index_error_message
    assert client.produce(topic, batch(b"a", b"b", keys=[b"k", b""])).error_code == 0


@pytest.mark.parametrize("codec", Codec)
def test_t27_compacted_topics_want_keys_in_compressed_batches_too(client: WireClient, topic: str, codec: Codec) -> None:
    client.create_topic(topic, cleanup_policy="compact")
    assert client.produce(topic, batch(b"a", keys=[None], codec=codec)).error_code == Error.INVALID_RECORD
    assert client.produce(topic, batch(b"a", keys=[b"k"], codec=codec)).error_code == 0


def test_t29_old_formats_are_refused_in_the_oldest_version_served(client: WireClient, made: str) -> None:
    for magic in (0, 1):
        assert client.produce(made, batch(b"a", magic=magic), version=3).error_code == Error.INVALID_RECORD


def test_t28_max_message_bytes_is_on_the_batch(client: WireClient, topic: str) -> None:
    fits = batch(b"x" * 1000)
    client.create_topic(topic, max_message_bytes=str(len(fits)))
    assert client.produce(topic, fits).error_code == 0
    assert client.produce(topic, batch(b"x" * 1001)).error_code == Error.MESSAGE_TOO_LARGE


def test_t30_timestamps_0_and_minus_1_are_legal(client: WireClient, made: str) -> None:
    assert client.produce(made, batch(b"a", timestamps=[0])).error_code == 0
    assert client.produce(made, batch(b"a", timestamps=[-1])).error_code == 0


def test_log_append_time_is_told_and_stamped(client: WireClient, topic: str) -> None:
    client.create_topic(topic, message_timestamp_type="LogAppendTime")
    before = now_ms()
    reply = client.produce(topic, batch(b"a", b"b", timestamps=[5, 6]))
    assert before <= reply.log_append_time_ms <= now_ms()
    records = memoryview(client.fetch(topic, 0).records)
    assert {one.timestamp_ms for one in read_records(records)} == {reply.log_append_time_ms}


def test_t12_acks_0_is_never_answered(client: WireClient, made: str) -> None:
    client.send(produce_request(made, batch(b"a"), acks=0), 9, expect_reply=False)
    reply = client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    assert isinstance(reply, ApiVersionsResponse)
    assert latest(client, made) == 1


def test_t12_a_failure_with_acks_0_closes_the_connection(broker: Broker, client: WireClient, made: str) -> None:
    client.send(produce_request(made, batch(b"a", crc=1), acks=0), 9, expect_reply=False)
    assert client.is_closed_by_broker()
    with WireClient(broker.port) as other:
        assert latest(other, made) == 0


def test_acks_all_waits_for_nobody_where_there_is_one_replica(client: WireClient, topic: str) -> None:
    client.create_topic(topic, min_insync_replicas="3")
    assert client.produce(topic, batch(b"a"), acks=-1).error_code == 0


@pytest.mark.parametrize("codec", Codec)
def test_batches_are_stored_as_they_came(client: WireClient, made: str, codec: Codec) -> None:
    sent = batch(*[b"value %d" % index for index in range(50)], codec=codec)
    client.produce(made, sent)
    assert client.fetch(made, 0).records == sent[:12] + bytes(4) + sent[16:]


def test_one_partition_does_not_fail_another(client: WireClient, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    request = produce_request(topic, batch(b"a", crc=1))
    right = produce_request(topic, batch(b"b"), index=1)
    request.topic_data[0].partition_data = [
        *request.topic_data[0].partition_data,
        *right.topic_data[0].partition_data,
    ]
    reply = client.call(request, 9)
    codes = [one.error_code for one in reply.responses[0].partition_responses]
    assert codes == [Error.CORRUPT_MESSAGE, 0]


class TestIdempotence:
    """T32 to T34: what a producer with an id may send again, and what not."""

    @pytest.fixture
    def producer_id(self, client: WireClient) -> int:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        reply = client.call(asked, 4)
        assert (reply.error_code, reply.producer_epoch) == (0, 0)
        identity: int = reply.producer_id
        return identity

    def send(self, client: WireClient, topic: str, producer: tuple[int, int, int], count: int = 1) -> tuple[int, int]:
        reply = client.produce(topic, batch(*[b"v"] * count, producer=producer))
        return reply.error_code, reply.base_offset

    def test_t32_sequences(self, client: WireClient, made: str, producer_id: int) -> None:
        answers = [
            self.send(client, made, (producer_id, 0, 5)),
            self.send(client, made, (producer_id, 0, 5)),
            self.send(client, made, (producer_id, 0, 6), count=3),
            self.send(client, made, (producer_id, 0, 20)),
            self.send(client, made, (producer_id, 0, 5)),
            self.send(client, made, (producer_id, 1, 0)),
            self.send(client, made, (producer_id, 0, 9)),
            self.send(client, made, (producer_id, 2, 7)),
        ]
        assert answers == [(0, 0), (0, 0), (0, 1), (45, -1), (0, 0), (0, 4), (47, -1), (45, -1)]
        assert latest(client, made) == 5

    def test_t32_the_last_five_batches_are_remembered(self, client: WireClient, made: str, producer_id: int) -> None:
        for sequence in range(7):
            self.send(client, made, (producer_id, 0, sequence))
        answers = [self.send(client, made, (producer_id, 0, sequence)) for sequence in range(7)]
        assert answers == [(45, -1), (45, -1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6)]

    def test_t32_a_repetition_is_answered_with_its_time(self, client: WireClient, made: str, producer_id: int) -> None:
        records = batch(b"a", b"b", timestamps=[1000, 2000], producer=(producer_id, 0, 0))
        answers = [client.produce(made, bytes(records)) for _ in range(2)]
        assert [(one.base_offset, one.log_append_time_ms) for one in answers] == [(0, -1), (0, 2000)]

    def test_t33_sequences_wrap(self, client: WireClient, made: str, producer_id: int) -> None:
        top = 2**31 - 1
        answers = [
            self.send(client, made, (producer_id, 0, top - 1)),
            self.send(client, made, (producer_id, 0, top)),
            self.send(client, made, (producer_id, 0, 0)),
        ]
        assert answers == [(0, 0), (0, 1), (0, 2)]

    def test_t33_a_batch_may_span_the_wrap(self, client: WireClient, made: str, producer_id: int) -> None:
        top = 2**31 - 1
        answers = [
            self.send(client, made, (producer_id, 0, top - 1), count=4),
            self.send(client, made, (producer_id, 0, 2)),
            self.send(client, made, (producer_id, 0, top - 1), count=4),
        ]
        assert answers == [(0, 0), (0, 4), (0, 0)]

    def test_producer_ids_are_never_given_twice(self, client: WireClient) -> None:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        ids = [client.call(asked, 4).producer_id for _ in range(1100)]
        assert len(set(ids)) == 1100


def test_pipelined_batches_lie_in_the_order_in_which_they_were_sent(client: WireClient, made: str) -> None:
    for index in range(100):
        client.send(produce_request(made, batch(b"%d" % index)), 9)
    offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in range(100)]
    assert offsets == list(range(100))
    records = memoryview(client.fetch(made, 0).records)
    values = [
        bytes(record.value or b"")
        for position, header in iter_batches(records)
        for record in read_records(records[position : position + header.size])
    ]
    assert values == [b"%d" % index for index in range(100)]
