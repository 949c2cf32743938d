"""The znode tree of a broker that needs no other: kept in memory, durable in one SQLite file.

    metadata.db
      znodes(path TEXT PRIMARY KEY, data BLOB, version INTEGER, next_sequence INTEGER)    one row for each node
      PRAGMA user_version                                                                 the layout, 1

Rules:

- Reads are answered from memory. A write is planned in memory, committed to the file in a thread, and only then
  visible, so what anybody has seen survives a kill.
- One write at a time; one process at a time, held by SQLite's exclusive lock.
- WAL with synchronous=FULL: a commit is on the disk when it returns, and a file left by a kill opens again.
- Ephemeral nodes are never written: they go with the process.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from odradek.cluster.store import (
    ANY_VERSION,
    Create,
    Delete,
    Failure,
    Operation,
    SetData,
    StoreError,
    ZNode,
    check_path,
)
from odradek.cluster.tree import Plan, Record, Tree

__all__ = ["EmbeddedStore"]

LAYOUT = 1

_NEW_FILE = """
CREATE TABLE znodes (
    path TEXT PRIMARY KEY NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    next_sequence INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO znodes VALUES ('/', x'', 0, 0);
PRAGMA user_version = 1;
"""


class _CallbackWatch:
    """A callback that is in a list of callbacks until it is cancelled."""

    __slots__ = ("_callback", "_path", "_watches")

    def __init__(self, watches: "dict[str, list[_CallbackWatch]]", path: str, callback: Callable[[str], None]) -> None:
        self._watches = watches
        self._path = path
        self._callback = callback
        watches.setdefault(path, []).append(self)

    def cancel(self) -> None:
        remaining = [watch for watch in self._watches.get(self._path, ()) if watch is not self]
        if remaining:
            self._watches[self._path] = remaining
        else:
            self._watches.pop(self._path, None)

    def call(self) -> None:
        self._callback(self._path)


class EmbeddedStore:
    """A `MetadataStore` in one file. Made by `open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, tree: Tree) -> None:
        self._path = path
        self._connection = connection
        self._tree = tree
        self._closed = False
        self._writing = trio.Lock()
        self._data_watches: dict[str, list[_CallbackWatch]] = {}
        self._child_watches: dict[str, list[_CallbackWatch]] = {}

    @classmethod
    async def open(cls, path: Path) -> "EmbeddedStore":
        """Open the file `path`, making it when there is none.

        Raises StoreError naming the file: CORRUPT when it is damaged or not a metadata file of this layout,
        UNAVAILABLE when it cannot be opened or another process has it.
        """
        connection, tree = await trio.to_thread.run_sync(_open, path)
        return cls(path, connection, tree)

    async def get(self, path: str) -> ZNode:
        self._check_open()
        return self._tree.get(path)

    async def exists(self, path: str) -> bool:
        self._check_open()
        return self._tree.exists(path)

    async def children(self, path: str) -> list[str]:
        self._check_open()
        return self._tree.children(path)

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        return str(created)

    async def set_data(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (changed,) = await self.multi([SetData(path, data, version)])
        return int(changed or 0)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[str | int | None]:
        async with self._writing:
            self._check_open()
            plan = self._tree.plan(operations)
            rows, gone = _durable(plan, self._tree)
            if rows or gone:
                await trio.to_thread.run_sync(self._commit, rows, gone)
            self._tree.apply(plan)
        self._tell(plan)
        return plan.results

    def watch_data(self, path: str, callback: Callable[[str], None]) -> _CallbackWatch:
        return _CallbackWatch(self._data_watches, check_path(path), callback)

    def watch_children(self, path: str, callback: Callable[[str], None]) -> _CallbackWatch:
        return _CallbackWatch(self._child_watches, check_path(path), callback)

    async def close(self) -> None:
        async with self._writing:
            if self._closed:
                return
            self._closed = True
            self._data_watches.clear()
            self._child_watches.clear()
            await trio.to_thread.run_sync(self._connection.close)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(Failure.UNAVAILABLE, str(self._path), "closed")

    def _commit(self, rows: list[tuple[str, bytes, int, int]], gone: list[tuple[str]]) -> None:
        """Write to the file, all or nothing. Runs in a thread, under `_writing`."""
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("DELETE FROM znodes WHERE path = ?", gone)
                self._connection.executemany("INSERT OR REPLACE INTO znodes VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise StoreError(Failure.UNAVAILABLE, str(self._path), str(error)) from error

    def _tell(self, plan: Plan) -> None:
        for watches, changes in (
            (self._data_watches, plan.data_changes),
            (self._child_watches, plan.child_changes),
        ):
            for path in changes:
                for watch in tuple(watches.get(path, ())):
                    watch.call()


def _durable(plan: Plan, tree: Tree) -> tuple[list[tuple[str, bytes, int, int]], list[tuple[str]]]:
    """The rows that a plan writes and the paths that it removes, without the ephemeral nodes."""
    rows = []
    gone = []
    for path, record in plan.records.items():
        if record is not None and not record.ephemeral:
            rows.append((path, record.data, record.version, record.next_sequence))
        elif tree.lasts(path):
            gone.append((path,))
    return rows, gone


def _open(path: Path) -> tuple[sqlite3.Connection, Tree]:
    """Open, check and read the file; in a thread."""
    try:
        # Settings hold secrets (SASL, TLS): the file is its owner's only. SQLite gives its log file the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        _sync_folder(path.parent)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(Failure.UNAVAILABLE, str(path), str(error)) from error
    try:
        return connection, _read(connection)
    except (sqlite3.Error, ValueError) as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise StoreError(Failure.UNAVAILABLE, str(path), "another process has it open") from error
        raise StoreError(Failure.CORRUPT, str(path), str(error)) from error


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(connection: sqlite3.Connection) -> Tree:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN EXCLUSIVE")
    try:
        return _checked_tree(connection)
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def _checked_tree(connection: sqlite3.Connection) -> Tree:
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if layout == 0 and not connection.execute("SELECT name FROM sqlite_master").fetchall():
        for statement in _NEW_FILE.split(";"):
            connection.execute(statement)
    elif layout != LAYOUT:
        raise ValueError(f"layout {layout} is not {LAYOUT}, the one that this version reads")
    damage = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
    if damage != ["ok"]:
        raise ValueError(damage[0])
    rows = connection.execute("SELECT path, data, version, next_sequence FROM znodes")
    return Tree.of((path, Record(data, version, next_sequence)) for path, data, version, next_sequence in rows)
