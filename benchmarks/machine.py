"""The machine that is measured on: what it is, and how much of it others use meanwhile."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from harness.versions import KAFKA_4, KFAKE

CLOCK_TICK_S = 1 / os.sysconf("SC_CLK_TCK")

_IDLE, _IOWAIT, _GUEST = 3, 4, 8
"""Where the times of no work stand in the first line of /proc/stat, and those that are told twice."""

_PARENT, _TIMES = 1, slice(11, 15)
"""Where /proc/PID/stat tells a process's parent and CPU times, behind its name; those of what it waited for as well."""


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


def process_stats() -> Iterator[tuple[int, list[str]]]:
    """The id of each process of the machine, and the fields behind the name in its /proc/PID/stat."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                yield int(entry), Path("/proc", entry, "stat").read_text().rpartition(") ")[2].split()


class Others:
    """What other processes took of the machine's CPU time since this was made: neither this one nor what it started."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._before_s = _others_s()

    def share(self) -> float:
        """Between 0 and 1, of all CPUs; what the host of a virtual machine took away is part of it."""
        available_s = (time.monotonic() - self._started) * (os.cpu_count() or 1)
        return max(_others_s() - self._before_s, 0.0) / available_s


def _others_s() -> float:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    worked = sum(int(field) for at, field in enumerate(fields[:_GUEST]) if at not in {_IDLE, _IOWAIT})
    return (worked - _own_ticks()) * CLOCK_TICK_S


def _own_ticks() -> int:
    """What this process has taken, and all that it started: the brokers, and clients that are programs."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for process, stat in process_stats():
        parents[process] = int(stat[_PARENT])
        ticks[process] = sum(int(field) for field in stat[_TIMES])
    return sum(ticks[process] for process in parents if _is_below(process, parents))


def _is_below(process: int, parents: dict[int, int]) -> bool:
    """Whether this process is the one or has started it, or what started it, and so on."""
    while process in parents and process != os.getpid():
        process = parents[process]
    return process == os.getpid()
