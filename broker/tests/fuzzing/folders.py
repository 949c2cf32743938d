"""Where targets keep files: in memory if the system has a folder there, since thousands of inputs are written."""

import tempfile
from functools import cache
from pathlib import Path

IN_MEMORY = Path("/dev/shm")


@cache
def folder(name: str) -> Path:
    """A target's folder, the same one until the process ends."""
    made = Path(base().name, name)
    made.mkdir()
    return made


@cache
def base() -> "tempfile.TemporaryDirectory[str]":
    """The folder of all targets, which goes when the process that made it ends."""
    return tempfile.TemporaryDirectory(prefix="odradek-fuzz-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
