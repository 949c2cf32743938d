"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 120
USER = "pipeline"


class Postgres:
    """A server on the loopback interface. It refuses to be root, so it is `postgres` where the tests are."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._owner = "postgres" if os.geteuid() == 0 else None
        self._numbers = itertools.count(1)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._folder = tempfile.mkdtemp(prefix="postgres-")  # below no folder that is the tests' alone
        if self._owner:
            shutil.chown(self._folder, self._owner)
        try:
            # What is lost in a crash need not be on the disk.
            self._run("initdb", "--auth=trust", f"--username={USER}", "--no-sync", f"--pgdata={self._folder}/data")
            options = f"-h 127.0.0.1 -p {self._port} -k {self._folder} -F"
            self._run("pg_ctl", "start", "-w", "-D", f"{self._folder}/data", "-l", f"{self._folder}/log", "-o", options)
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", f"{self._folder}/data")
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str) -> None:
        command: list[str | Path] = [self._programs / program, *arguments]
        subprocess.run(command, check=True, cwd="/", user=self._owner, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)

    def new_database(self) -> str:
        """Make a database; the JDBC URL of it."""
        name = f"test{next(self._numbers)}"
        self._run("createdb", "-h", "127.0.0.1", "-p", f"{self._port}", "-U", USER, name)
        return f"jdbc:postgresql://127.0.0.1:{self._port}/{name}?user={USER}"
