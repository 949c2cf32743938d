"""The user's cache folder: what is downloaded once and kept (`$XDG_CACHE_HOME/odradek`, else `~/.cache/odradek`).

An entry is a folder named by what it is and by a digest of what it was made from, so that a changed pin makes a new
entry. A marker file, written last, tells a whole entry from one whose making was cut off.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def cache_root() -> Path:
    """Return the folder that all entries lie in."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "odradek"


def provide(name: str, inputs: Iterable[str], build: Callable[[Path], None]) -> Path:
    """Return the entry `name` made from `inputs`; `build(folder)` fills it when it is not there yet.

    Two runs at the same time build it once: the second waits for the first. A build whose command fails, as it does
    without a network, ends the test by `unavailable`.
    """
    digest = hashlib.sha256("\n".join(inputs).encode()).hexdigest()[:10]
    folder = cache_root() / f"{name}-{digest}"
    marker = folder / ".complete"
    with alone(folder.name):
        if not marker.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                build(folder)
            except subprocess.SubprocessError as error:
                unavailable(f"{name} could not be downloaded: {error}")
            marker.touch()
    return folder


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold the lock `name` of the cache folder; whoever wants it meanwhile, in any process, waits."""
    folder = cache_root()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unavailable(reason: str) -> NoReturn:
    """Skip the test because a tool is missing on this machine; with CI=true that is a failure instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def require_program(name: str) -> str:
    """Return the path of a program on PATH, or end the test by `unavailable`."""
    return shutil.which(name) or unavailable(f"{name} is not installed")
