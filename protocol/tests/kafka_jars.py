"""Kafka's own message definitions, from the jars of its releases.

The jars come from Maven Central through `mvn`, by name and version, and are kept under the user's cache folder
(`$XDG_CACHE_HOME/odradek/jars`, else `~/.cache/odradek/jars`). Nothing of theirs is part of this project.
"""

import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

RELEASES = ("3.9.1", "4.3.1", "4.4.0")
"""The releases that Odradek is measured against, oldest first."""

COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*')

Schema = dict[str, Any]


@functools.cache
def message_schemas(artifact: str, release: str) -> dict[str, Schema]:
    """The message definitions in `org.apache.kafka:artifact:release`, by name."""
    schemas = {}
    with zipfile.ZipFile(_jar(artifact, release)) as jar:
        for entry in jar.namelist():
            if re.fullmatch(r"common/message/\w+\.json", entry):
                schema = json.loads(STRING_OR_COMMENT.sub(_without_comment, jar.read(entry).decode()))
                schemas[schema["name"]] = schema
    return schemas


def _without_comment(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else ""


def _jar(artifact: str, release: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek" / "jars"
    jar = cache / f"{artifact}-{release}.jar"
    if jar.exists():
        return jar
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "lock"):
        if not jar.exists():
            _download(artifact, release, jar)
    return jar


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold `path` as a lock, so that two test runs do not fetch one jar at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(artifact: str, release: str, jar: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        missing = f"Maven (mvn) is needed to fetch {jar.name} and is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        command = [
            *(maven, "-B", "-q", COPY_GOAL),
            *(f"-Dartifact=org.apache.kafka:{artifact}:{release}", f"-DoutputDirectory={folder}"),
        ]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if run.returncode:
            pytest.fail(f"mvn could not fetch {jar.name}:\n{run.stdout}{run.stderr}")
        os.replace(Path(folder) / jar.name, jar)
