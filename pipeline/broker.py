"""An Odradek of the pipeline's own: a child process with its data in a folder; it may be killed and started again."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

__all__ = ["Broker"]

START_S: Final = 60.0
STOP_S: Final = 30.0

_READY = re.compile(r"^odradek ready: (\S+)$", re.MULTILINE)


class Broker:
    """A broker on a free port of the loopback interface, serving from the start."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._overrides = {"log.dirs": str(folder / "broker"), **(overrides or {})}
        self._folder.mkdir(parents=True, exist_ok=True)
        self.bootstrap_servers = "127.0.0.1:0"
        self._process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "odradek", "serve"]
        for key, value in {"listeners": f"PLAINTEXT://{self.bootstrap_servers}", **self._overrides}.items():
            command += ["--override", f"{key}={value}"]
        out = self._folder / "broker.out"
        with out.open("wb") as stdout, (self._folder / "broker.log").open("ab") as stderr:
            process = subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True)  # noqa: S603 - ours
        deadline = time.monotonic() + START_S
        while not (ready := _READY.search(out.read_text())):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise RuntimeError(f"the broker does not start: see {self._folder / 'broker.log'}")
            time.sleep(0.01)
        self.bootstrap_servers = ready[1]
        return process

    def kill(self) -> None:
        """End it by SIGKILL."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def restart(self) -> None:
        """Start it again, on the same port with the same data."""
        self._process = self._start()

    def stop(self) -> None:
        """End it cleanly."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(STOP_S)
