"""Requests as bytes, written before the clock starts, so that a load costs the client next to nothing.

The versions are the last ones with fixed-width lengths (Produce v8, Fetch v11, ListOffsets v5, Metadata v8,
OffsetCommit v7): a client finds the few values that it needs in their replies without decoding them. To a broker the
newer ones cost the same; Kafka's own tools, which have rows of their own, speak those.

Values are words of a small vocabulary in random order: lz4 halves them, as it does with ordinary JSON.
"""

import random
import string
import struct
import time
from collections.abc import Sequence

from crc32c import crc32c

from odradek_protocol.connection import ClientConnection
from odradek_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek_protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek_protocol.records.batch import HEADER_SIZE
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec

PRODUCE_VERSION = 8
FETCH_VERSION = 11
LIST_OFFSETS_VERSION = 5
METADATA_VERSION = 8
OFFSET_COMMIT_VERSION = 7
CONSUMER_GROUP_HEARTBEAT_VERSION = 1
"""Every version has lengths of varying width; where the error stands depends on none of them."""

RECORD_OVERHEAD = 10
"""Bytes that a batch needs for a record of 100 to 1,000 bytes besides its value, at most."""

MAX_WAIT_MS = 500
MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
"""The Java consumer's defaults."""

VOCABULARY = 1000
WORD_LETTERS = 7

_CRC = struct.Struct(">I")
_SEQUENCE = struct.Struct(">i")

Frame = bytes | bytearray


def records_in(batch_bytes: int, record_bytes: int) -> int:
    """How many records a producer puts into a batch of at most `batch_bytes`; 1 for `batch_bytes` 0."""
    return max((batch_bytes - HEADER_SIZE) // (record_bytes + RECORD_OVERHEAD), 1)


def text(size: int) -> bytes:
    """`size` bytes of words, the same ones every time."""
    draw = random.Random(size)
    words = ["".join(draw.choices(string.ascii_lowercase, k=WORD_LETTERS)) for _ in range(VOCABULARY)]
    return " ".join(draw.choices(words, k=size // (WORD_LETTERS + 1) + 1)).encode()[:size]


def make_batch(count: int, record_bytes: int, codec: Codec = Codec.NONE, producer_id: int = -1) -> bytearray:
    """A batch of `count` records of `record_bytes` each, the same ones every time."""
    values = text(count * record_bytes)
    now_ms = time.time_ns() // 1_000_000
    records = [
        NewRecord(None, values[start : start + record_bytes], timestamp_ms=now_ms)
        for start in range(0, len(values), record_bytes)
    ]
    idempotent = producer_id >= 0
    return build_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if idempotent else -1,
        base_sequence=0 if idempotent else -1,
    )


def make_keyed_batch(first_key: int, count: int, record_bytes: int) -> bytearray:
    """A batch of `count` records with keys that follow one another."""
    values = text(count * record_bytes)
    now_ms = time.time_ns() // 1_000_000
    starts = range(0, len(values), record_bytes)
    return build_batch(
        [
            NewRecord(b"key-%010d" % key, values[start : start + record_bytes], timestamp_ms=now_ms)
            for key, start in enumerate(starts, first_key)
        ]
    )


def produce(topic: str, partitions: Sequence[int], batch: bytearray, acks: int) -> bytearray:
    """A Produce of `batch` to each of `partitions`."""
    data = [PartitionProduceData(index=index, records=memoryview(batch)) for index in partitions]
    body = ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    return bytearray(ClientConnection("benchmark").send(body, PRODUCE_VERSION))


def stamp_sequence(frame: bytearray, batch_bytes: int, sequence: int) -> None:
    """Give the one batch at the end of a Produce frame another sequence number, and the CRC that goes with it."""
    start = len(frame) - batch_bytes
    _SEQUENCE.pack_into(frame, start + 53, sequence)
    _CRC.pack_into(frame, start + 17, crc32c(memoryview(frame)[start + 21 :]))


def fetch(topic: str, offsets: Sequence[int], partition_max_bytes: int = PARTITION_MAX_BYTES) -> bytes:
    """A Fetch of partitions 0, 1, ... from these offsets on, without a session."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for index, offset in enumerate(offsets)
    ]
    body = FetchRequest(
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        topics=[FetchTopic(topic=topic, partitions=partitions)],
    )
    return ClientConnection("benchmark").send(body, FETCH_VERSION)


def list_offsets(topic: str, timestamp: int) -> bytes:
    """A ListOffsets of partition 0."""
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    body = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)])
    return ClientConnection("benchmark").send(body, LIST_OFFSETS_VERSION)


def metadata(topic: str) -> bytes:
    """A Metadata of one topic."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return ClientConnection("benchmark").send(body, METADATA_VERSION)


def offset_commit(group: str, topic: str, partitions: int) -> bytes:
    """An OffsetCommit of partitions 0, 1, ... of a topic by a consumer that is no member of its group."""
    rows = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
        for index in range(partitions)
    ]
    body = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)])
    return ClientConnection("benchmark").send(body, OFFSET_COMMIT_VERSION)


def heartbeat(group: str, member_id: str, epoch: int) -> bytes:
    """A ConsumerGroupHeartbeat of a member for which nothing has changed."""
    body = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch)
    return ClientConnection("benchmark").send(body, CONSUMER_GROUP_HEARTBEAT_VERSION)
