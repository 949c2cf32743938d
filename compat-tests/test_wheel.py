"""The wheel: it holds the two packages and nothing else, installs into an empty environment, and serves from there."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from harness.process import is_readable

PROJECT = Path(__file__).parents[1]
TIMEOUT_S = 300


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, PROJECT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that holds the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    return folder / "bin"


def test_the_wheel_holds_the_two_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name.split("/")[0]}
    assert tops == {"odradek", "odradek_protocol"}
    assert {"odradek/py.typed", "odradek_protocol/py.typed"} <= set(names)
    assert not [name for name in names if "test_" in name or "conftest" in name]


def test_it_serves_from_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    options = [
        f"--override={key}={value}"
        for key, value in {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": tmp_path}.items()
    ]
    with subprocess.Popen([installed / "odradek", "serve", *options], stdout=subprocess.PIPE, cwd=tmp_path) as broker:
        try:
            assert broker.stdout is not None
            assert is_readable(broker.stdout, TIMEOUT_S)
            assert re.fullmatch(rb"odradek ready: 127\.0\.0\.1:\d+\n", broker.stdout.readline())
            broker.send_signal(signal.SIGTERM)
            assert broker.wait(TIMEOUT_S) == 0
        finally:
            broker.kill()
