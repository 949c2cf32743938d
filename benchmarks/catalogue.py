"""Which rows there are. The amounts make each run last one to three seconds on two ordinary cores.

A batch size of 0 stands for one record in each batch.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

from benchmarks import frames
from benchmarks.cleaning import Compaction
from benchmarks.crowds import Connections, Consumers
from benchmarks.groups import GroupHeartbeats, OffsetCommits
from benchmarks.load import list_offsets_check, metadata_check
from benchmarks.patterns import EARLIEST, LATEST, BesideFlood, BesideSlow, IdleQuery, SparkReads
from benchmarks.rebalances import ClassicRebalance, ConsumerRebalance
from benchmarks.rows import (
    ACKS_ALL,
    ON_DISK,
    ClientConsume,
    ClientProduce,
    EndToEnd,
    Fetch,
    JavaEndToEnd,
    ManyPartitions,
    Memory,
    Produce,
    Row,
    SmallRequests,
    Start,
)
from benchmarks.share import ShareReads
from benchmarks.spark import SparkRead
from benchmarks.transactions import Transactions
from odradek_protocol.records.compression import Codec

KIB = 1024

PRODUCE: tuple[Row, ...] = (
    Produce("produce 1 x 100 B, acks=1", 20_000, 0, 100),
    Produce("produce 1 x 100 B, acks=all", 20_000, 0, 100, acks=ACKS_ALL),
    Produce("produce 1 x 100 B, 20 connections", 20_000, 0, 100, connections=20, in_flight=1),
    Produce("produce 1 x 100 B, one at a time", 5_000, 0, 100, acks=ACKS_ALL, in_flight=1, latency=True),
    Produce("produce 16 KiB of 100 B", 12_000, 16 * KIB, 100),
    Produce("produce 16 KiB of 100 B, lz4", 12_000, 16 * KIB, 100, codec=Codec.LZ4),
    Produce("produce 16 KiB of 1 KB", 16_000, 16 * KIB, 1000),
    Produce("produce 16 KiB of 1 KB, acks=all, idempotent", 16_000, 16 * KIB, 1000, acks=ACKS_ALL, idempotent=True),
    Produce("produce 128 KiB of 100 B", 3_000, 128 * KIB, 100),
    Produce("produce 128 KiB of 1 KB", 4_000, 128 * KIB, 1000),
    Produce("produce 128 KiB of 1 KB, acks=all", 4_000, 128 * KIB, 1000, acks=ACKS_ALL),
    Produce("produce 128 KiB of 1 KB, lz4", 4_000, 128 * KIB, 1000, codec=Codec.LZ4),
    Produce(
        "produce 16 KiB of 1 KB, 100 partitions",
        1_600,
        16 * KIB,
        1000,
        partitions=100,
        partitions_in_request=10,
    ),
    Produce(
        "produce 1 x 100 B, 50 producers, on disk", 20_000, 0, 100, connections=50, in_flight=1, settings=(ON_DISK,)
    ),
    Produce(
        "produce 1 x 100 B, 50 producers, 10 partitions, on disk",
        20_000,
        0,
        100,
        connections=50,
        in_flight=1,
        partitions=10,
        settings=(ON_DISK,),
    ),
)

FETCH: tuple[Row, ...] = (
    Fetch("fetch 16 KiB of 100 B", 4_000, 16 * KIB, 100, passes=40),
    Fetch("fetch 16 KiB of 1 KB", 4_000, 16 * KIB, 1000, passes=40),
    Fetch("fetch 128 KiB of 1 KB", 1_000, 128 * KIB, 1000, passes=20),
    Fetch("fetch 128 KiB of 1 KB, lz4", 1_000, 128 * KIB, 1000, codec=Codec.LZ4, passes=40),
    Fetch("fetch 128 KiB of 1 KB, 20 consumers", 1_000, 128 * KIB, 1000, consumers=20, passes=2),
    Fetch("fetch 1 x 100 B, 20 consumers", 40_000, 0, 100, consumers=20, passes=8),
    Fetch("fetch 16 KiB of 1 KB, 100 partitions", 40, 16 * KIB, 1000, partitions=100, passes=40),
)

REQUESTS: tuple[Row, ...] = (
    SmallRequests("list offsets, latest", 20_000, partial(frames.list_offsets, timestamp=LATEST), list_offsets_check),
    SmallRequests(
        "list offsets, earliest", 20_000, partial(frames.list_offsets, timestamp=EARLIEST), list_offsets_check
    ),
    SmallRequests("metadata, 1 partition", 20_000, frames.metadata, metadata_check),
    SmallRequests("metadata, 100 partitions", 5_000, frames.metadata, metadata_check, partitions=100),
)

TRANSACTIONS: tuple[Row, ...] = (
    Transactions("transactions of 1 KB", 1_000),
    Transactions("transactions of 1 KB to 10 partitions", 300, partitions=10),
)

GROUPS: tuple[Row, ...] = (
    OffsetCommits("offset commits", 60_000),
    OffsetCommits("offset commits of 100 partitions", 12_000, partitions=100),
    GroupHeartbeats("heartbeats in a group of 5,000 members", 5_000, 20_000),
    ConsumerRebalance("rebalance of 100 members, 1,000 partitions", 100, 1_000),
    ClassicRebalance("rebalance of 100 members, 1,000 partitions, classic", 100, 1_000),
    ShareReads("share group, 16 KiB of 100 B", 4_000, 16 * KIB, 100),
    ShareReads("share group, 16 KiB of 1 KB", 8_000, 16 * KIB, 1000),
)

PATTERNS: tuple[Row, ...] = (
    SparkReads("Spark reads, 2 ListOffsets for 500 records", 15_000),
    IdleQuery("Spark query that is idle, 260 requests/s"),
    BesideFlood("produce 1 x 100 B, beside a flood", 1_000),
    BesideSlow("fetch 16 KiB of 1 KB, beside 20 slow consumers", 2_000, 16 * KIB, 1000, passes=120),
)

CLIENTS: tuple[Row, ...] = (
    EndToEnd("end to end, acks=all", 2_000),
    ClientProduce("produce 1 KB, librdkafka", 600_000, 1000, ("acks=all",), java=False),
    ClientConsume("consume 1 KB, librdkafka", 30_000, 16 * KIB, 1000, turns=4, java=False),
)

JAVA: tuple[Row, ...] = (
    JavaEndToEnd("end to end, acks=all, Java", 1_000),
    ClientProduce("produce 1 KB, Java", 300_000, 1000, ("acks=all",)),
    ClientProduce(
        "produce 1 KB, 128 KiB batches, lz4, Java",
        300_000,
        1000,
        ("acks=all", "batch.size=131072", "linger.ms=20", "compression.type=lz4"),
    ),
    ClientProduce("produce 1 KB, 100 partitions, Java", 300_000, 1000, ("acks=all",), partitions=100),
    ClientConsume("consume 1 KB, Java", 80_000, 16 * KIB, 1000),
    ClientConsume("consume 1 KB, 100 partitions, Java", 800, 16 * KIB, 1000, partitions=100),
)

CROWDS: tuple[Row, ...] = (
    Connections("10,000 connections", 10_000),
    Consumers("1,000 consumers in 100 groups", 100, 10),
    ManyPartitions("10,000 partitions of 5 KB", 10_000),
)

SPARK: tuple[Row, ...] = (
    SparkRead("PySpark, batch, 100 B", 1_500, 16 * KIB, 100, partitions=4, turns=3),
    SparkRead("PySpark, streaming, 100 B", 1_500, 16 * KIB, 100, partitions=4, turns=3, streaming=True),
)

CLEANING: tuple[Row, ...] = (
    Compaction("compact 16 KiB of 100 B", 6_000, 16 * KIB, 100),
    Compaction("compact 16 KiB of 1 KB", 12_000, 16 * KIB, 1000),
)

FOOTPRINT: tuple[Row, ...] = (Start("start"), Memory("after the load"))

LOADS = PRODUCE + FETCH + REQUESTS + TRANSACTIONS + GROUPS + PATTERNS + CLIENTS + JAVA + SPARK + CLEANING
ROWS = LOADS + CROWDS + FOOTPRINT
QUICK_ROWS = tuple(row for row in ROWS if row not in JAVA + SPARK + CROWDS)
"""Those that need no JVM for the client, whose start takes longer than its load, and no thousands of
connections or partitions."""

READ_BYTES = 2 << 30
"""What the consumers of a combination read together, if it is not compressed."""


def _combinations() -> Iterator[Row]:
    sizes = (("1 x", 0, 20_000, 40_000), ("16 KiB of", 16 * KIB, 12_000, 4_000), ("128 KiB of", 128 * KIB, 3_000, 500))
    for (size, batch_bytes, requests, batches), (record, record_bytes), (codec_name, codec) in product(
        sizes, (("100 B", 100), ("1 KB", 1000)), (("", Codec.NONE), (", lz4", Codec.LZ4))
    ):
        line = f"{size} {record}{codec_name}"
        for column, acks in (("produce, acks=1", 1), ("produce, acks=all", ACKS_ALL)):
            yield Produce(f"{line}: {column}", requests, batch_bytes, record_bytes, acks=acks, codec=codec)
        for column, consumers in (("fetch, 1 consumer", 1), ("fetch, 20 consumers", 20)):
            passes = READ_BYTES // (consumers * batches * max(batch_bytes, record_bytes))
            yield Fetch(
                f"{line}: {column}", batches, batch_bytes, record_bytes, codec=codec, consumers=consumers, passes=passes
            )


COMBINATIONS: tuple[Row, ...] = tuple(_combinations())
"""Every kind of batch, produced and read in every way; named "LINE: COLUMN" for the matrix that they make."""
