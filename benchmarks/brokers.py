"""The brokers that are measured: how each is started, and what it costs."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from ctypes import CDLL, byref, c_int
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, run
from sys import executable

from harness.cache import require_program
from harness.golang import go_program
from harness.jars import jars
from harness.process import Child
from harness.target import free_port
from harness.versions import KAFKA_4, KFAKE

from benchmarks.client import Client
from benchmarks.machine import process_stats

START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 300
PROBE_EVERY_S = 0.002
"""How often a starting broker is asked whether it serves: what a start time is exact to."""

KAFKA_JVM = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""What `kafka-server-start.sh` gives to Java where nothing is set."""

TREE = Path(__file__).parent.parent
"""The sources that these benchmarks belong to."""

QUICKLY = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "100"}
"""How soon each looks for a log to clean, so that a row about that need not wait for it, and deletes the files of what
is deleted: a minute later, as by default, it would be another row that pays for a gigabyte.
"""

_SESSION, _RESIDENT = 3, 21
"""Where /proc/PID/stat tells them, behind the name."""

DELETE_TIMEOUT_S = 60

_libc = CDLL(None)


Settings = Mapping[str, str]

IGNORED_TOPIC_SETTINGS = {"kfake": {"flush.messages", "min.cleanable.dirty.ratio"}}
"""What a broker takes and does not heed: a row that is about it says nothing of that broker."""


class Broker:
    """A running broker on 127.0.0.1."""

    def __init__(self, name: str, port: int, child: Child, start_s: float, data: Path, start: "Start") -> None:
        self.name = name
        self.data = data
        self.port = port
        self.start_s = start_s
        """From the start of the process to the first answer to Metadata."""
        self.another = start
        """Starts one more of the kind."""
        self._child = child

    def __repr__(self) -> str:
        return f"{self.name} on port {self.port}, pid {self._child.pid}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """User and system CPU time of all its processes since their start.

        /proc tells the same in clock ticks of 10 ms, which are some percent of a short load.
        """
        return sum(_cpu_clock_s(pid) for pid, _ in self._processes())

    def memory_mb(self) -> float:
        """Resident memory of all its processes, in 10^6 bytes."""
        pages = sum(int(stat[_RESIDENT]) for _, stat in self._processes())
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def wait_until_deleted(self, topic: str) -> None:
        """Wait until the files of a deleted topic are gone, from the disk also. Raises TimeoutError."""
        deadline = time.monotonic() + DELETE_TIMEOUT_S
        while any(entry.startswith(f"{topic}-") for entry in os.listdir(self.data)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self} has files of {topic}, {DELETE_TIMEOUT_S} s after it was deleted")
            time.sleep(0.01)
        os.sync()

    def _processes(self) -> Iterator[tuple[int, list[str]]]:
        """The id, and the fields behind the name in /proc/PID/stat, of each process in the broker's session."""
        return ((process, stat) for process, stat in process_stats() if int(stat[_SESSION]) == self._child.pid)

    def kill(self) -> None:
        """End the broker as a crash would."""
        self._child.kill()

    def stop(self) -> None:
        """End the broker."""
        if not self._child.ended(0):
            self._child.terminate(STOP_TIMEOUT_S)


Start = Callable[[Path, Settings], Broker]
"""Starts a broker that keeps everything in a folder, with settings beside its defaults."""


def start_odradek(folder: Path, settings: Settings, *, tree: Path = TREE, name: str = "odradek") -> Broker:
    """Odradek from the sources in `tree`."""
    port = free_port()
    overrides = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "data"),
        **QUICKLY,
        **settings,
    }
    command: list[str | Path] = [executable, "-m", "odradek", "serve"]
    for key, value in overrides.items():
        command += ["--override", f"{key}={value}"]
    # An installed package has its bytecode beside it; so have these sources from their second start on.
    environment = {"PYTHONPATH": f"{tree / 'broker'}{os.pathsep}{tree / 'protocol'}", "PYTHONDONTWRITEBYTECODE": ""}
    return _serve(name, command, port, folder, partial(start_odradek, tree=tree, name=name), environment)


def start_kafka(folder: Path, settings: Settings) -> Broker:
    """Kafka in KRaft mode, broker and controller in one process, with a heap of 1 GB."""
    port, controller_port = free_port(), free_port()
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "log.dirs": str(folder / "data"),
        **QUICKLY,
        # One node can hold one replica.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # A wait that is no work; Odradek's defaults for a single node leave it out too.
        "group.initial.rebalance.delay.ms": "0",
        **settings,
    }
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    java = [require_program("java"), *KAFKA_JVM, "-cp", f"{jars(f'kafka-{KAFKA_4}')}/*"]
    cluster_id = "b2RyYWRlay1iZW5jaG1hcg"
    run(
        [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster_id, "-c", path],
        check=True,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    return _serve("kafka", [*java, "kafka.Kafka", path], port, folder, start_kafka)


def start_kfake(folder: Path, settings: Settings) -> Broker:  # noqa: ARG001 - it has none of those that rows set
    """The broker in Go that franz-go's tests run against, with its files on the disk."""
    program = go_program(TREE / "benchmarks" / "kfake", KFAKE)
    port = free_port()
    return _serve("kfake", [program, str(port), folder / "data"], port, folder, start_kfake)


BROKERS: dict[str, Start] = {"odradek": start_odradek, "kafka": start_kafka, "kfake": start_kfake}


def _cpu_clock_s(pid: int) -> float:
    """What the CPU clock of a process shows; 0 when it has ended."""
    clock = c_int()
    if _libc.clock_getcpuclockid(pid, byref(clock)):
        return 0.0
    try:
        return time.clock_gettime(clock.value)
    except OSError:
        return 0.0


def _serve(
    name: str,
    command: list[str | Path],
    port: int,
    folder: Path,
    start: Start,
    environment: dict[str, str] | None = None,
) -> Broker:
    started = time.perf_counter()
    child = Child(name, command, folder, environment)
    try:
        _wait_until_serving(child, port, started + START_TIMEOUT_S)
    except BaseException:
        child.kill()
        raise
    return Broker(name, port, child, time.perf_counter() - started, folder / "data", start)


def _wait_until_serving(child: Child, port: int, deadline: float) -> None:
    while not _serves(port):
        if child.ended(PROBE_EVERY_S):
            raise RuntimeError(f"{child.name} ended while starting\n{child.tail()}")
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{child.name} does not serve after {START_TIMEOUT_S} s\n{child.tail()}")


def _serves(port: int) -> bool:
    try:
        with Client(port) as client:
            return len(client.metadata().brokers) > 0
    except OSError:
        return False
