"""Child processes: started with their output in files, ended for certain."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TAIL_BYTES = 4000


def is_readable(stream: IO[bytes], within_s: float) -> bool:
    """Wait up to `within_s` seconds for something to read, be it the end; `poll` takes any number of open files."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


class Child:
    """A child process in a session of its own, whose stdout and stderr go to `<folder>/<name>.out` and `.err`."""

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.out = folder / f"{name}.out"
        self.err = folder / f"{name}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the process, which is that of its session too."""
        return self._process.pid

    def ended(self, within_s: float) -> bool:
        """Wait up to `within_s` seconds; tell whether the process has ended."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        self._process.send_signal(number)

    def terminate(self, within_s: float) -> int:
        """Ask the process to end by SIGTERM and return its exit code; kill it and raise when it does not."""
        self._process.terminate()
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """End the process and what it started by SIGKILL."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def tail(self) -> str:
        """Return the last output, for messages."""
        return "\n".join(
            f"--- {path.name} ---\n{path.read_bytes()[-_TAIL_BYTES:].decode(errors='replace')}"
            for path in (self.out, self.err)
        )
