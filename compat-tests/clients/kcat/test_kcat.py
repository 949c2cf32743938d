"""kcat, the command line client of librdkafka, in the release that Debian ships."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from harness.cache import require_program

if TYPE_CHECKING:
    from harness.target import Target

_TIMEOUT_S = 60


@pytest.fixture(scope="module")
def kcat() -> str:
    """The program; a CI machine without it installs it."""
    if shutil.which("kcat") is None and os.environ.get("CI") == "true" and os.geteuid() == 0:
        for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "kcat"]):
            subprocess.run(command, check=True, capture_output=True, timeout=300)
    return require_program("kcat")


def run(kcat: str, target: Target, *options: str, stdin: str = "") -> list[str]:
    """Run kcat and return the lines that it printed."""
    command = [kcat, "-b", target.bootstrap, *options]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


@pytest.mark.feature("codec: {codec}")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_produce_and_consume(kcat: str, target: Target, name: str, codec: str) -> None:
    lines = "".join(f"key {number}:value {number}\n" for number in range(100))
    send = ["-P", "-t", name, "-p", "0", "-K", ":", "-z", codec, "-H", "source=kcat", "-X", "acks=all"]
    run(kcat, target, *send, stdin=lines)
    shown = run(kcat, target, "-C", "-t", name, "-p", "0", "-o", "beginning", "-e", "-q", "-J")
    records = [json.loads(line) for line in shown]
    assert [(record["offset"], record["key"], record["payload"]) for record in records] == [
        (number, f"key {number}", f"value {number}") for number in range(100)
    ]
    assert all(record["headers"] == ["source", "kcat"] and record["tstype"] == "create" for record in records)
    last = run(kcat, target, "-C", "-t", name, "-p", "0", "-o", "-2", "-e", "-q", "-f", "%o %s\n")
    assert last == ["98 value 98", "99 value 99"]


@pytest.mark.feature("groups: commit and resume")
def test_group_consumer(kcat: str, target: Target, name: str) -> None:
    run(kcat, target, "-P", "-t", name, stdin="".join(f"{number}\n" for number in range(30)))
    group = ["-G", name, "-X", "auto.offset.reset=earliest", "-q"]
    first = run(kcat, target, *group, "-c", "20", name)
    rest = run(kcat, target, *group, "-e", name)
    assert [int(value) for value in first + rest] == list(range(30))


@pytest.mark.feature("admin: cluster")
def test_list(kcat: str, target: Target, name: str) -> None:
    run(kcat, target, "-P", "-t", name, stdin="one\n")
    [shown] = run(kcat, target, "-L", "-J", "-t", name)
    metadata = json.loads(shown)
    [broker] = metadata["brokers"]
    assert broker["name"] == target.bootstrap
    assert metadata["controllerid"] == broker["id"]
    here = [{"id": broker["id"]}]
    assert metadata["topics"] == [
        {"topic": name, "partitions": [{"partition": 0, "leader": broker["id"], "replicas": here, "isrs": here}]}
    ]


@pytest.mark.feature("offsets: seek, by time")
def test_query_offsets(kcat: str, target: Target, name: str) -> None:
    run(kcat, target, "-P", "-t", name, stdin="".join(f"{number}\n" for number in range(7)))
    [shown] = run(kcat, target, "-C", "-t", name, "-o", "3", "-c", "1", "-q", "-f", "%T\n")
    queries = [f"{name}:0:{when}" for when in (-2, -1, int(shown) + 3_600_000)]
    answers = [run(kcat, target, "-Q", "-t", query) for query in queries]
    assert answers == [[f"{name} [0] offset 0"], [f"{name} [0] offset 7"], [f"{name} [0] offset -1"]]
    [found] = run(kcat, target, "-Q", "-t", f"{name}:0:{shown}")
    assert 0 <= int(found.removeprefix(f"{name} [0] offset ")) <= 3
