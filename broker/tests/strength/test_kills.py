"""kill -9 at random moments, several times in a row, while idempotent producers write and retry.

Invariant: behind the last restart each producer's acknowledged records, and nothing else, are in its partition,
exactly once and in order.
"""

import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.meters import wait_until
from support.process import broker_process
from support.records import read_values
from support.wire import WireClient
from support.workers import Producer

from odradek_protocol.records.compression import Codec

KILLS = 5
SETTINGS = {"log.segment.bytes": str(1 << 20)}
PADDING = b"-" * 800
"""Makes the logs of several segments."""


@pytest.mark.parametrize("seed", [1, 2])
def test_acknowledged_records_survive_kills_exactly_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    producers = [
        Producer("t", 0, padding=PADDING),
        Producer("t", 1, acks=1, padding=PADDING),
        Producer("t", 2, codec=Codec.GZIP, padding=PADDING),
        Producer("t", 3, acks=1, codec=Codec.LZ4, batch_size=1),
    ]

    def progress() -> int:
        for producer in producers:
            if producer.failure is not None:
                raise producer.failure
        return sum(producer.steps for producer in producers)

    with ExitStack() as stack:
        broker = stack.enter_context(broker_process(tmp_path, SETTINGS))
        with WireClient(broker.port) as client:
            client.create_topic("t", partitions=len(producers))
        for _ in range(KILLS):
            for producer in producers:
                producer.start(broker.port)
            wanted = progress() + chance.randrange(10, 1500)
            wait_until(lambda wanted=wanted: progress() >= wanted, "the producers write")
            broker.kill()
            for producer in producers:
                producer.wait()
            broker = stack.enter_context(broker_process(tmp_path, SETTINGS))
        for producer in producers:
            producer.start(broker.port)
            producer.stop()
            assert producer.acknowledged == producer.sent
        with WireClient(broker.port) as client:
            for producer in producers:
                expected = [producer.value(offset) for offset in range(producer.acknowledged_records)]
                assert read_values(client, "t", index=producer.index) == expected
        assert "Traceback" not in broker.errors()
