"""Programs in Go, each a module of its own; drivers are compiled with the loop of `clients/serving/go`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from harness.agent import Driver
from harness.cache import provide, require_program
from harness.features import CLIENTS
from harness.versions import GO

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOOP = CLIENTS / "serving" / "go"
_DOWNLOAD_TIMEOUT_S = 600
_COMPILE_TIMEOUT_S = 600


def go_driver(client: str) -> Driver:
    """Return the driver in `clients/<client>`, compiled the first time and when a source or the compiler changes."""
    return Driver([go_program(CLIENTS / client, GO[client], _LOOP)])


def go_program(module: Path, pins: Mapping[str, str], *shared: Path) -> Path:
    """Return the program of a module that asks for `pins`; the sources of `shared` modules are compiled into it."""
    go = require_program("go")
    _check_pins(go, module, pins)

    def build(folder: Path) -> None:
        subprocess.run([go, "mod", "download"], cwd=module, check=True, timeout=_DOWNLOAD_TIMEOUT_S)
        command: list[str | Path] = [go, "build", "-o", folder / "driver", "."]
        compiled = subprocess.run(
            command, cwd=module, capture_output=True, text=True, check=False, timeout=_COMPILE_TIMEOUT_S
        )
        if compiled.returncode != 0:
            raise RuntimeError(f"{module.name} does not compile\n{compiled.stderr}")

    compiler = subprocess.run([go, "version"], cwd=module, check=True, capture_output=True, text=True).stdout
    sources = [source.read_text() for folder in (*shared, module) for source in sorted(folder.glob("*.go"))]
    sums = [(module / name).read_text() for name in ("go.mod", "go.sum")]
    return provide(f"go-{module.name}", [compiler, *sums, *sources], build) / "driver"


def _check_pins(go: str, module: Path, pins: Mapping[str, str]) -> None:
    listed = subprocess.run([go, "mod", "edit", "-json"], cwd=module, check=True, capture_output=True, text=True).stdout
    required: list[dict[str, Any]] = json.loads(listed)["Require"]
    pinned = {one["Path"]: one["Version"] for one in required if not one.get("Indirect") and "." in one["Path"]}
    if pinned != pins:
        raise RuntimeError(f"{module / 'go.mod'} asks for {pinned}, versions.py for {pins}")
