"""What a test sees of the broker that it runs against."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.cache import unavailable

if TYPE_CHECKING:
    from harness.process import Child


# With the defaults, groups whose members learn of changes by heartbeats would settle slowly, and a killed member of a
# streams group would be waited for 45 seconds. Locks of records may be short enough to wait for their end.
QUICK_GROUPS: Final = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.initial.rebalance.delay.ms": "500",
}


class Target(ABC):
    """A running broker."""

    name: str
    bootstrap: str  # "host:port"

    @abstractmethod
    def log_folder(self) -> Path:
        """Return the folder with one sub-folder for each partition, or skip the test."""

    @abstractmethod
    def restart_abruptly(self) -> None:
        """End the broker as by a power cut of its process and start it again on the same port and data."""

    @abstractmethod
    def stop(self) -> None:
        """End the broker and check that it ended well."""


class External(Target):
    """A broker that somebody else runs (`--bootstrap HOST:PORT`)."""

    def __init__(self, bootstrap: str) -> None:
        self.name = "external"
        self.bootstrap = bootstrap

    def log_folder(self) -> Path:
        unavailable("the files of an external broker cannot be read")

    def restart_abruptly(self) -> None:
        unavailable("an external broker cannot be restarted")

    def stop(self) -> None:
        pass


def _ports_for_servers() -> range:
    """Those below the ports that the system gives to connections; Linux tells where they begin."""
    return range(10_000, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))


def free_port() -> int:
    """Return a TCP port that nobody listens on now.

    It is not one of those that the system gives to whoever asks for any, so that no connection has it when the broker
    comes to listen.
    """
    while True:
        port = secrets.choice(_ports_for_servers())
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until_serving(child: Child, port: int, within_s: float) -> None:
    """Return when the broker on 127.0.0.1:`port` answers ApiVersions.

    Raises RuntimeError when its process ends first, TimeoutError when it does not answer in time.
    """
    deadline = time.monotonic() + within_s
    while not _answers(port):
        if child.ended(0.1):
            raise RuntimeError(f"{child.name} ended while starting\n{child.tail()}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{child.name} is not serving after {within_s} s\n{child.tail()}")


def _answers(port: int) -> bool:
    request = struct.pack(">hhih", 18, 0, 1, -1)  # ApiVersions v0, correlation id 1, no client id
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (1, 0)
