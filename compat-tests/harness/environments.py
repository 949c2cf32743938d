"""Python environments that hold one client each."""

from __future__ import annotations

import subprocess
import sys
import venv
from typing import TYPE_CHECKING

from harness.cache import provide
from harness.versions import PYTHON

if TYPE_CHECKING:
    from pathlib import Path

_INSTALL_TIMEOUT_S = 900


def python_with(name: str) -> Path:
    """Return the interpreter of the environment `name` of `versions.PYTHON`, made the first time."""
    requirements = PYTHON[name]

    def build(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *requirements], check=True, timeout=_INSTALL_TIMEOUT_S)

    return provide(f"python-{name}", [sys.version, sys.base_prefix, *requirements], build) / "bin" / "python"
