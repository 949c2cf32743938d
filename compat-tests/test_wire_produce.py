"""Produce beside a real Kafka."""

from __future__ import annotations

import functools
import gzip
import struct
from typing import TYPE_CHECKING

import lz4.frame
import pytest
import snappy
import zstandard
from wire.comparison import compared
from wire.questions import fetch, list_offsets
from wire.records import HEADER_BYTES, NOW_MS, batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from wire.client import Wire

HOUR_MS = 3_600_000
NOT_THERE = b"\7" * 16
XERIAL_HEADER = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def sized(block: bytes) -> bytes:
    """Put a block's size before it."""
    return struct.pack(">i", len(block)) + block


CODECS = [
    pytest.param(1, functools.partial(gzip.compress, mtime=0), id="gzip"),
    pytest.param(2, snappy.compress, id="snappy"),
    pytest.param(2, lambda data: XERIAL_HEADER + sized(snappy.compress(data)), id="snappy in Xerial's frames"),
    pytest.param(3, lz4.frame.compress, id="lz4"),
    pytest.param(4, zstandard.compress, id="zstd"),
]
PRODUCER = {"producer_id": 4000, "producer_epoch": 0}


class TestProduce:
    @compared("beside_kafka_4")
    def test_every_version(self, wire: Wire, name: str) -> None:
        topic_id = wire.create_topic(name, 2)
        for version in wire.versions("Produce"):
            for acks in (-1, 1):
                partitions = [{"Index": index, "Records": batch(b"a", b"b")} for index in (1, 0, 77, -1)]
                topics = [{"Name": name, "TopicId": topic_id, "PartitionData": partitions}]
                topics.append({"Name": "unknown", "TopicId": NOT_THERE, "PartitionData": partitions[:1]})
                wire.call("Produce", version, Acks=acks, TimeoutMs=10_000, TopicData=topics)
        fetch(wire, name, 0, 0)

    @pytest.mark.parametrize("acks", [2, -2, 100])
    @compared("beside_kafka_4")
    def test_t27_bad_acks(self, wire: Wire, name: str, acks: int) -> None:
        wire.create_topic(name)
        for version in (3, 8, 12):
            wire.produce(name, batch(), version=version, acks=acks)

    @pytest.mark.parametrize(
        "records",
        [
            pytest.param(batch(crc=1), id="crc"),
            pytest.param(batch(base_offset=777), id="base offset"),
            pytest.param(batch(base_offset=-1), id="negative base offset"),
            pytest.param(batch(leader_epoch=55), id="leader epoch"),
            pytest.param(batch() + batch(), id="two batches"),
            pytest.param(b"", id="empty"),
            pytest.param(b"\0", id="one byte"),
            pytest.param(batch()[:60], id="header cut short"),
            pytest.param(batch()[:-1], id="records cut short"),
            pytest.param(batch() + b"\0", id="a byte too many"),
            pytest.param(batch(magic=0), id="magic 0"),
            pytest.param(batch(magic=1), id="magic 1"),
            pytest.param(batch(magic=3), id="magic 3"),
            pytest.param(batch(magic=-1), id="magic -1"),
            pytest.param(batch(attributes=0x20), id="control"),
            pytest.param(batch(attributes=0x10), id="transactional without a producer"),
            pytest.param(batch(attributes=0x10, **PRODUCER, base_sequence=0), id="transactional"),
            pytest.param(batch(attributes=5), id="codec 5"),
            pytest.param(batch(attributes=7), id="codec 7"),
            pytest.param(batch(attributes=0x80), id="unknown attribute"),
            pytest.param(batch(attributes=0x08), id="log append time"),
            pytest.param(batch(count=5), id="count too large"),
            pytest.param(batch(b"a", b"b", count=1), id="count too small"),
            pytest.param(batch(count=0), id="count 0"),
            pytest.param(batch(count=-1), id="count -1"),
            pytest.param(batch(last_offset_delta=5), id="last offset delta too large"),
            pytest.param(batch(last_offset_delta=-1), id="last offset delta -1"),
            pytest.param(batch(length=48), id="length too small"),
            pytest.param(batch(length=1000), id="length too large"),
            pytest.param(batch(length=-1), id="length -1"),
            pytest.param(batch(timestamps=[0]), id="timestamp 0"),
            pytest.param(batch(timestamps=[-1]), id="timestamp -1"),
            pytest.param(batch(b"a", b"b", timestamps=[NOW_MS, NOW_MS + 2 * HOUR_MS]), id="future timestamp"),
            pytest.param(batch(body=b"nonsense", attributes=1), id="gzip of nonsense"),
            pytest.param(batch(producer_id=-1, producer_epoch=0), id="epoch without a producer"),
            pytest.param(batch(producer_id=5), id="producer without an epoch"),
            pytest.param(batch(producer_id=5, producer_epoch=1), id="producer without a sequence"),
            pytest.param(batch(b"x" * 2000), id="too large"),
        ],
    )
    @compared("beside_kafka_4")
    def test_t26_t27_t29_t30_batches_that_are_wrong_in_one_way(self, wire: Wire, name: str, records: bytes) -> None:
        wire.create_topic(name, max_message_bytes="1000")
        for version in (3, 8, 12):
            wire.produce(name, records, version=version)
        fetch(wire, name, 0)

    @compared("beside_kafka_4")
    def test_t27_zstd_needs_version_7(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        for version in (3, 6):
            wire.produce(name, batch(attributes=4), version=version)

    @compared("beside_kafka_4")
    def test_t27_records_without_keys_in_a_compacted_topic(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, cleanup_policy="compact")
        keyless = batch(b"a", b"b", b"c", b"d", b"e", keys=[b"k", None, None, None, None])
        for version in (3, 7, 8, 9, 12):
            wire.produce(name, keyless, version=version)
            wire.produce(name, batch(b"a", keys=[b"k"]), version=version)

    @compared("beside_kafka_4")
    def test_t28_the_limit_of_a_batch(self, wire: Wire, name: str) -> None:
        size = len(batch(b"x" * 500))
        wire.create_topic(name, max_message_bytes=str(size))
        for length in (499, 500, 501):
            wire.produce(name, batch(b"x" * length))

    @compared("beside_kafka_4")
    def test_t25_log_append_time(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, message_timestamp_type="LogAppendTime")
        for version in (3, 8, 12):
            wire.produce(name, batch(b"a", timestamps=[5]), version=version)

    @compared("beside_kafka_4")
    def test_t12_no_reply_without_acks(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        for records in (batch(), batch(crc=1)):
            for topic, index in ((name, 0), (name, 77), ("unknown", 0)):
                data = [{"Name": topic, "PartitionData": [{"Index": index, "Records": records}]}]
                wire.send("Produce", 8, Acks=0, TimeoutMs=1000, TopicData=data)
                wire.send("Metadata", 1, Topics=[])
                wire.receive("Metadata", 1)
        fetch(wire, name, 0)

    @compared("beside_kafka_4")
    def test_bad_names(self, wire: Wire) -> None:
        for bad in ("", "a/b", "__consumer_offsets"):
            wire.produce(bad, batch())

    @compared("beside_kafka_4")
    def test_more_replicas_wanted_in_sync_than_there_are(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, min_insync_replicas="2")
        wire.produce(name, batch(), acks=1)

    @pytest.mark.parametrize(("codec", "compress"), CODECS)
    @compared("beside_kafka_4")
    def test_t31_compressed_records(
        self, wire: Wire, name: str, codec: int, compress: Callable[[bytes], bytes]
    ) -> None:
        wire.create_topic(name)
        plain = batch(b"a", b"b", b"c")[HEADER_BYTES:]
        wire.produce(name, batch(b"a", b"b", b"c", body=compress(plain), attributes=codec))
        wire.produce(name, batch(b"a", b"b", b"c", body=b"nonsense", attributes=codec))
        for timestamp in (NOW_MS + 1, NOW_MS + 9, -3):
            list_offsets(wire, 7, name, timestamp)
        fetch(wire, name, 1)
        fetch(wire, name, 0, version=4)

    @pytest.mark.parametrize("wanted", ["snappy", "lz4"])
    @compared("beside_kafka_4")
    def test_t28_the_topics_codec_and_the_limit_before_and_after(self, wire: Wire, name: str, wanted: str) -> None:
        wire.create_topic(name, compression_type=wanted, max_message_bytes="3000")
        plain = batch(b"a" * 2000, b"b", b"c")[HEADER_BYTES:]
        large = batch(b"a" * 4000)[HEADER_BYTES:]
        for codec, compress in ((0, bytes), (1, functools.partial(gzip.compress, mtime=0)), (4, zstandard.compress)):
            wire.produce(name, batch(b"a" * 2000, b"b", b"c", body=compress(plain), attributes=codec))
            wire.produce(name, batch(b"a" * 4000, body=compress(large), attributes=codec))
            wire.produce(name, batch(b"a" * 2000, b"b", body=compress(plain), attributes=codec))
            wire.produce(name, batch(b"a", body=compress(b"nonsense"), attributes=codec))
        for timestamp in (NOW_MS + 1, -3, -4, -5, -1):
            list_offsets(wire, 9, name, timestamp)


class TestIdempotence:
    @pytest.mark.parametrize(
        "sequences",
        [
            [(0, 5, 1), (0, 5, 1), (0, 6, 3), (0, 20, 1), (0, 5, 1), (1, 0, 1), (0, 9, 1), (1, 7, 1), (3, 7, 1)],
            [(0, 2147483646, 1), (0, 2147483647, 1), (0, 0, 1), (0, 1, 1)],
            [(0, 2147483646, 4), (0, 2, 1), (0, 2147483646, 4), (0, 2, 1)],
            [(0, number, 1) for number in (*range(7), *range(7))],
            [(0, 0, 3), (0, 1, 1), (0, 0, 2), (0, 2, 1), (0, 0, 3), (0, 3, 1)],
            [(5, 3, 1), (4, 0, 1), (5, 4, 1), (6, 0, 1), (5, 5, 1)],
            [(32767, 0, 1), (32767, 1, 1), (0, 0, 1)],
            [(0, -1, 1), (0, -2, 1), (-1, 0, 1)],
        ],
        ids=str,
    )
    @compared("beside_kafka_4")
    def test_t32_t33_sequences(self, wire: Wire, name: str, sequences: list[tuple[int, int, int]]) -> None:
        wire.create_topic(name)
        for epoch, sequence, count in sequences:
            wire.note("epoch, sequence, count", (epoch, sequence, count))
            values = [b"v"] * count
            wire.produce(name, batch(*values, producer_id=4000, producer_epoch=epoch, base_sequence=sequence))
        fetch(wire, name, 0)

    @compared("beside_kafka_4")
    def test_t35_init_producer_id(self, wire: Wire) -> None:
        for version in wire.versions("InitProducerId"):
            wire.call("InitProducerId", version, TransactionalId=None, TransactionTimeoutMs=60_000)
            wire.call("InitProducerId", version, TransactionalId=None, TransactionTimeoutMs=0)
            wire.call("InitProducerId", version, TransactionalId=None, TransactionTimeoutMs=2**31 - 1)
            wire.call("InitProducerId", version, TransactionalId="", TransactionTimeoutMs=60_000)
        for producer_id, epoch in ((5, 0), (5, -1), (-1, 5), (123456789, 7), (0, 32767)):
            wire.call(
                "InitProducerId",
                5,
                TransactionalId=None,
                TransactionTimeoutMs=1,
                ProducerId=producer_id,
                ProducerEpoch=epoch,
            )
