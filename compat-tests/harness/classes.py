"""Java sources, compiled once against a set of jars and kept in the cache."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from harness.cache import provide, require_program
from harness.jars import jars
from harness.versions import JARS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COMPILE_TIMEOUT_S = 120


def classes(jar_set: str, sources: Sequence[Path]) -> Path:
    """Return the folder of what `sources` become with a jar set of `versions.JARS`."""
    class_path = f"{jars(jar_set)}/*"

    def build(folder: Path) -> None:
        compiler: list[str | Path] = [require_program("javac"), "-Xlint:none", "-cp", class_path, "-d", folder]
        compiled = subprocess.run(
            [*compiler, *sources], capture_output=True, text=True, check=False, timeout=_COMPILE_TIMEOUT_S
        )
        if compiled.returncode != 0:
            names = ", ".join(source.name for source in sources)
            raise RuntimeError(f"not compiled with {jar_set}: {names}\n{compiled.stderr}")

    inputs = [*(source.read_text() for source in sources), *map(str, JARS[jar_set])]
    return provide(f"classes-{jar_set}", inputs, build)
