"""The row about compaction: how fast a log is cleaned, and what the clients notice of it."""

import itertools
import os
import time
from dataclasses import dataclass

from benchmarks import frames
from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.load import Requests, drive, produce_check
from benchmarks.rows import ACKS_ALL, Figures, RowAtOnce, fill, percentiles, temporary_topic

WITHIN_S = 120.0
PROBES = 100
"""Requests between two looks at how far the cleaning is."""
NEVER, AT_ONCE = "1", "0.01"
"""Values of `min.cleanable.dirty.ratio`: no log is dirtier than all of it."""


@dataclass(frozen=True)
class Compaction(RowAtOnce):
    """A log in which every key comes `repetitions` times is cleaned, while a client produces one record at a time.

    MB/s are those of the log before, in the time from the setting that makes it dirty enough to the broker's note that
    it is clean.
    """

    batches: int
    batch_bytes: int
    record_bytes: int
    repetitions: int = 10

    def run(self, broker: Broker, share: float) -> Figures:
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        distinct = max(int(self.batches * share) // self.repetitions, 1)
        settings = {
            "cleanup.policy": "compact",
            "segment.bytes": str(16 * 1024 * 1024),
            "min.cleanable.dirty.ratio": NEVER,
        }
        with temporary_topic(broker, settings=settings) as topic, temporary_topic(broker) as other:
            batches = [frames.make_keyed_batch(number * count, count, self.record_bytes) for number in range(distinct)]
            fill(broker, topic, batches, repetitions=self.repetitions)
            folder = broker.data / f"{topic}-0"
            segments = sorted(folder.glob("*.log"))
            size = sum(path.stat().st_size for path in segments[:-1])
            probe = frames.produce(other, [0], frames.make_batch(1, 100), ACKS_ALL)
            began = time.time()
            with Client(broker.port) as client:
                client.alter_topic(topic, "min.cleanable.dirty.ratio", AT_ONCE)
            latencies_s: list[float] = []
            while (ended := _cleaned_at(broker, topic, int(segments[-1].stem))) is None:
                if time.time() - began > WITHIN_S:
                    raise TimeoutError(f"{broker.name} has not cleaned {size} bytes within {WITHIN_S} s")
                load = Requests(broker.port, itertools.repeat(probe, PROBES), 1, produce_check(other))
                drive([load])
                latencies_s += load.latencies_s
        return {"mb_per_s": size / 1e6 / (ended - began), "p99_ms": percentiles(latencies_s)["p99_ms"]}


def _cleaned_at(broker: Broker, topic: str, offset: int) -> float | None:
    """When the broker wrote down that the topic is clean up to `offset`; None while it has not."""
    path = broker.data / "cleaner-offset-checkpoint"
    try:
        with path.open() as file:
            if f"{topic} 0 {offset}" in file.read().splitlines():
                return os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    return None
