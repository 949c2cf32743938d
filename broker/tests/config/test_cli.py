"""The command line as a process: what it prints, and how it exits."""

import re
import subprocess
import sys
from pathlib import Path

from odradek import __version__


def odradek(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_version() -> None:
    ran = odradek("--version")
    assert (ran.returncode, ran.stdout) == (0, f"odradek {__version__}\n")


def test_a_wrong_value_is_one_line_that_names_the_key(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=many\n")
    ran = odradek("serve", str(file))
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == "odradek: Invalid value many for configuration num.partitions: Not a number of type INT\n"


def test_an_unknown_key_and_a_missing_file_are_named(tmp_path: Path) -> None:
    unknown = odradek("serve", "--override", "num.partition=3")
    assert unknown.returncode == 1
    assert "num.partition " in unknown.stderr
    assert "num.partitions" in unknown.stderr
    missing = odradek("serve", str(tmp_path / "no.properties"))
    assert missing.returncode == 1
    assert missing.stderr.startswith(f"odradek: {tmp_path / 'no.properties'}: ")


def test_a_command_is_needed() -> None:
    ran = odradek()
    assert ran.returncode == 2
    assert "usage: odradek" in ran.stderr


def test_serve_says_where_it_listens_and_stops_on_sigterm(tmp_path: Path) -> None:
    settings = ["--override", f"log.dirs={tmp_path}", "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", "serve", *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as broker:
        try:
            assert broker.stdout is not None
            line = broker.stdout.readline()
            assert re.fullmatch(r"odradek ready: 127\.0\.0\.1:[1-9][0-9]*\n", line)
            broker.terminate()
            assert broker.wait(30) == 0
        finally:
            broker.kill()
