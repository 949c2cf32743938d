"""Odradek as the target, run as a user runs it: a child process and its ready line."""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING

from harness.process import Child
from harness.target import QUICK_GROUPS, Target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_READY = re.compile(r"^odradek ready: (\S+):(\d+)$", re.MULTILINE)
_START_TIMEOUT_S = 15
_STOP_TIMEOUT_S = 15


class Odradek(Target):
    """One broker with the embedded defaults but for `QUICK_GROUPS`, on a port of the system's choice.

    `data` may have its logs already.
    """

    def __init__(self, folder: Path, data: Path | None = None, overrides: Mapping[str, str] | None = None) -> None:
        self.name = "odradek"
        self._overrides = overrides or {}
        self._folder = folder
        self._data = data or folder / "data"
        self._starts = 0
        self._child = self._start("127.0.0.1:0")
        self.bootstrap = self._wait_for_ready_line()

    def log_folder(self) -> Path:
        return self._data

    def restart_abruptly(self) -> None:
        self._child.kill()
        self._check_stderr()
        self._child = self._start(self.bootstrap)
        assert self._wait_for_ready_line() == self.bootstrap

    def stop(self) -> None:
        exit_code = self._child.terminate(_STOP_TIMEOUT_S)
        assert exit_code == 0, f"exit code {exit_code}\n{self._child.tail()}"
        self._check_stderr()

    def _start(self, address: str) -> Child:
        self._starts += 1
        command = [sys.executable, "-m", "odradek", "serve"]
        places = {"listeners": f"PLAINTEXT://{address}", "log.dirs": str(self._data)}
        overrides = {**QUICK_GROUPS, **places, **self._overrides}
        for key, value in overrides.items():
            command += ["--override", f"{key}={value}"]
        return Child(f"odradek-{self._starts}", command, self._folder)

    def _wait_for_ready_line(self) -> str:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not (found := _READY.search(self._child.out.read_text())):
            if self._child.ended(0.02):
                raise RuntimeError(f"the broker ended while starting\n{self._child.tail()}")
            if time.monotonic() > deadline:
                self._child.kill()
                raise TimeoutError(f"no ready line within {_START_TIMEOUT_S} s\n{self._child.tail()}")
        return f"{found[1]}:{found[2]}"

    def _check_stderr(self) -> None:
        assert "Traceback" not in self._child.err.read_text(), self._child.tail()
