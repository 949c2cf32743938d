"""The broker as a process of its own: started by its command line, stopped or killed from outside."""

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_S = 30.0
STOP_S = 30.0

ODRADEK = ("-m", "odradek")
"""What the interpreter is told to run."""


class BrokerProcess:
    """A running `odradek serve` on a free port."""

    def __init__(
        self,
        folder: Path,
        overrides: Mapping[str, str] | None = None,
        properties: Path | None = None,
        program: Sequence[str] = ODRADEK,
    ) -> None:
        given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder), **(overrides or {})}
        options = [part for key, value in given.items() for part in ("--override", f"{key}={value}")]
        files = [str(properties)] if properties is not None else []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, *program, "serve", *files, *options], stdout=subprocess.PIPE, stderr=self._errors
        )
        assert self._process.stdout is not None
        self.ready_line = self._read_line()
        if not self.ready_line:
            self.kill()
            errors = self.errors()
            self.close()
            raise RuntimeError(f"the broker did not start: {errors}")
        self.port = int(re.fullmatch(r"odradek ready: 127\.0\.0\.1:(\d+)\n", self.ready_line)[1])  # type: ignore[index]

    def _read_line(self) -> str:
        """The first line on stdout; "" when the process ends without one, or takes longer than `START_S`."""
        assert self._process.stdout is not None
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        deadline, line = time.monotonic() + START_S, b""
        while not line.endswith(b"\n"):
            readable = poll.poll(max(deadline - time.monotonic(), 0) * 1000)
            data = os.read(self._process.stdout.fileno(), 4096) if readable else b""
            if not data:
                return ""
            line += data
        return line.decode()

    @property
    def pid(self) -> int:
        return self._process.pid

    def errors(self) -> str:
        """What the process wrote to stderr so far."""
        return os.pread(self._errors.fileno(), 1 << 20, 0).decode()

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status."""
        self._process.send_signal(signal_number)
        return self._end()

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._end()

    def _end(self) -> int:
        try:
            return self._process.wait(STOP_S)
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Have it gone, however it ended."""
        self.kill()
        self._errors.close()


@contextmanager
def broker_process(
    folder: Path,
    overrides: Mapping[str, str] | None = None,
    properties: Path | None = None,
    program: Sequence[str] = ODRADEK,
) -> Iterator[BrokerProcess]:
    """A broker process that is gone at the end, whatever happens."""
    process = BrokerProcess(folder, overrides, properties, program)
    try:
        yield process
    finally:
        process.close()


def run_to_end(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with arguments that let it end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "odradek", *arguments], capture_output=True, text=True, timeout=START_S, check=False
    )
