"""A disk that is full refuses to append: the broker goes on, and appends again when there is space."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.batches import batch
from support.wire import WireClient

from odradek.testing import Broker
from odradek_protocol.errors import Error
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.read import read_records

SIZE = "16m"
VALUE_BYTES = 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of `SIZE` in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "odradek-test", str(disk)],
        check=False,
        capture_output=True,
        timeout=30,
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=30)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 16, 1 << 12, 1):
            while True:
                try:
                    os.write(fd, bytes(size))
                except OSError:
                    break
    finally:
        os.close(fd)


@pytest.mark.parametrize("flush_messages", ["1", "9223372036854775807"])
def test_appends_again_when_there_is_space(small_disk: Path, flush_messages: str) -> None:
    with Broker(folder=small_disk / "data") as broker, WireClient(broker.port) as client:
        client.create_topic("t", flush_messages=flush_messages, segment_bytes="1048576")
        sent = 0
        acknowledged = []
        for _ in range(3):
            for _ in range(80):
                sent += 1
                value = b"%d " % sent + b"x" * VALUE_BYTES
                assert client.produce("t", batch(value)).error_code == 0
                acknowledged.append(value)
            fill(small_disk / "filler")
            refused = 0
            while refused < 5:
                sent += 1
                value = b"%d " % sent + b"x" * VALUE_BYTES
                code = client.produce("t", batch(value)).error_code
                if code == 0:
                    acknowledged.append(value)
                    continue
                assert code == Error.KAFKA_STORAGE_ERROR
                refused += 1
            assert client.fetch("t", 0).error_code == 0
            (small_disk / "filler").unlink()
        assert client.produce("t", batch(b"end")).error_code == 0
        assert read_all(client) == [*acknowledged, b"end"]
    with Broker(folder=small_disk / "data") as broker, WireClient(broker.port) as client:
        assert read_all(client) == [*acknowledged, b"end"]


def read_all(client: WireClient) -> list[bytes | None]:
    """Every value in the topic."""
    values: list[bytes | None] = []
    offset = 0
    while True:
        data = client.fetch("t", offset, max_wait_ms=0).records
        if not data:
            return values
        for position, one in iter_batches(data):
            values += [record.value for record in read_records(data[position : position + one.size])]
            offset = one.last_offset + 1
