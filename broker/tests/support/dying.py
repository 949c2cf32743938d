"""`odradek` that is killed at one of its calls to the system: dying.py CALL NUMBER WRITTEN_BYTES ARGUMENT...

CALL is one of `Files`: "pwrite" for writes to logs, "rename", "mkdir". The calls are counted from 1, from SIGUSR1 on,
which is answered by "armed" on stderr; see `steps`. Of a write that it dies at, the first WRITTEN_BYTES bytes are
written, of any other call nothing is done. stderr names the log's folder, or what was to be renamed or made.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from odradek.cli import main
from odradek.log.files import Files


def _die_at(call: str, number: int, written_bytes: int) -> None:
    """Have this process killed at its `number`th call behind SIGUSR1."""
    original: Callable[..., Any] = getattr(Files, call)
    numbers: Iterator[int] = itertools.repeat(0)

    def count(*_: object) -> None:
        nonlocal numbers
        numbers = itertools.count(1)
        os.write(2, b"armed\n")

    def write_or_die(fd: int, data: memoryview, position: int) -> int:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if path.suffix == ".log" and next(numbers) == number:
            original(fd, memoryview(data)[:written_bytes], position)
            _die(path.parent)
        written: int = original(fd, data, position)
        return written

    def call_or_die(path: str, *more: Any) -> Any:
        if next(numbers) == number:
            _die(Path(path))
        return original(path, *more)

    setattr(Files, call, staticmethod(write_or_die if call == "pwrite" else call_or_die))
    signal.signal(signal.SIGUSR1, count)


def _die(path: Path) -> None:
    os.write(2, f"killed: {path.name}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _die_at(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    sys.exit(main(sys.argv[4:]))
