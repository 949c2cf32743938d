"""Sets of jars by package name, fetched with Maven."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from harness.cache import alone, provide, require_program
from harness.versions import JARS, MAVEN_DEPENDENCY_PLUGIN

_DOWNLOAD_TIMEOUT_S = 600


def jars(name: str) -> Path:
    """Return the folder that holds the jar set `name` of `versions.JARS`, fetching it the first time."""
    dependencies = JARS[name]
    inputs = [f"{coordinates} {transitive}" for coordinates, transitive in dependencies]

    def download(folder: Path) -> None:
        maven = require_program("mvn")
        with tempfile.TemporaryDirectory() as project:
            pom = Path(project) / "pom.xml"
            pom.write_text(_pom(dependencies))
            command = [
                maven,
                "--batch-mode",
                "--quiet",
                f"--file={pom}",
                f"{MAVEN_DEPENDENCY_PLUGIN}:copy-dependencies",
                f"-DoutputDirectory={folder}",
            ]
            with alone("maven"):  # its repository is for one process at a time
                subprocess.run(command, check=True, timeout=_DOWNLOAD_TIMEOUT_S)

    return provide(f"jars-{name}", inputs, download)


def _pom(dependencies: tuple[tuple[str, bool], ...]) -> str:
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>odradek</groupId><artifactId>compat</artifactId><version>1</version><dependencies>"
        + "".join(_dependency(*dependency) for dependency in dependencies)
        + "</dependencies></project>"
    )


def _dependency(coordinates: str, transitive: bool) -> str:
    group, artifact, version = coordinates.split(":")
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{'' if transitive else alone}</dependency>"
    )
