"""Rows of what certain clients do: Spark's queries, one that floods, and some that do not read what they asked for."""

import itertools
import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event

from benchmarks import frames
from benchmarks.brokers import Broker
from benchmarks.frames import Frame
from benchmarks.load import (
    Consumer,
    Requests,
    connect,
    drive,
    fetch_check,
    in_turn,
    list_offsets_check,
    paced,
    produce_check,
)
from benchmarks.rows import ACKS_ALL, Figures, RowAtOnce, cost_of, fill, percentiles, temporary_topic

LATEST = -1
EARLIEST = -2

FLOOD_IN_FLIGHT = 1000
"""Requests of the client that floods: more than a broker can answer while it looks once at its other connections."""
FLOOD_START_S = 30.0

SLOW_FETCHES = 20
SLOW_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class SparkReads(RowAtOnce):
    """What a query of Spark's asks: two ListOffsets and a Fetch for every `records` that it reads."""

    requests: int
    records: int = 500
    record_bytes: int = 100
    batches: int = 200
    connections: int = 4

    def run(self, broker: Broker, share: float) -> Figures:
        rounds = int(self.requests * share) // (3 * self.connections)
        batch = frames.make_batch(self.records, self.record_bytes)
        with temporary_topic(broker) as topic:
            fill(broker, topic, [batch], repetitions=self.batches)
            check = list_offsets_check(topic, 1)
            exchanges = [
                Requests(
                    broker.port,
                    itertools.islice(self._frames(topic), 3 * rounds),
                    1,
                    in_turn([check, check, fetch_check(topic)]),
                )
                for _ in range(self.connections)
            ]
            cpu_s = broker.cpu_s()
            seconds = drive(exchanges)
            cpu_s = broker.cpu_s() - cpu_s
        return cost_of("request", 3 * rounds * self.connections, seconds, cpu_s)

    def _frames(self, topic: str) -> Iterator[Frame]:
        made = []
        for number in range(self.batches):
            # Whoever asks for a byte gets one batch.
            fetch = frames.fetch(topic, [number * self.records], partition_max_bytes=1)
            made += [frames.list_offsets(topic, EARLIEST), frames.list_offsets(topic, LATEST), fetch]
        return itertools.cycle(made)


@dataclass(frozen=True)
class IdleQuery(RowAtOnce):
    """A query of Spark's that finds nothing new: ListOffsets at the rate that was seen of one."""

    requests_per_s: float = 260
    seconds: float = 4

    def run(self, broker: Broker, share: float) -> Figures:
        with temporary_topic(broker) as topic:
            made = [frames.list_offsets(topic, timestamp) for timestamp in (EARLIEST, LATEST)]
            requests = int(self.requests_per_s * self.seconds * share)
            cpu_s = broker.cpu_s()
            latencies_s = paced(
                broker.port,
                itertools.islice(itertools.cycle(made), requests),
                self.requests_per_s,
                list_offsets_check(topic, 1),
            )
            cpu_s = broker.cpu_s() - cpu_s
        return {"cpu_ms_per_s": cpu_s / requests * self.requests_per_s * 1e3, **percentiles(latencies_s)}


@dataclass(frozen=True)
class BesideFlood(RowAtOnce):
    """One record at a time, acks=all, while another client sends as many requests as it can."""

    requests: int
    record_bytes: int = 100

    def run(self, broker: Broker, share: float) -> Figures:
        requests = int(self.requests * share)
        with temporary_topic(broker) as topic, temporary_topic(broker) as flooded, _flood(broker.port, flooded):
            frame = frames.produce(topic, [0], frames.make_batch(1, self.record_bytes), ACKS_ALL)
            exchange = Requests(broker.port, itertools.repeat(frame, requests), 1, produce_check(topic))
            drive([exchange])
        return percentiles(exchange.latencies_s)


@contextmanager
def _flood(port: int, topic: str) -> Iterator[None]:
    """A process that floods, so that the other client's clock does not wait for its replies."""
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    process = context.Process(target=flood, args=(port, topic, begun), daemon=True)
    process.start()
    try:
        if not begun.wait(FLOOD_START_S):
            raise TimeoutError(f"no flood after {FLOOD_START_S} s")
        yield
    finally:
        process.terminate()
        process.join()


def flood(port: int, topic: str, begun: Event) -> None:
    """Send small requests, `FLOOD_IN_FLIGHT` of them at a time, until this process is ended."""
    frame = frames.produce(topic, [0], frames.make_batch(1, 100), 1)

    def endless() -> Iterator[Frame]:
        for number in itertools.count():
            if number == 2 * FLOOD_IN_FLIGHT:
                begun.set()
            yield frame

    drive([Requests(port, endless(), FLOOD_IN_FLIGHT, produce_check(topic))])


@dataclass(frozen=True)
class BesideSlow(RowAtOnce):
    """A consumer that reads all it can, while others have asked for all of it many times and take nothing."""

    batches: int
    batch_bytes: int
    record_bytes: int
    passes: int
    slow: int = 20

    def run(self, broker: Broker, share: float) -> Figures:
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        batch = frames.make_batch(count, self.record_bytes)
        passes = max(int(self.passes * share), 1)
        with temporary_topic(broker) as topic, ExitStack() as stack:
            fill(broker, topic, [batch], repetitions=self.batches)
            asked = frames.fetch(topic, [0], partition_max_bytes=SLOW_BYTES) * SLOW_FETCHES
            for _ in range(self.slow):
                stack.enter_context(connect(broker.port)).sendall(asked)
            end_offset = self.batches * count
            fast = Consumer(
                broker.port, topic, 1, end_offset, batch_bytes=len(batch), batch_records=count, passes=passes
            )
            cpu_s = broker.cpu_s()
            seconds = drive([fast])
            cpu_s = broker.cpu_s() - cpu_s
        return cost_of("record", end_offset * passes, seconds, cpu_s)
