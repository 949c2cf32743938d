"""`odradek` that is killed at one of its writes to logs: dying.py NUMBER WRITTEN_BYTES ARGUMENT...

The writes are counted from 1, from SIGUSR1 on, which is answered by "armed" on stderr. Of the one that it dies at, the
first WRITTEN_BYTES bytes are written; stderr names the log's folder.
"""

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from odradek.cli import main
from odradek.log.files import Files


def die_at(number: int, written_bytes: int) -> None:
    """Have this process killed at its `number`th write to a log behind SIGUSR1."""
    write = Files.pwrite
    numbers: Iterator[int] = itertools.repeat(0)

    def arm(*_: object) -> None:
        nonlocal numbers
        numbers = itertools.count(1)
        os.write(2, b"armed\n")

    def write_or_die(fd: int, data: memoryview, position: int) -> int:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if path.suffix == ".log" and next(numbers) == number:
            write(fd, memoryview(data)[:written_bytes], position)
            os.write(2, f"killed: {path.parent.name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return write(fd, data, position)

    Files.pwrite = staticmethod(write_or_die)  # type: ignore[assignment] # the system's own, with fewer forms
    signal.signal(signal.SIGUSR1, arm)


if __name__ == "__main__":
    die_at(int(sys.argv[1]), int(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
