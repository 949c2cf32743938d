"""Drivers in JavaScript, run by Node.js with the packages that their lock file names."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

from harness.agent import Driver
from harness.cache import provide, require_program
from harness.features import CLIENTS
from harness.versions import NPM

if TYPE_CHECKING:
    from pathlib import Path

_INSTALL_TIMEOUT_S = 600
_MANIFESTS = ("package.json", "package-lock.json")


def node_driver(client: str) -> Driver:
    """Return `clients/<client>/driver.js` with its packages, which are installed the first time."""
    node, npm = require_program("node"), require_program("npm")
    project = CLIENTS / client
    pinned = json.loads((project / "package.json").read_text())["dependencies"]
    if pinned != NPM[client]:
        raise RuntimeError(f"{project / 'package.json'} asks for {pinned}, versions.py for {NPM[client]}")

    def install(folder: Path) -> None:
        for name in _MANIFESTS:
            shutil.copy(project / name, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=folder, check=True, timeout=_INSTALL_TIMEOUT_S)

    runtime = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout
    packages = provide(f"npm-{client}", [runtime, *((project / name).read_text() for name in _MANIFESTS)], install)
    return Driver([node, project / "driver.js"], {"NODE_PATH": str(packages / "node_modules")})
