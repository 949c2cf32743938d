"""Messages to test with: every message in every version, and values for them made from their schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from odradek_protocol.internal import consumer_offsets, consumer_protocol
from odradek_protocol.messages import load_all
from odradek_protocol.schema import Field, Struct, apis

load_all()

INTEGERS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
"""The least and the greatest value of each type of integer."""

SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    **{kind: st.integers(least, greatest) for kind, (least, greatest) in INTEGERS.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=6),
    "bytes": st.binary(max_size=6),
    "records": st.binary(max_size=6),
}

FILLED: dict[str, Any] = {
    **{kind: greatest - 1 for kind, (_, greatest) in INTEGERS.items()},
    "bool": True,
    "float64": 0.1,
    "uuid": bytes(range(16)),
    "string": "Odradek",
    "bytes": b"\x00\xff",
    "records": b"\x01\xfe\x02",
}


@dataclass(frozen=True)
class Case:
    """A message in one version."""

    kind: type[Struct]
    version: int
    flexible: bool

    def __str__(self) -> str:
        return f"{self.kind.__name__}-{self.version}"


def _cases() -> Iterator[Case]:
    for api in apis.values():
        for version in range(api.first, api.last + 1):
            for kind in (api.request, api.response):
                yield Case(kind, version, version >= api.flexible)
    for module in (consumer_offsets, consumer_protocol):
        for kind in vars(module).values():
            if hasattr(kind, "VERSIONS"):
                first, last = kind.VERSIONS
                for version in range(first, last + 1):
                    yield Case(kind, version, version >= kind.FLEXIBLE)


CASES = sorted(_cases(), key=str)


def messages(kind: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Any message of `kind` that `version` can carry; fields that it lacks have their defaults."""
    fields = {field.name: _values(field, version) for field in kind.FIELDS if field.in_version(version)}
    absent = {field.name: field.absent_value for field in kind.FIELDS if not field.in_version(version)}
    return st.fixed_dictionaries(fields).map(lambda values: kind(**values, **absent))


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.kind == "array":
        element = field.of
        assert element is not None
        of = _values(element, version) if isinstance(element, Field) else messages(element, version)
        values: st.SearchStrategy[Any] = st.lists(of, max_size=2)
    elif field.kind == "struct":
        assert isinstance(field.of, type)
        values = messages(field.of, version)
    else:
        values = SIMPLE[field.kind]
    return st.none() | values if field.nullable(version) else values


def filled(kind: type[Struct], version: int) -> Any:
    """The message of `kind` in which each field of `version` has a value that is neither null nor its default."""
    values = {
        field.name: _filled_value(field, version) if field.in_version(version) else field.absent_value
        for field in kind.FIELDS
    }
    return kind(**values)


def _filled_value(field: Field, version: int) -> Any:
    element = field.of
    if isinstance(element, Field):
        return [_filled_value(element, version)] * 2
    if element is not None:
        inner = filled(element, version)
        return [inner, inner] if field.kind == "array" else inner
    return FILLED[field.kind]
