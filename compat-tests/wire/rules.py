"""The kinds of rules by which replies of two brokers are compared, and the form in which they are.

Paths are those of a reply by Kafka's names, without indexes: "Fetch.Responses.Partitions.Records".
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ABSENT = "(none)"
NOTHING = (None, "", b"", -1, 0, bytes(16))  # values that say that there is none

Paths = tuple[str, ...]


@dataclass(frozen=True)
class Numbered:
    """Values of a broker's own choice: each is compared by where it came up first, so that they stay consistent."""

    kind: str
    reason: str
    paths: Paths


@dataclass(frozen=True)
class Seen:
    """Values that are compared by what `view` makes of them."""

    view: Callable[[Any], Any]
    reason: str
    paths: Paths


@dataclass(frozen=True)
class Unordered:
    """Arrays whose order says nothing: compared by their elements' field `key`, or sorted where that is None."""

    key: str | None
    paths: Paths


@dataclass(frozen=True)
class Deviation:
    """Answers of Odradek that are not Kafka's. `ours` and `theirs` are patterns of what the two say; ABSENT is nothing.

    Here the paths go through an array that has a key by that key: "ApiVersions.ApiKeys.18.MaxVersion".
    """

    ours: Any
    theirs: Any
    reason: str
    paths: Paths

    def holds(self, path: str, ours: Any, theirs: Any) -> bool:
        """Tell whether this explains a difference."""
        return (
            matches(path, self.paths)
            and fnmatchcase(str(ours), str(self.ours))
            and fnmatchcase(str(theirs), str(self.theirs))
        )


def each(pattern: str, names: str | Iterable[object]) -> Paths:
    """Return the paths that `pattern` makes of each name."""
    return tuple(pattern.format(name) for name in (names.split() if isinstance(names, str) else names))


def matches(path: str, patterns: Paths) -> bool:
    """Tell whether one of the patterns is of this path."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


class Simplifier:
    """Replies of one broker in the form that is compared."""

    def __init__(self, numbered: Iterable[Numbered], seen: Iterable[Seen], unordered: Iterable[Unordered]) -> None:
        self._numbered = tuple(numbered)
        self._seen = tuple(seen)
        self._unordered = tuple(unordered)
        self._numbers: dict[tuple[str, Any], str] = {}

    def simplify(self, path: str, value: Any) -> Any:
        """Return the form of what stands at `path`."""
        return self._simplify(path, value, self._number)

    def _simplify(self, path: str, value: Any, number: Callable[[str, Any], Any]) -> Any:
        for seen in self._seen:
            if matches(path, seen.paths):
                return seen.view(value)
        if isinstance(value, dict):
            return {key: self._simplify(f"{path}.{key}", inner, number) for key, inner in value.items()}
        if isinstance(value, list):
            return self._list(path, value, number)
        for numbered in self._numbered:
            if matches(path, numbered.paths) and value not in NOTHING:
                return number(numbered.kind, value)
        return value.hex() if isinstance(value, bytes) else value

    def _list(self, path: str, elements: list[Any], number: Callable[[str, Any], Any]) -> Any:
        for unordered in self._unordered:
            if matches(path, unordered.paths):
                key = unordered.key
                if key is not None and elements:
                    by_key = {one.get(key): one for one in sorted(elements, key=lambda one: str(one.get(key)))}
                    if len(by_key) == len(elements):
                        return {name: self._simplify(path, one, number) for name, one in by_key.items()}
                elements = sorted(elements, key=lambda one: repr(self._simplify(path, one, self._known)))
        return [self._simplify(path, one, number) for one in elements]

    def _number(self, kind: str, value: Any) -> str:
        number = 1 + sum(other == kind for other, _ in self._numbers)
        return self._numbers.setdefault((kind, value), f"<{kind} {number}>")

    def _known(self, kind: str, value: Any) -> str:
        return self._numbers.get((kind, value), f"<{kind}>")
