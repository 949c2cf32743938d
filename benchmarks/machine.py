"""The machine that is measured on: what it is, and how much of it others use meanwhile."""

import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from harness.versions import KAFKA_4, KFAKE

from benchmarks.brokers import Broker

CLOCK_TICK_S = 1 / os.sysconf("SC_CLK_TCK")

_IDLE, _IOWAIT, _GUEST = 3, 4, 8
"""Where the times of no work stand in the first line of /proc/stat, and those that are told twice."""


def describe_machine() -> dict[str, str]:
    """What a reader has to know of where the figures come from."""
    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    return {
        "machine": f"{os.cpu_count()} x {cpu[0] if cpu else platform.machine()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "trio": version("trio"),
        "odradek": version("odradek"),
        "kafka": KAFKA_4,
        "kfake": next(iter(KFAKE.values())),
    }


class Others:
    """What other processes took of the machine's CPU time since this was made: neither these brokers nor the load."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers
        self._started = time.monotonic()
        self._before_s = self._others_s()

    def _others_s(self) -> float:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        worked = sum(int(field) for at, field in enumerate(fields[:_GUEST]) if at not in {_IDLE, _IOWAIT})
        own_s = sum(os.times()[:4]) + sum(broker.cpu_s() for broker in self._brokers)
        return worked * CLOCK_TICK_S - own_s

    def share(self) -> float:
        """Between 0 and 1, of all CPUs; what the host of a virtual machine took away is part of it."""
        available_s = (time.monotonic() - self._started) * (os.cpu_count() or 1)
        return max(self._others_s() - self._before_s, 0.0) / available_s
