"""The embedded store as a file: kills, damage, permissions, a second process."""

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.store import Create, Failure, StoreError

WRITER = """
import sys
from pathlib import Path
import trio
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.store import Create

async def main():
    store = await EmbeddedStore.open(Path(sys.argv[1]))
    number = len(await store.children("/"))
    while True:
        await store.multi([Create(f"/{number:06}"), *(Create(f"/{number:06}/{part}") for part in range(20))])
        print(number, flush=True)
        number += 1

trio.run(main)
"""


async def refusal(path: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await EmbeddedStore.open(path)
    assert str(path) in str(caught.value)
    return caught.value


def start_writer(path: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)


def test_what_was_acknowledged_survives_a_kill_and_every_multi_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    acknowledged = -1

    async def check() -> None:
        store = await EmbeddedStore.open(path)
        names = await store.children("/")
        # The last write may have been committed without a chance to say so.
        assert len(names) in (acknowledged + 1, acknowledged + 2)
        for name in names:
            assert len(await store.children(f"/{name}")) == 20
        await store.close()

    for kill_after in (1, 17, 40):
        with start_writer(path) as writer:
            assert writer.stdout is not None
            for line in itertools.islice(writer.stdout, kill_after):
                acknowledged = int(line)
            writer.send_signal(signal.SIGKILL)
            # What it still said before it died counts; a line that was cut off does not.
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith(b"\n"))])
        trio.run(check)


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    path.write_bytes(b"this is not a database" * 100)
    assert (await refusal(path)).failure is Failure.CORRUPT
    assert path.read_bytes().startswith(b"this is not a database")


async def test_a_damaged_page_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    store = await EmbeddedStore.open(path)
    await store.multi([Create(f"/{number}", b"x" * 2000) for number in range(200)])
    await store.close()
    contents = bytearray(path.read_bytes())
    middle = len(contents) // 2 // 4096 * 4096
    contents[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(contents)
    assert (await refusal(path)).failure is Failure.CORRUPT


async def test_a_file_cut_short_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    store = await EmbeddedStore.open(path)
    await store.multi([Create(f"/{number}", b"x" * 2000) for number in range(200)])
    await store.close()
    os.truncate(path, path.stat().st_size // 2)
    assert (await refusal(path)).failure is Failure.CORRUPT


@pytest.mark.parametrize(
    "change", ["PRAGMA user_version = 99", "DELETE FROM znodes WHERE path = '/a'", "DELETE FROM znodes"]
)
async def test_a_database_of_another_kind_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "metadata.db"
    store = await EmbeddedStore.open(path)
    await store.multi([Create("/a"), Create("/a/b")])
    await store.close()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(change)
    connection.close()
    assert (await refusal(path)).failure is Failure.CORRUPT


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert (await refusal(tmp_path / "missing" / "metadata.db")).failure is Failure.UNAVAILABLE


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    with start_writer(path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        error = trio.run(refusal, path)
        writer.kill()
    assert error.failure is Failure.UNAVAILABLE
    assert "another process" in str(error)


async def test_the_file_is_its_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    store = await EmbeddedStore.open(path)
    await store.create("/a")
    modes = {entry.name: entry.stat().st_mode & 0o077 for entry in os.scandir(tmp_path)}
    assert modes == {"metadata.db": 0, "metadata.db-wal": 0}
    await store.close()


async def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    store = await EmbeddedStore.open(path)
    await store.create("/a", b"small")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError) as caught:
        await store.multi([Create("/b"), Create("/b/c", b"x" * 100_000)])
    assert caught.value.failure is Failure.UNAVAILABLE
    assert str(path) in str(caught.value)
    assert await store.children("/") == ["a"]
    await store.set_data("/a", b"other")
    await store.close()
    again = await EmbeddedStore.open(path)
    assert await again.children("/") == ["a"]
    assert await again.get("/a") == (b"other", 1)
    await again.close()


async def test_a_cancelled_write_is_done_or_not_done(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    store = await EmbeddedStore.open(path)
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.create("/a")
    assert scope.cancelled_caught
    assert not await store.exists("/a")
    await store.create("/a")
    await store.close()
