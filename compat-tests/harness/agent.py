"""A child process that holds one client library and does what the tests ask.

Its other end is a driver: a program in the language of the client, built on the loop that `clients/serving` has for it.

Requests and replies are JSON, one a line. Byte strings travel as Latin-1 text, so that every byte is one character.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.process import is_readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_STDERR_TAIL_BYTES = 4000


class ClientError(Exception):
    """The client library raised: `code` is Kafka's error code where the library tells one."""

    def __init__(self, kind: str, code: int | None, message: str) -> None:
        super().__init__(f"{kind} (code {code}): {message}")
        self.kind = kind
        self.code = code


@dataclass(frozen=True, slots=True)
class Driver:
    """How a driver is started: its command, to which the broker's address is added, and what its environment adds."""

    command: Sequence[str | Path]
    env: Mapping[str, str] = field(default_factory=dict)


class Agent:
    """Calls the operations of one driver. A call that does not answer in time ends the process; the next starts it."""

    def __init__(self, driver: Driver, bootstrap: str, folder: Path, env: Mapping[str, str]) -> None:
        self._command = [*driver.command, bootstrap]
        self._env = {**os.environ, **driver.env, **env}
        self._folder = folder
        self._stderr = folder / "driver.err"
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._ids = itertools.count()

    def call(self, operation: str, timeout_s: float = 90, **arguments: Any) -> Any:
        """Run one operation of the driver and return its result; ClientError when the client library raised."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        request = {"id": next(self._ids), "operation": operation, "arguments": arguments}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        reply = self._read_reply(operation, timeout_s)
        assert reply["id"] == request["id"]
        if "error" in reply:
            raise ClientError(**reply["error"])
        return reply["result"]

    def close(self) -> None:
        """End the process: at once, since nothing that it holds is wanted any more."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None

    def _start(self) -> None:
        with self._stderr.open("ab") as stderr:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._folder,
                env=self._env,
                bufsize=0,
                start_new_session=True,
            )
        self._buffer = b""

    def _read_reply(self, operation: str, timeout_s: float) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0 or not is_readable(self._process.stdout, remaining_s):
                self.close()
                raise TimeoutError(f"{operation}: no answer within {timeout_s} s\n{self._stderr_tail()}")
            chunk = self._process.stdout.read(1 << 20)
            if not chunk:
                self.close()
                raise RuntimeError(f"{operation}: the client's process ended\n{self._stderr_tail()}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def _stderr_tail(self) -> str:
        return self._stderr.read_bytes()[-_STDERR_TAIL_BYTES:].decode(errors="replace")
