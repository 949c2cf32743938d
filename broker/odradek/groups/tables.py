"""What is stored of a group to whose members the broker assigns: a table for each kind of thing, a `part`.

The tables have what the group's records have: loading puts record after record into them, and a request puts changes
into them that become records. Changes are kept until they are taken, so that they can be undone when the log does not
take them.

Everything in the tables is plain data that never changes: a change puts a new thing in the place of the old one.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["FIRST_EPOCH", "NO_TARGET", "Change", "GroupEpoch", "Tables", "TargetEpoch", "count"]

P = TypeVar("P", bound=Enum)
V = TypeVar("V")
T = TypeVar("T")


class GroupEpoch(NamedTuple):
    """The epoch of a group, and a hash of the topics that it was made for. A group begins with epoch 1."""

    epoch: int = 1
    metadata_hash: int = 0


class TargetEpoch(NamedTuple):
    """The group epoch for which the target assignment was made, and when; 0: at no known time."""

    epoch: int = 0
    timestamp_ms: int = 0

    def was_made_within(self, interval_ms: int, wall_ms: int) -> bool:
        """Whether the target is too young, `wall_ms` being now, for another one (KIP-1263)."""
        return bool(self.timestamp_ms) and 0 <= wall_ms - self.timestamp_ms < interval_ms


FIRST_EPOCH = GroupEpoch()
NO_TARGET = TargetEpoch()


class Change(NamedTuple, Generic[P, V]):
    """One record to be: `value` in the place of `before`, None where there is nothing.

    `name` tells apart what a group has several of, such as the member id; it is empty for what a group has one of.
    """

    part: P
    name: str
    value: V | None
    before: V | None = None


class Tables(ABC, Generic[P, V]):
    """What is stored of one group."""

    def __init__(self, parts: type[P], tables: Mapping[P, dict[str, Any]]) -> None:
        """`tables` has a table by name for each part that a group may have several of."""
        self._tables: dict[P, dict[str, Any]] = {part: tables.get(part, {}) for part in parts}
        self._changes: list[Change[P, V]] = []

    def one(self, part: P, default: T) -> T:
        """What a group has one of; `default` where it has none yet."""
        value: T = self._tables[part].get("", default)
        return value

    def names(self, part: P) -> Collection[str]:
        """The names of what a group has several of."""
        return self._tables[part].keys()

    def change(self, part: P, name: str, value: V | None) -> None:
        """Put a value in its place, None to delete, and remember that it has to be stored."""
        self._changes.append(Change(part, name, value, self.put(part, name, value)))

    @property
    def has_changes(self) -> bool:
        """Whether there is something to store."""
        return bool(self._changes)

    def take_changes(self) -> list[Change[P, V]]:
        """What is to be stored, in order; it is the caller's from now on."""
        taken, self._changes = self._changes, []
        return taken

    def undo(self, changes: list[Change[P, V]]) -> None:
        """The log did not take these changes: have everything as it was."""
        for change in reversed(changes):
            self.put(change.part, change.name, change.before)

    def put(self, part: P, name: str, value: V | None) -> V | None:
        """Put a value in its place, as a record tells; give what was there."""
        table = self._tables[part]
        before: V | None = table.get(name)
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value
        self._replaced(part, name, before, value)
        return before

    @abstractmethod
    def _replaced(self, part: P, name: str, before: V | None, value: V | None, /) -> None:
        """Bring what is made from the tables, counts and indexes, in step with a new value."""


def count(counts: dict[str, int], name: str, by: int) -> None:
    """Count a name up or down; what is counted down to nothing is not in `counts`."""
    number = counts.get(name, 0) + by
    if number:
        counts[name] = number
    else:
        counts.pop(name, None)
