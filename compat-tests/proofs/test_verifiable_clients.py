"""Kafka's verifiable clients under rebalances and kills of the broker: nothing acknowledged is lost, nothing doubled.

`--broker-kills N` says how often members join, leave and are killed, and the broker with them.
"""

from __future__ import annotations

import itertools
import random
import time
from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of, python_driver
from harness.odradek import Odradek
from harness.verifiable import (
    Verifiable,
    acknowledged,
    begun_too_early,
    consumed,
    verifiable_member,
    verifiable_producer,
)
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.agent import Agent

PARTITIONS = 6
PER_SECOND = 300
MOST_BETWEEN = 600
WAIT_S = 180
LOOK_S = 0.1

FORGETFUL = ("consumer", KAFKA_3)
"""A preview of the protocol, whose member may begin a partition anew that it gets while it looks for where others begin
(KAFKA-17066, KAFKA-17674, both mended in 4.0): it consumes then what has been consumed, but leaves nothing out.
"""

LAST_SEND = "Producer closed while send in progress"
"""What a record ends with that the producer had not yet sent when it was asked to end."""

pytestmark = pytest.mark.timeout(7200)

# A member that is killed is missed after as long with either protocol; by default a consumer group waits 45 s.
TIMES = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odradek]:
    running = Odradek(tmp_path_factory.mktemp("broker"), overrides=TIMES)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def kafka(broker: Odradek, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    driver = python_driver("confluent-kafka", "confluent-kafka")
    with client_of(driver, broker, tmp_path_factory.mktemp("confluent-kafka")) as agent:
        yield agent


class Group:
    """The members, those that are gone too, and who is to join, leave or be killed next."""

    def __init__(self, start: Callable[[str], Verifiable], chance: random.Random) -> None:
        self.all: list[Verifiable] = []
        self._start = start
        self._chance = chance
        self._running: list[Verifiable] = []
        self._numbers = itertools.count()

    def join(self) -> None:
        member = self._start(f"member-{next(self._numbers)}")
        self.all.append(member)
        self._running.append(member)

    def kill_one(self) -> None:
        self._running.pop(self._chance.randrange(len(self._running))).kill()
        self.join()

    def leave_one(self) -> None:
        self._running.pop(self._chance.randrange(len(self._running))).leave()

    def stop(self) -> None:
        for member in self._running:
            member.kill()

    def wait_for(self, holds: Callable[[dict[tuple[int, int], str]], bool]) -> None:
        """Wait until what was consumed is enough."""
        deadline = time.monotonic() + WAIT_S
        while True:
            for member in self.all:
                member.update()
            found = consumed(self.all)
            if holds(found):
                return
            assert time.monotonic() < deadline, f"{len(found)} records consumed"
            time.sleep(LOOK_S)


@pytest.mark.parametrize("release", [KAFKA_4, KAFKA_3])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_is_acknowledged_is_consumed(
    request: pytest.FixtureRequest,
    broker: Odradek,
    kafka: Agent,
    name: str,
    tmp_path: Path,
    release: str,
    protocol: str,
) -> None:
    seed = request.config.getoption("kill_seed")
    print(f"--kill-seed {seed}")
    chance = random.Random(seed)
    kafka.call("create_topic", topic=name, partitions=PARTITIONS)
    group = Group(
        lambda member: verifiable_member(release, broker.bootstrap, name, name, protocol, tmp_path, member), chance
    )
    producer = verifiable_producer(release, broker.bootstrap, name, PER_SECOND, tmp_path)
    try:
        for _ in range(2):
            group.join()
        for _ in range(request.config.getoption("broker_kills")):
            for happen in chance.sample([broker.restart_abruptly, group.join, group.leave_one, group.kill_one], 4):
                wanted = len(consumed(group.all)) + chance.randint(1, MOST_BETWEEN)
                group.wait_for(lambda found, wanted=wanted: len(found) >= wanted)
                happen()
        producer.leave()
        sent = acknowledged(producer)
        group.wait_for(lambda found: len(found) >= len(sent))
    finally:
        producer.kill()
        group.stop()
    assert {event["message"] for event in producer.told("producer_send_error")} <= {LAST_SEND}
    assert consumed(group.all) == sent
    log = {(record["partition"], record["offset"]): record["value"] for record in kafka.call("read_all", topic=name)}
    assert log == sent
    assert sorted(map(int, sent.values())) == list(range(len(sent)))
    assert begun_too_early(group.all, forgetful=(protocol, release) == FORGETFUL) == []
