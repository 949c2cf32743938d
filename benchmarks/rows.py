"""What the rows of the table do: each runs one load against one broker, and gives what that cost.

Rows of very many clients are in `crowds`, of what certain clients do in `patterns`, of transactions in `transactions`,
of groups in `groups`, `rebalances` and `share`, of compaction in `cleaning`.
"""

import itertools
import os
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from benchmarks import frames, tools
from benchmarks.brokers import IGNORED_TOPIC_SETTINGS, Broker
from benchmarks.client import Client
from benchmarks.frames import Frame
from benchmarks.load import Check, Consumer, Requests, drive, end_to_end, produce_check
from odradek_protocol.records.compression import Codec

Figures = dict[str, float]
"""What one run measured, by the names in `results.METRICS`."""

ACKS_ALL = -1

ON_DISK = ("flush.messages", "1")
"""The topic's setting for `log.flush.interval.messages=1`: acknowledged means on the disk."""

MANY_TIMEOUT_S = 600.0
"""How long a broker may take to make a topic of many partitions."""

TURNS = 6
"""Parts of a load that brokers get in turns: a few tenths of a second each."""

_numbers = itertools.count(1)

Steps = Generator[None, None, Figures]
"""A run that stops where it is another broker's turn, and gives at last what the load cost."""


@dataclass(frozen=True)
class Row(ABC):
    """One row: a load in parts. What disturbs the machine for some seconds then disturbs every broker alike.

    It may be run any number of times, with a `share` (at most 1) of the usual amount of load.
    """

    name: str

    @abstractmethod
    def steps(self, broker: Broker, share: float) -> Steps:
        """Put one part of the load after the other on a broker, and give what they cost."""


@dataclass(frozen=True)
class RowAtOnce(Row):
    """A row whose load has one part."""

    def steps(self, broker: Broker, share: float) -> Steps:
        yield
        return self.run(broker, share)

    @abstractmethod
    def run(self, broker: Broker, share: float) -> Figures:
        """Put the load on a broker and give what it cost."""


class Meter:
    """What the parts of a load have cost a broker so far."""

    def __init__(self, broker: Broker) -> None:
        self.seconds = 0.0
        self.cpu_s = 0.0
        self._broker = broker

    def measure(self, part: Callable[[], float]) -> None:
        """Have `part` put one part on the broker; it gives the seconds that this took."""
        cpu_s = self._broker.cpu_s()
        self.seconds += part()
        self.cpu_s += self._broker.cpu_s() - cpu_s

    def cost_of(self, unit: str, count: int) -> Figures:
        """CPU time for each of `count` units, and how many the broker did in a second."""
        return cost_of(unit, count, self.seconds, self.cpu_s)


@contextmanager
def temporary_topic(
    broker: Broker, partitions: int = 1, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """A topic for one run. The names are all of one length, as the length of a name is a part of the load."""
    ignored = IGNORED_TOPIC_SETTINGS.get(broker.name, set()) & settings.keys()
    if ignored:
        raise RuntimeError(f"it does not heed {', '.join(sorted(ignored))}")
    name = f"benchmark-{next(_numbers):06}"
    with Client(broker.port) as client:
        client.create_topic(name, partitions, settings)
    try:
        yield name
    finally:
        with Client(broker.port) as client:
            client.delete_topic(name)
        broker.wait_until_deleted(name)


def fill(broker: Broker, topic: str, batches: Iterable[bytes], partitions: int = 1, repetitions: int = 1) -> None:
    """Write each batch to each partition, all of them `repetitions` times; what is written is to be read afterwards.

    It is on the disk then: writing back what a quick broker has just made would hold up those who read it.
    """
    made = [frames.produce(topic, [index], batch, 1) for batch in batches for index in range(partitions)]
    filling = itertools.chain.from_iterable(itertools.repeat(made, repetitions))
    drive([Requests(broker.port, filling, 5, produce_check(topic))])
    os.sync()


def cost_of(unit: str, count: int, seconds: float, cpu_s: float) -> Figures:
    """CPU time of the broker for each of `count` units, and how many it did in a second."""
    return {f"cpu_us_per_{unit}": cpu_s / count * 1e6, f"{unit}s_per_s": count / seconds}


def percentiles(latencies_s: Sequence[float]) -> Figures:
    """The median and the tail, in ms."""
    cuts = statistics.quantiles(latencies_s, n=1000)
    return {"p50_ms": cuts[499] * 1e3, "p99_ms": cuts[989] * 1e3, "p99.9_ms": cuts[998] * 1e3}


@dataclass(frozen=True)
class Produce(Row):
    """Prebuilt Produce requests, each with a batch for `partitions_in_request` of the topic's partitions in turn."""

    requests: int
    batch_bytes: int
    record_bytes: int
    acks: int = 1
    codec: Codec = Codec.NONE
    idempotent: bool = False
    partitions: int = 1
    partitions_in_request: int = 1
    connections: int = 1
    in_flight: int = 5
    """The most that an idempotent producer may have on their way, and what producers have by default."""
    latency: bool = False
    settings: tuple[tuple[str, str], ...] = ()

    def steps(self, broker: Broker, share: float) -> Steps:
        each = max(int(self.requests * share) // self.connections // TURNS, 1)
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        meter = Meter(broker)
        latencies_s: list[float] = []
        with temporary_topic(broker, self.partitions, dict(self.settings)) as topic:
            sources = [self._frames(broker, topic, each * TURNS, count) for _ in range(self.connections)]
            for _ in range(TURNS):
                yield
                exchanges = [
                    Requests(broker.port, itertools.islice(source, each), self.in_flight, produce_check(topic))
                    for source in sources
                ]
                meter.measure(partial(drive, exchanges))
                latencies_s += itertools.chain.from_iterable(one.latencies_s for one in exchanges)
        if self.latency:
            return percentiles(latencies_s)
        return meter.cost_of("record", each * TURNS * self.connections * count * self.partitions_in_request)

    def _frames(self, broker: Broker, topic: str, requests: int, count: int) -> Iterator[Frame]:
        producer_id = -1
        if self.idempotent:
            with Client(broker.port) as client:
                producer_id = client.producer_id()
        batch = frames.make_batch(count, self.record_bytes, self.codec, producer_id)
        step = self.partitions_in_request
        made = [
            frames.produce(topic, range(first, first + step), batch, self.acks)
            for first in range(0, self.partitions, step)
        ]
        if self.idempotent:
            return _in_sequence(made[0], len(batch), count, requests)
        return itertools.islice(itertools.cycle(made), requests)


def _in_sequence(frame: bytearray, batch_bytes: int, count: int, requests: int) -> Iterator[Frame]:
    for number in range(requests):
        frames.stamp_sequence(frame, batch_bytes, number * count)
        yield frame


@dataclass(frozen=True)
class Fetch(Row):
    """Consumers that read a topic of `batches` batches in each partition from its start, `passes` times."""

    batches: int
    batch_bytes: int
    record_bytes: int
    codec: Codec = Codec.NONE
    partitions: int = 1
    consumers: int = 1
    passes: int = 1

    def steps(self, broker: Broker, share: float) -> Steps:
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        batch = frames.make_batch(count, self.record_bytes, self.codec)
        passes = max(round(self.passes * share / TURNS), 1)
        meter = Meter(broker)
        with temporary_topic(broker, self.partitions) as topic:
            fill(broker, topic, [batch], self.partitions, self.batches)
            for _ in range(TURNS):
                yield
                consumers = [
                    Consumer(
                        broker.port,
                        topic,
                        self.partitions,
                        self.batches * count,
                        batch_bytes=len(batch),
                        batch_records=count,
                        passes=passes,
                    )
                    for _ in range(self.consumers)
                ]
                meter.measure(partial(drive, consumers))
        return meter.cost_of("record", self.batches * count * self.partitions * self.consumers * passes * TURNS)


@dataclass(frozen=True)
class SmallRequests(Row):
    """One small request, again and again, about a topic that has a few records."""

    requests: int
    frame: Callable[[str], bytes]
    check: Callable[[str, int], Check]
    partitions: int = 1
    connections: int = 10
    in_flight: int = 1

    def steps(self, broker: Broker, share: float) -> Steps:
        each = int(self.requests * share) // self.connections // TURNS
        meter = Meter(broker)
        with temporary_topic(broker, self.partitions) as topic:
            frame, check = self.frame(topic), self.check(topic, self.partitions)
            for _ in range(TURNS):
                yield
                exchanges = [
                    Requests(broker.port, itertools.repeat(frame, each), self.in_flight, check)
                    for _ in range(self.connections)
                ]
                meter.measure(partial(drive, exchanges))
        return meter.cost_of("request", each * TURNS * self.connections)


@dataclass(frozen=True)
class EndToEnd(RowAtOnce):
    """One message at a time, acks=all, from a producer to a consumer whose Fetch waits."""

    messages: int
    record_bytes: int = 100

    def run(self, broker: Broker, share: float) -> Figures:
        messages = int(self.messages * share)
        with temporary_topic(broker) as topic:
            frame = frames.produce(topic, [0], frames.make_batch(1, self.record_bytes), ACKS_ALL)
            cpu_s = broker.cpu_s()
            latencies_s = end_to_end(broker.port, topic, frame, messages)
            cpu_s = broker.cpu_s() - cpu_s
        return {"cpu_us_per_message": cpu_s / messages * 1e6, **percentiles(latencies_s)}


@dataclass(frozen=True)
class JavaEndToEnd(RowAtOnce):
    """Kafka's `EndToEndLatency`; its percentiles are whole milliseconds, so only the average is told."""

    messages: int
    record_bytes: int = 100

    def run(self, broker: Broker, share: float) -> Figures:
        messages = int(self.messages * share)
        with temporary_topic(broker) as topic:
            cpu_s = broker.cpu_s()
            average_ms, *_ = tools.java_end_to_end(broker.address, topic, messages, self.record_bytes)
            cpu_s = broker.cpu_s() - cpu_s
        return {"cpu_us_per_message": cpu_s / messages * 1e6, "average_ms": average_ms}


@dataclass(frozen=True)
class ClientProduce(RowAtOnce):
    """A real producer: Kafka's `ProducerPerformance`, or librdkafka's."""

    records: int
    record_bytes: int
    properties: tuple[str, ...]
    partitions: int = 1
    java: bool = True

    def run(self, broker: Broker, share: float) -> Figures:
        records = int(self.records * share)
        with temporary_topic(broker, self.partitions) as topic:
            cpu_s = broker.cpu_s()
            if self.java:
                per_s = tools.java_produce(broker.address, topic, records, self.record_bytes, self.properties)
            else:
                properties = dict(one.split("=") for one in self.properties)
                value = frames.text(self.record_bytes)
                per_s = tools.librdkafka_produce(broker.address, topic, records, value, properties)
            cpu_s = broker.cpu_s() - cpu_s
        return {"cpu_us_per_record": cpu_s / records * 1e6, "records_per_s": per_s}


@dataclass(frozen=True)
class ClientConsume(Row):
    """A real consumer, in a group, that reads a topic from its start: Kafka's `ConsumerPerformance`, or librdkafka's.

    It does so `turns` times, in a new group each time: once where each would be a new JVM, which gets warm.
    """

    batches: int
    batch_bytes: int
    record_bytes: int
    partitions: int = 1
    turns: int = 1
    java: bool = True

    def steps(self, broker: Broker, share: float) -> Steps:
        batches = max(int(self.batches * share), 1)
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        batch = frames.make_batch(count, self.record_bytes)
        records = batches * self.partitions * count
        meter = Meter(broker)
        with temporary_topic(broker, self.partitions) as topic:
            fill(broker, topic, [batch], self.partitions, batches)
            for _ in range(self.turns):
                yield
                meter.measure(lambda: records / self.consume(broker.address, topic, records))
        return meter.cost_of("record", records * self.turns)

    def consume(self, address: str, topic: str, records: int) -> float:
        """Read a topic of so many records; records/s."""
        consume = tools.java_consume if self.java else tools.librdkafka_consume
        return consume(address, topic, records)


@dataclass(frozen=True)
class Start(RowAtOnce):
    """A second broker of the kind: its start, its memory then, and with idle connections."""

    connections: int = 1000

    def run(self, broker: Broker, share: float) -> Figures:  # noqa: ARG002 - there is nothing to have less of
        with tempfile.TemporaryDirectory(prefix="odradek-benchmark-") as folder:
            started = broker.another(Path(folder), {})
            try:
                memory_mb = started.memory_mb()
                with ExitStack() as connections:
                    for _ in range(self.connections):
                        connections.enter_context(Client(started.port)).metadata()
                    idle_mb = started.memory_mb()
            finally:
                started.stop()
        return {"start_s": started.start_s, "memory_mb": memory_mb, "memory_connections_mb": idle_mb}


@dataclass(frozen=True)
class ManyPartitions(RowAtOnce):
    """A broker of its own with many partitions, each with one batch: made, stopped, started, killed, started again."""

    partitions: int
    topics: int = 10
    batch_bytes: int = 5000
    record_bytes: int = 100

    def run(self, broker: Broker, share: float) -> Figures:  # noqa: ARG002 - fewer would be another row
        with tempfile.TemporaryDirectory(prefix="odradek-benchmark-") as folder:
            started = broker.another(Path(folder), {})
            try:
                create_s = self._fill(started)
                memory_mb = started.memory_mb()
                stop_s = _seconds(started.stop)
                started = broker.another(Path(folder), {})
                clean_start_s = started.start_s
                started.kill()
                started = broker.another(Path(folder), {})
                crash_start_s = started.start_s
            finally:
                started.stop()
        return {
            "create_s": create_s,
            "memory_mb": memory_mb,
            "stop_s": stop_s,
            "clean_start_s": clean_start_s,
            "crash_start_s": crash_start_s,
        }

    def _fill(self, broker: Broker) -> float:
        """Make the partitions and write to them; how long the first took."""
        each = self.partitions // self.topics
        names = [f"benchmark-{number:06}" for number in range(self.topics)]
        with Client(broker.port, MANY_TIMEOUT_S) as client:
            create_s = _seconds(lambda: [client.create_topic(name, each) for name in names])
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        batch = frames.make_batch(count, self.record_bytes)
        for name in names:
            made = [frames.produce(name, range(first, first + 100), batch, 1) for first in range(0, each, 100)]
            drive([Requests(broker.port, iter(made), 2, produce_check(name))])
        return create_s


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@dataclass(frozen=True)
class Memory(RowAtOnce):
    """The memory of the broker that had all the load so far."""

    def run(self, broker: Broker, share: float) -> Figures:  # noqa: ARG002 - there is nothing to have less of
        return {"memory_mb": broker.memory_mb()}
