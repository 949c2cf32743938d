"""Record formats 0 and 1 over the wire; `compat-tests/test_wire_formats.py` compares the answers with Kafka's."""

import pytest
from support.batches import batch, now_ms
from support.wire import WireClient

from odradek_protocol.errors import Error
from odradek_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek_protocol.records.batch import read_header
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.formats import iter_any, read_any
from odradek_protocol.records.legacy import build_message_set
from odradek_protocol.records.read import Record, read_records


def message_set(magic: int, count: int = 3, codec: Codec = Codec.NONE) -> bytes:
    now = now_ms()
    records = [Record(number, now + number, b"k", b"%d" % number, ()) for number in range(count)]
    return build_message_set(records, magic, codec=codec)


def offsets(data: bytes | memoryview) -> list[tuple[int, int]]:
    """Format and offset of each record."""
    return [
        (header.magic, one.offset)
        for position, header in iter_any(data)
        for one in read_any(data[position : position + header.size])
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (2, 0)])
def test_t29_message_sets_become_batches(
    client: WireClient, topic: str, version: int, magic: int, codec: Codec
) -> None:
    client.create_topic(topic)
    for first in (0, 3):
        reply = client.produce(topic, message_set(magic, codec=codec), version=version)
        assert (reply.error_code, reply.base_offset) == (0, first)
    data = client.fetch(topic, 0).records
    assert offsets(data) == [(2, offset) for offset in range(6)]
    assert read_header(data).codec == codec


@pytest.mark.parametrize("version", range(4))
def test_each_client_gets_its_format(client: WireClient, topic: str, version: int) -> None:
    client.create_topic(topic)
    client.produce(topic, batch(b"a", b"b"))
    client.produce(topic, batch(b"c", b"d", codec=Codec.GZIP))
    magic = 0 if version < 2 else 1
    assert offsets(client.fetch(topic, 1, version=version).records) == [(magic, 1), (magic, 2), (magic, 3)]
    assert offsets(client.fetch(topic, 3, version=version).records) == [(magic, 2), (magic, 3)]
    data = client.fetch(topic, 4, version=version)
    assert (data.error_code, data.high_watermark, data.records) == (0, 4, b"")
    assert client.fetch(topic, 5, version=version).error_code == Error.OFFSET_OUT_OF_RANGE


def test_an_old_fetch_waits_for_more(client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    client.send(request, 2)
    with WireClient(client.port) as other:
        other.produce(topic, batch(b"a"))
    [partition] = client.receive().responses[0].partitions
    assert offsets(partition.records) == [(1, 0)]


def test_a_set_in_several_partitions_keeps_each_ones_answer(client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    damaged = bytearray(message_set(1))
    damaged[-1] ^= 1
    assert client.produce(topic, damaged, version=2).error_code == Error.CORRUPT_MESSAGE
    assert client.produce(topic, message_set(1), version=3).error_code == Error.INVALID_RECORD
    assert client.produce("unknown", message_set(1), version=2).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce(topic, message_set(1), version=2, acks=7).error_code == Error.INVALID_REQUIRED_ACKS
    assert client.fetch(topic, 0).high_watermark == 0


@pytest.mark.parametrize("version", [2, 3, 9])
def test_the_topics_codec(client: WireClient, topic: str, version: int) -> None:
    client.create_topic(topic, compression_type="zstd", compression_zstd_level="1")
    sent = message_set(1, codec=Codec.GZIP) if version == 2 else batch(b"0", b"1", b"2", codec=Codec.GZIP)
    assert client.produce(topic, sent, version=version).error_code == 0
    data = client.fetch(topic, 0).records
    assert read_header(data).codec == Codec.ZSTD
    assert [one.value for one in read_records(data)] == [b"0", b"1", b"2"]
    for old in (0, 3, 4, 9):
        assert client.fetch(topic, 0, version=old).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert client.fetch(topic, 0, version=10).error_code == 0


def test_recompressed_records_are_checked(client: WireClient, topic: str) -> None:
    client.create_topic(topic, compression_type="gzip", max_message_bytes="2000", max_decompressed_message_bytes="5000")
    assert client.produce(topic, batch(b"x" * 5100, codec=Codec.LZ4)).error_code == Error.INVALID_RECORD
    assert client.produce(topic, batch(b"x" * 4900, codec=Codec.LZ4)).error_code == 0
    assert client.produce(topic, batch(b"x" * 2100)).error_code == Error.MESSAGE_TOO_LARGE, "as it came"
    wrong = batch(b"a", b"b", last_offset_delta=2, record_count=3)
    assert client.produce(topic, wrong).error_code == Error.INVALID_RECORD
    noise = bytes(hash((number, 7)) & 0xFF for number in range(2000))
    kept = batch(noise[:1800])
    assert client.produce(topic, kept).error_code == 0
    assert client.fetch(topic, 0).high_watermark == 2


def test_records_that_grow_above_the_limit(client: WireClient, topic: str) -> None:
    client.create_topic(topic, compression_type="uncompressed", max_message_bytes="2000")
    assert client.produce(topic, batch(b"x" * 3000, codec=Codec.GZIP)).error_code == Error.MESSAGE_TOO_LARGE
    assert client.produce(topic, batch(b"x" * 1900, codec=Codec.GZIP)).error_code == 0


def test_conversion_may_be_forbidden(client: WireClient, topic: str) -> None:
    client.create_topic(topic, message_downconversion_enable="false")
    client.produce(topic, batch(b"a"))
    assert client.fetch(topic, 0, version=3).error_code == Error.UNSUPPORTED_VERSION
    assert client.fetch(topic, 0, version=4).error_code == 0
