"""Python environments that hold one client each, where this one does not."""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

from harness.cache import provide
from harness.versions import PYTHON

_INSTALL_TIMEOUT_S = 900


def python_with(name: str) -> Path:
    """Return the interpreter of the environment `name` of `versions.PYTHON`, made the first time.

    It is that of this process where all of the requirements are there in their releases: PySpark is half a gigabyte.
    """
    requirements = PYTHON[name]
    if all(_is_here(requirement) for requirement in requirements):
        return Path(sys.executable)

    def build(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *requirements], check=True, timeout=_INSTALL_TIMEOUT_S)

    return provide(f"python-{name}", [sys.version, sys.base_prefix, *requirements], build) / "bin" / "python"


def _is_here(requirement: str) -> bool:
    name, _, release = requirement.partition("==")
    try:
        return metadata.version(name) == release
    except metadata.PackageNotFoundError:
        return False
