"""A trial of exactly-once: an application is fed while it, the broker and a reader are killed at random moments.

All through, a consumer with `read_committed` looks on, which nobody kills. An application that brings nothing to the
output for `STALL_S` is asked where it stands and started anew, as the kills would do sooner or later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness.applications import PARTITIONS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from harness.agent import Agent
    from harness.applications import Application, Record
    from harness.target import Target

NUMBERS_IN_A_ROUND = 600
STALL_S = 60
STALLS = 3
_MOST_TAKEN = 1_000
_LONGEST_PAUSE_S = 0.5
_END = "end"


class StalledError(Exception):
    """The application has brought nothing to its output, however often it was started anew."""


class Trial:
    """Counts what is fed, what is committed, and who was killed."""

    def __init__(self, application: Application, target: Target, kafka: Agent, chance: random.Random) -> None:
        self.kills: dict[str, int] = {}
        self.stalls = 0
        self._application = application
        self._target = target
        self._kafka = kafka
        self._chance = chance
        self._fed = 0
        self._seen: list[Record] = []
        outputs = [[application.output, index] for index in range(PARTITIONS)]
        kafka.call("open_consumer", name="watch", partitions=outputs, isolation="read_committed")

    def round(self, others: dict[str, Callable[[], None]]) -> None:
        """Feed, then kill the broker, one instance and the others, each somewhere on the way, in any order."""
        self._application.feed(range(self._fed, self._fed + NUMBERS_IN_A_ROUND))
        self._fed += NUMBERS_IN_A_ROUND
        instance = self._chance.randrange(self._application.INSTANCES)
        kills = {
            "broker": self._target.restart_abruptly,
            "instance": lambda: self._application.kill(instance),
            **others,
        }
        for victim in self._chance.sample(sorted(kills), len(kills)):
            left = self._fed - len(self._seen)
            self._wait_for(len(self._seen) + self._chance.randint(0, left // len(kills)))
            time.sleep(self._chance.uniform(0, _LONGEST_PAUSE_S))
            kills[victim]()
            self.kills[victim] = self.kills.get(victim, 0) + 1

    def finish(self) -> list[Record]:
        """Wait until all is processed, end each partition with a last record, and return what was seen in all."""
        self._wait_for(self._fed)
        self._application.stop()
        last = [{"partition": index, "value": _END} for index in range(PARTITIONS)]
        self._kafka.call("produce", topic=self._application.output, records=last)
        self._wait_for(len(self._seen) + PARTITIONS, keep_running=False)
        return sorted(self._seen, key=lambda record: (record["partition"], record["offset"]))

    def check(self, read: list[Record]) -> None:
        """Check what a reader of committed records has found: each number once, and nothing behind the last records."""
        output = [record for record in read if record["value"] != _END]
        assert len(read) - len(output) == PARTITIONS
        assert sorted(self._application.numbers_in(output)) == list(range(self._fed))

    def _wait_for(self, count: int, *, keep_running: bool = True) -> None:
        """Wait until so many records are committed, and start the instances that have ended meanwhile."""
        moved_s = time.monotonic()
        while len(self._seen) < count:
            if keep_running:
                self._application.start()
            taken = self._kafka.call("take", name="watch", at_most=_MOST_TAKEN)
            self._seen += taken
            if taken:
                moved_s = time.monotonic()
            elif time.monotonic() > moved_s + STALL_S:
                self.stalls += 1
                self._application.dump_and_kill()
                if self.stalls > STALLS:
                    raise StalledError(f"{len(self._seen)} of {self._fed}, {self.kills}")
                moved_s = time.monotonic()
