"""What a broker process holds, as the system sees it; and waiting for something to become true."""

import os
import time
from collections.abc import Callable
from pathlib import Path

WAIT_S = 20.0
"""How long to wait for what must happen: far more than it takes, so that a slow machine fails no test."""

MIB = 1 << 20


def memory_bytes(pid: int) -> int:
    """The memory of a process that no file backs."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no RssAnon")


def open_files(pid: int) -> list[str]:
    """What the file descriptors of a process point at; sockets are "socket:[...]"."""
    found = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except FileNotFoundError:
            continue
    return found


def socket_count(pid: int) -> int:
    """How many sockets a process has."""
    return sum(name.startswith("socket:") for name in open_files(pid))


def wait_until(condition: Callable[[], bool], what: str, wait_s: float = WAIT_S) -> None:
    """Look again and again until `condition` holds. TimeoutError, which says `what`, after `wait_s`."""
    deadline = time.monotonic() + wait_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.005)
