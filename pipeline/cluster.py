"""Spark's standalone cluster on this machine: a master and workers, to try what a cluster does with the jobs.

Each is a JVM of its own, on free ports of the loopback interface; each worker starts one for the executors of a query's
application. What they say is in `FOLDER/master.log` and `FOLDER/worker-N.log`.
"""

import os
import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import pyspark

__all__ = ["Cluster"]

START_S: Final = 240.0
STOP_S: Final = 30.0

_SPARK_CLASS: Final = Path(pyspark.__path__[0]) / "bin" / "spark-class"
_DEPLOY: Final = "org.apache.spark.deploy"
_MASTER_READY: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_READY: Final = re.compile(r"Successfully registered with master")
_PLACE: Final = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


class Cluster:
    """A master with workers, that serves from the start; `url` is what `spark-submit --master` takes."""

    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        """Start it; each worker offers `cores` and `memory` to executors."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            ready = self._start(stack, "master", _MASTER_READY, f"{_DEPLOY}.master.Master", *_PLACE)
            self.url = ready[1]
            for number in range(1, workers + 1):
                name = f"worker-{number}"
                resources = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / name))
                self._start(stack, name, _WORKER_READY, f"{_DEPLOY}.worker.Worker", *_PLACE, *resources, self.url)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, stack: ExitStack, name: str, ready: re.Pattern[str], *arguments: str) -> re.Match[str]:
        """Start a JVM and wait for what it says when it is ready."""
        log = self._folder / f"{name}.log"
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        with log.open("wb") as out:
            process = subprocess.Popen([_SPARK_CLASS, *arguments], stdout=out, stderr=out, env=environment)  # noqa: S603 - Spark's own
        stack.callback(_end, process)
        deadline = time.monotonic() + START_S
        while not (said := ready.search(log.read_text())):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not start: see {log}")
            time.sleep(0.05)
        return said

    def stop(self) -> None:
        """End it: the workers, with their executors, before the master."""
        self._stack.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
