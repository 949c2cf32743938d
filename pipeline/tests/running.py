"""Streaming jobs in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from pipeline.progress import read_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipeline.settings import Settings

WAIT_S = 300
"""For micro-batches to go on after a start, on a machine that has much else to do."""


class Running:
    """Streaming jobs as a user runs them, in a session of their own that can be killed as a whole."""

    def __init__(self, jobs: Iterable[str], settings: Settings, folder: Path, quick_spark: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "pipeline", "stream", "--folder", settings.folder, "--master", "local[2]"]
        command += ["--bootstrap-servers", settings.bootstrap_servers, "--trigger-s", "0.2"]
        command += ["--max-offsets-per-trigger", f"{settings.max_offsets_per_trigger}"]
        command += ["--watermark-s", f"{settings.watermark_s}", "--lake-format", settings.lake_format.value]
        if settings.trigger_s is None:
            command.append("--available-now")
        self._progress = folder / "progress.jsonl"
        command += ["--progress", str(self._progress), "--jobs", *jobs]
        self._log = folder / "stream.log"
        with self._log.open("ab") as log:
            environment = {**os.environ, **quick_spark, "PYTHONPATH": os.getcwd()}
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
            )
        self._batches_before = self._batches()

    def _batches(self) -> int:
        return sum(batch.rows > 0 for batch in read_progress(self._progress))

    def wait_for_batches(self, count: int) -> None:
        """Wait until `count` micro-batches were done since the start."""
        deadline = time.monotonic() + WAIT_S
        while self._batches() < self._batches_before + count:
            assert self._process.poll() is None, self._log.read_text()[-4000:]
            assert time.monotonic() < deadline, self._log.read_text()[-4000:]
            time.sleep(0.05)

    def wait(self) -> None:
        """Wait for the end of jobs that end by themselves."""
        assert self._process.wait(WAIT_S) == 0, self._log.read_text()[-4000:]

    def kill(self) -> None:
        """End Python and the JVM by SIGKILL."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
