"""Where cluster metadata is kept: one tree of znodes, with ZooKeeper's semantics.

Rules that every implementation keeps (`tests/cluster/contract.py` holds them to it):

- A path is absolute; a node is made only under an existing parent, and removed only when it has no children.
- A node has data and a version: 0 when made, one more with each `set_data`. A write may name the version that it
  expects; -1 (`ANY_VERSION`) expects nothing.
- `multi` does all of its operations or none, and nobody sees a part of it. Each operation sees those before it.
- When a write returns, it is durable, and a read that follows sees it.
- An ephemeral node lives as long as the session of the store that made it, and has no children.
- A sequential node's name ends in ten digits that grow; no two nodes ever made under a parent share them.
- A watch is a hint: its callback is called on trio's thread at least once after a change, several changes may be told
  as one, and who is told reads again.
- Every failure is a `StoreError`; a failed write has changed nothing.
"""

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

__all__ = [
    "ANY_VERSION",
    "Check",
    "Create",
    "Delete",
    "Failure",
    "MetadataStore",
    "Operation",
    "SetData",
    "StoreError",
    "Watch",
    "ZNode",
    "check_path",
    "parent_of",
]

ANY_VERSION = -1
"""The expected version of a write that takes any."""


class Failure(enum.Enum):
    """What went wrong in a store."""

    NO_NODE = "no such node"
    NODE_EXISTS = "node exists"
    BAD_VERSION = "version is not the one expected"
    NOT_EMPTY = "node has children"
    EPHEMERAL_PARENT = "an ephemeral node has no children"
    CORRUPT = "the store's file cannot be read"
    UNAVAILABLE = "the store cannot be reached or written"


class StoreError(Exception):
    """A store did not do what it was asked; `failure` tells why, `path` the znode (or the file) concerned."""

    def __init__(self, failure: Failure, path: str, detail: str = "") -> None:
        super().__init__(failure, path, detail)
        self.failure = failure
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.failure.value}" + (f" ({self.detail})" if self.detail else "")


class ZNode(NamedTuple):
    """What a node holds."""

    data: bytes
    version: int


class Create(NamedTuple):
    """Make a node; its result is the path, which a sequential node gets ten digits added to."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Replace a node's data; its result is the new version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node; its result is None."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Go on only if a node is there with this version; its result is None."""

    path: str
    version: int = ANY_VERSION


Operation = Create | SetData | Delete | Check


class Watch(Protocol):
    """A standing interest in a path."""

    def cancel(self) -> None:
        """Stop calling; harmless when called again."""


class MetadataStore(Protocol):
    """A znode tree. See the module's rules; each method may raise StoreError."""

    async def get(self, path: str) -> ZNode:
        """The data and version of a node. NO_NODE when it is not there."""

    async def exists(self, path: str) -> bool:
        """Whether a node is there."""

    async def children(self, path: str) -> list[str]:
        """The names (not paths) of a node's children, sorted. NO_NODE when it is not there."""

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        """Make a node and return its path. NO_NODE without the parent, NODE_EXISTS, EPHEMERAL_PARENT."""

    async def set_data(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace a node's data and return its new version. NO_NODE, BAD_VERSION."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node. NO_NODE, BAD_VERSION, NOT_EMPTY."""

    async def multi(self, operations: Sequence[Operation]) -> list[str | int | None]:
        """Do all operations in order, or none, and return their results. Raises what the first to fail raises."""

    def watch_data(self, path: str, callback: Callable[[str], None]) -> Watch:
        """Call `callback(path)` after the node is made, its data set, or it is removed; it need not be there yet."""

    def watch_children(self, path: str, callback: Callable[[str], None]) -> Watch:
        """Call `callback(path)` after a child of the node is made or removed."""

    async def close(self) -> None:
        """End the session: ephemeral nodes go, watches fall silent, further calls raise UNAVAILABLE."""


def check_path(path: str) -> str:
    """Return `path` if it names a znode, raise ValueError if it cannot."""
    parts = path.split("/")[1:]
    if not path.startswith("/") or (path != "/" and not all(part not in ("", ".", "..") for part in parts)):
        raise ValueError(f"not a znode path: {path!r}")
    return path


def parent_of(path: str) -> str:
    """The path of the node that `path` is a child of; the root is its own."""
    return path.rpartition("/")[0] or "/"
