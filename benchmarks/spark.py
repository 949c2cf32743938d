"""The rows of PySpark with its Kafka connector: one session in this process for all of them, started by the first."""

import tempfile
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from benchmarks.rows import ClientConsume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 300
OFFSETS_PER_TRIGGER = 200_000


@dataclass(frozen=True)
class SparkRead(ClientConsume):
    """Two threads read a whole topic: as a batch, or as a stream that ends at what is there."""

    streaming: bool = False

    def consume(self, address: str, topic: str, records: int) -> float:
        """Read a topic of so many records; records/s."""
        return read_stream(address, topic, records) if self.streaming else read_batch(address, topic, records)


@cache
def _session() -> "SparkSession":
    from pipeline.session import local_session  # only these rows need PySpark, which is half a gigabyte

    return local_session("benchmark", "local[2]")


def _options(address: str, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        # A task asks for the ends of its partition with each poll: ten times fewer than by default.
        "kafka.max.poll.records": "5000",
    }


def read_batch(address: str, topic: str, records: int) -> float:
    """Sum up the lengths of all values; records/s."""
    frame = _session().read.format("kafka").options(**_options(address, topic)).load()
    started = time.perf_counter()
    (row,) = frame.selectExpr("count(*) AS records", "sum(length(value)) AS bytes").collect()
    seconds = time.perf_counter() - started
    if row.records != records:
        raise RuntimeError(f"Spark read {row.records} of {records} records")
    return records / seconds


def read_stream(address: str, topic: str, records: int) -> float:
    """Read everything in micro-batches of `OFFSETS_PER_TRIGGER` into a sink that forgets it; records/s."""
    source = _session().readStream.format("kafka").options(**_options(address, topic))
    with tempfile.TemporaryDirectory(prefix="spark-benchmark-") as checkpoint:
        started = time.perf_counter()
        query = (
            source.option("maxOffsetsPerTrigger", OFFSETS_PER_TRIGGER)
            .load()
            .selectExpr("length(value)")
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(TIMEOUT_S):
            query.stop()
            raise TimeoutError(f"Spark did not read {records} records in {TIMEOUT_S} s")
        seconds = time.perf_counter() - started
    read = sum(progress.numInputRows for progress in query.recentProgress)
    if read != records:
        raise RuntimeError(f"Spark read {read} of {records} records")
    return records / seconds
