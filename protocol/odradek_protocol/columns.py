"""Arrays of small structs by column: one sequence for each field instead of one object for each element.

An object and a `struct` call for each of a hundred partitions cost more than all else that a request asks for. Elements
that have a place of their own for each field, the same in all of them, are read by one call, and are handed on as
columns:

    fixed fields    text                                   tagged fields
    ...             a length, the same in every element    0 in every element, from the flexible version on

That is an optimization of the codec and no second format: an array whose texts are of different lengths, or that has
tagged fields, is read element by element into a list, as one of few elements is; `Fields` gives the columns of either.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar, overload

from odradek_protocol.schema import FIXED, Field, Struct

__all__ = ["MANY", "Columns", "Fields", "Layout"]

T = TypeVar("T")

MANY = 4
"""Fewer elements are read one by one: their columns would cost more than they save."""

ROWS_AT_ONCE = 256
"""Rows that one `struct` describes, which takes some 30 bytes for each of their fields and is kept."""

COMPACT_LENGTHS = 128
"""Lengths of compact texts from here on, each plus one, take more than a byte."""


class Columns(Sequence[T], Generic[T]):
    """The elements of an array by field. An element that is asked for is made, and changing it changes nothing here."""

    __slots__ = ("_count", "_kind", "by_field")

    def __init__(self, kind: type[T], count: int, values: Mapping[str, Sequence[Any]]) -> None:
        """`values` has `count` values for each field of `kind`."""
        self._kind = kind
        self._count = count
        self.by_field = values

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        return self._kind(**{name: values[index] for name, values in self.by_field.items()})

    def __repr__(self) -> str:
        return repr(list(self))


class Fields:
    """Two fields or more, to be taken from arrays."""

    __slots__ = ("_columns_of", "_values_of")

    def __init__(self, first: str, second: str, *more: str) -> None:
        self._columns_of = itemgetter(first, second, *more)
        self._values_of = attrgetter(first, second, *more)

    def columns(self, elements: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """A column for each field, of an array with elements that may have been read either way."""
        if type(elements) is Columns:
            columns: tuple[Sequence[Any], ...] = self._columns_of(elements.by_field)
            return columns
        return tuple(zip(*map(self._values_of, elements), strict=True))


class Layout:
    """Where the fields of a struct lie in one version. TypeError for a struct that does not lie as the module says."""

    def __init__(self, kind: type[Struct], version: int, *, flexible: bool) -> None:
        present = [field for field in kind.FIELDS if field.in_version(version)]
        fixed = [field for field in present if field.kind in FIXED]
        rest = present[len(fixed) :]
        if present[: len(fixed)] != fixed or [field.kind for field in rest] not in ([], ["string"]):
            raise TypeError(f"{kind.__name__} cannot be read by column in version {version}")
        self._kind = kind
        self._flexible = flexible
        self._absent = [field for field in kind.FIELDS if field not in present]
        self._names = [field.name for field in present]
        self._codes = "".join(FIXED[field.kind] for field in fixed)
        self._text: Field | None = rest[0] if rest else None
        self._nullable = self._text is not None and self._text.nullable(version)
        self._mark = "B" if flexible else "h"
        self._length = struct.Struct(">" + self._mark)
        self._length_at = struct.calcsize(">" + self._codes)
        self._written = self._codes + "x" if flexible else self._codes

    @property
    def is_fixed(self) -> bool:
        """Whether every element has one width, so that `write` can write them."""
        return self._text is None

    def read(self, data: memoryview, position: int, count: int) -> tuple[Columns[Any] | None, int]:
        """The elements from `position` on, and the position behind them; None, and `position`, if they differ too much.

        Raises struct.error where the first one is cut short, UnicodeDecodeError.
        """
        if not count:
            return None, position
        codes, mark, size = self._codes, 0, 0
        if self._text is not None:
            (mark,) = self._length.unpack_from(data, position + self._length_at)
            size = mark - 1 if self._flexible else mark
            if size < -1 or (size < 0 and not self._nullable) or (self._flexible and mark >= COMPACT_LENGTHS):
                return None, position
            codes += f"{self._mark}{size}s" if size > 0 else self._mark
        if self._flexible:
            codes += "B"
        row_size = _rows(codes, 1).size
        stop = position + count * row_size
        if stop > len(data):
            return None, position
        values = _unpacked(codes, count, data, position)
        width = len(values) // count
        columns = [values[field::width] for field in range(width)]
        if self._flexible and any(columns.pop()):
            return None, position
        if self._text is not None:
            texts = columns.pop() if size > 0 else None
            if columns.pop().count(mark) != count:
                return None, position
            columns.append(_same_text(size, count) if texts is None else [str(text, "utf-8") for text in texts])
        named = dict(zip(self._names, columns, strict=True))
        for field in self._absent:
            named[field.name] = (field.absent_value,) * count
        return Columns(self._kind, count, named), stop

    def write(self, columns: Columns[Any]) -> bytes:
        """The bytes of the elements. Raises struct.error for a value that does not fit."""
        codes, names, count = self._written, self._names, len(columns)
        by_field, width = columns.by_field, len(names)
        values: list[Any] = [None] * (width * count)
        for at, name in enumerate(names):
            values[at::width] = by_field[name]
        if count <= ROWS_AT_ONCE:
            return _rows(codes, count).pack(*values)
        blocks = (values[start : start + width * ROWS_AT_ONCE] for start in range(0, len(values), width * ROWS_AT_ONCE))
        return b"".join(_rows(codes, len(block) // width).pack(*block) for block in blocks)


@lru_cache(maxsize=64)
def _rows(codes: str, count: int) -> struct.Struct:
    """So many rows of what `codes` describe."""
    return struct.Struct(">" + codes * count)


def _unpacked(codes: str, count: int, data: memoryview, position: int) -> Sequence[Any]:
    """The values of so many rows, one row behind the other."""
    if count <= ROWS_AT_ONCE:
        return _rows(codes, count).unpack_from(data, position)
    values: list[Any] = []
    for start in range(0, count, ROWS_AT_ONCE):
        rows = _rows(codes, min(ROWS_AT_ONCE, count - start))
        values += rows.unpack_from(data, position)
        position += rows.size
    return values


def _same_text(size: int, count: int) -> Sequence[str | None]:
    """What there is for texts without a byte: "", or null for -1."""
    return ("" if size == 0 else None,) * count
