"""Kafka's `VerifiableProducer` and `VerifiableConsumer`: processes that tell each thing they do as a line of JSON.

What they tell is judged by two rules. A record that was acknowledged is consumed. A member begins no partition before
an offset that was committed when it got the partition, so that nothing is consumed twice but what nobody had committed.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from harness.cache import require_program
from harness.jars import jars
from harness.process import Child

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_JVM: Final = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_STOP_TIMEOUT_S: Final = 120

# The producer's own default is to try nothing again.
_PRODUCER: Final = {"enable.idempotence": "true", "retries": "2147483647", "reconnect.backoff.max.ms": "500"}
_MEMBER: Final = {"reconnect.backoff.max.ms": "500", "metadata.max.age.ms": "5000"}
_CLASSIC_MEMBER: Final = {**_MEMBER, "heartbeat.interval.ms": "500"}

Event = dict[str, Any]
Place = tuple[int, int]


class Verifiable:
    """One such process, and what it has told so far, in order."""

    def __init__(
        self, release: str, main: str, arguments: Sequence[str], config: Mapping[str, str], folder: Path, name: str
    ) -> None:
        properties = folder / f"{name}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
        option = "--producer.config" if main == "VerifiableProducer" else "--consumer.config"
        java: list[str | Path] = [require_program("java"), *_JVM, "-cp", f"{jars(f'kafka-{release}')}/*"]
        tool = f"org.apache.kafka.tools.{main}"
        self.events: list[Event] = []
        self._child = Child(name, [*java, tool, *arguments, option, properties], folder)
        self._read_bytes = 0

    def update(self) -> None:
        """Read what it has told since the last time."""
        with self._child.out.open("rb") as out:
            out.seek(self._read_bytes)
            whole = out.read().rpartition(b"\n")[0]
        if whole:
            self._read_bytes += len(whole) + len(os.linesep)
            self.events += [json.loads(line) for line in whole.split(b"\n") if line.startswith(b"{")]

    def told(self, name: str) -> list[Event]:
        """Return the events of one kind."""
        return [event for event in self.events if event["name"] == name]

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._child.kill()
        self.update()

    def leave(self) -> None:
        """Ask it to end: a producer waits for what is in flight, a member leaves its group."""
        self._child.terminate(_STOP_TIMEOUT_S)
        self.update()


def verifiable_producer(release: str, bootstrap: str, topic: str, per_second: int, folder: Path) -> Verifiable:
    """Start an idempotent producer, which writes 0, 1, 2 and so on until it is asked to end."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--throughput", str(per_second)]
    return Verifiable(release, "VerifiableProducer", arguments, _PRODUCER, folder, "producer")


def verifiable_member(
    release: str, bootstrap: str, topic: str, group: str, protocol: str, folder: Path, name: str
) -> Verifiable:
    """Start a member of a group, which commits after each poll."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group, "--verbose"]
    if protocol == "consumer":
        arguments += ["--group-protocol", "consumer"]
        config = _MEMBER
    else:
        arguments += ["--session-timeout", "6000"]
        config = _CLASSIC_MEMBER
    return Verifiable(release, "VerifiableConsumer", arguments, config, folder, name)


def acknowledged(producer: Verifiable) -> dict[Place, str]:
    """Return the value of each record that was acknowledged, by partition and offset."""
    return {(event["partition"], event["offset"]): event["value"] for event in producer.told("producer_send_success")}


def consumed(members: Iterable[Verifiable]) -> dict[Place, str]:
    """Return the value of each record that a member has got."""
    return {
        (event["partition"], event["offset"]): event["value"]
        for member in members
        for event in member.told("record_data")
    }


def begun_too_early(members: Sequence[Verifiable], *, forgetful: bool = False) -> list[str]:
    """Name each time that a member began a partition before an offset that had been committed by then.

    Members that are `forgetful` may begin one anew.
    """
    commits = [
        (event["timestamp"], one["partition"], one["offset"])
        for member in members
        for event in member.told("offsets_committed")
        if event["success"]
        for one in event["offsets"]
    ]
    found = []
    for number, member in enumerate(members):
        assigned_ms: dict[int, int] = {}
        for event in member.events:
            if event["name"] == "partitions_assigned":
                assigned_ms.update({one["partition"]: event["timestamp"] for one in event["partitions"]})
            elif event["name"] == "record_data" and event["partition"] in assigned_ms:
                partition, first = event["partition"], event["offset"]
                since_ms = assigned_ms.pop(partition)
                committed = max((at for ms, index, at in commits if index == partition and ms < since_ms), default=0)
                if first < committed and not (forgetful and first == 0):
                    found.append(f"member {number} began {partition} at {first}, {committed} was committed")
    return found
