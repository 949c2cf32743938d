"""Drivers in Rust, each a crate of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import tomllib
from typing import TYPE_CHECKING

from harness.agent import Driver
from harness.cache import provide, require_program, unavailable
from harness.features import CLIENTS
from harness.versions import RUST

if TYPE_CHECKING:
    from pathlib import Path

_DOWNLOAD_TIMEOUT_S = 600
_COMPILE_TIMEOUT_S = 600


def rust_driver(client: str) -> Driver:
    """Return the driver in `clients/<client>`, compiled the first time and when a source or the compiler changes."""
    cargo = require_program("cargo")
    version = subprocess.run([cargo, "--version"], check=False, capture_output=True, text=True)
    if version.returncode != 0:
        unavailable(f"cargo does not run: {version.stderr.splitlines()[:1]}")
    crate = CLIENTS / client
    _check_pins(crate)

    def build(folder: Path) -> None:
        manifest = f"--manifest-path={crate / 'Cargo.toml'}"
        subprocess.run([cargo, "fetch", "--quiet", "--locked", manifest], check=True, timeout=_DOWNLOAD_TIMEOUT_S)
        with tempfile.TemporaryDirectory() as target:
            command = [cargo, "build", "--quiet", "--offline", "--locked", manifest, f"--target-dir={target}"]
            compiled = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COMPILE_TIMEOUT_S)
            if compiled.returncode != 0:
                raise RuntimeError(f"{client} does not compile\n{compiled.stderr}")
            shutil.move(f"{target}/debug/driver", folder)

    sources = [crate / "Cargo.toml", crate / "Cargo.lock", *sorted((crate / "src").glob("*.rs"))]
    inputs = [version.stdout, *(source.read_text() for source in sources)]
    return Driver([provide(f"rust-{client}", inputs, build) / "driver"])


def _check_pins(crate: Path) -> None:
    dependencies = tomllib.loads((crate / "Cargo.toml").read_text())["dependencies"]
    asked = {name: one if isinstance(one, str) else one["version"] for name, one in dependencies.items()}
    pinned = {name: f"={version}" for name, version in RUST[crate.name].items()}
    if asked != pinned:
        raise RuntimeError(f"{crate / 'Cargo.toml'} asks for {asked}, versions.py for {pinned}")
