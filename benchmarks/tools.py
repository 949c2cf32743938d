"""Kafka's own performance tools, each in a JVM of its own, and librdkafka in this process."""

import os
import re
import subprocess
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer
from harness.cache import require_program
from harness.jars import jars
from harness.versions import KAFKA_4

QUEUE_BACKOFF_MS = 10
"""How long librdkafka pauses when its queue is full: by default a second, as long as this load takes."""

TIMEOUT_S = 60
JVM = ("-Xmx512m",)

_SENT = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)
_LATENCIES = re.compile(r"50th = ([\d.]+), 99th = ([\d.]+), 99.9th = ([\d.]+)")
_AVERAGE = re.compile(r"Avg latency: ([\d.]+) ms")


def _java(tool: str, *arguments: str) -> str:
    command = [require_program("java"), *JVM, "-cp", f"{jars(f'kafka-{KAFKA_4}')}{os.sep}*"]
    command += [f"org.apache.kafka.tools.{tool}", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if ran.returncode:
        raise RuntimeError(f"{tool} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def java_produce(address: str, topic: str, records: int, record_bytes: int, properties: Sequence[str]) -> float:
    """`ProducerPerformance` as fast as it can; records/s by its own clock."""
    out = _java(
        "ProducerPerformance",
        *("--bootstrap-server", address, "--topic", topic, "--throughput", "-1"),
        *("--num-records", str(records), "--record-size", str(record_bytes), "--command-property", *properties),
    )
    found = _SENT.findall(out)
    if not found or int(found[-1][0]) != records:
        raise RuntimeError(f"ProducerPerformance sent something else than {records} records\n{out}")
    return float(found[-1][1])


def java_consume(address: str, topic: str, records: int) -> float:
    """`ConsumerPerformance` in a new group; records/s by its own clock, from the first Fetch on."""
    out = _java(
        "ConsumerPerformance",
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(records), "--hide-header"),
    )
    fields = out.strip().splitlines()[-1].split(", ")
    if int(fields[4]) < records:
        raise RuntimeError(f"ConsumerPerformance read {fields[4]} of {records} records\n{out}")
    return float(fields[9])


def java_end_to_end(address: str, topic: str, messages: int, message_bytes: int) -> tuple[float, float, float, float]:
    """`EndToEndLatency` with acks=all; average, p50, p99 and p99.9 in ms, of which all but the first are whole ms."""
    out = _java("EndToEndLatency", address, topic, str(messages), "all", str(message_bytes))
    average, percentiles = _AVERAGE.search(out), _LATENCIES.search(out)
    if average is None or percentiles is None:
        raise RuntimeError(f"EndToEndLatency says something else than expected\n{out}")
    return float(average[1]), float(percentiles[1]), float(percentiles[2]), float(percentiles[3])


def librdkafka_produce(address: str, topic: str, records: int, value: bytes, properties: dict[str, str]) -> float:
    """librdkafka's producer as fast as it can; records/s."""
    producer = Producer({"bootstrap.servers": address, **properties})
    started = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(TIMEOUT_S)
    if left:
        raise TimeoutError(f"librdkafka has {left} records that were not acknowledged")
    return records / (time.perf_counter() - started)


def librdkafka_consume(address: str, topic: str, records: int) -> float:
    """librdkafka's consumer in a new group; records/s from the first ones on."""
    group = f"benchmark-{time.monotonic_ns()}"
    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "fetch.queue.backoff.ms": QUEUE_BACKOFF_MS})
    deadline = time.monotonic() + TIMEOUT_S
    first_at = 0.0
    first = read = 0
    try:
        consumer.subscribe([topic])
        while read < records:
            got = consumer.consume(10_000, 0.1)
            if got and not first:
                first, first_at = len(got), time.perf_counter()
            read += sum(message.error() is None for message in got)
            if time.monotonic() > deadline:
                raise TimeoutError(f"librdkafka read {read} of {records} records in {TIMEOUT_S} s")
        return (read - first) / (time.perf_counter() - first_at)
    finally:
        consumer.close()
