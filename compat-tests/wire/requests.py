"""Requests that are made from a definition alone: the same shapes for every API and version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wire.codec import UNKNOWN_TAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from wire.schemas import Api, Field, Struct

_UNKNOWN_TAG = 99
_LONG_MS = 10_000  # for time-outs: with none, what is answered depends on who is faster


def shapes(api: Api, version: int) -> dict[str, dict[str, Any]]:
    """Return bodies for a request by what they are."""
    made: dict[str, dict[str, Any]] = {
        "defaults": {},
        "nulls": {field.name: None for field in api.request.fields if _present(field, version, field.nullable)},
        "one of each": _filled(api.request, version, lambda field: field.default),
        "negative": _filled(api.request, version, _negative),
    }
    for body in made.values():
        body.update(
            {name: _LONG_MS for name in ("TimeoutMs", "timeoutMs") if any(f.name == name for f in api.request.fields)}
        )
    if version in api.flexible:
        made["unknown tags"] = _with_unknown_tags(made["one of each"])
    return made


def _present(field: Field, version: int, versions: range) -> bool:
    return version in field.versions and version in versions and version not in field.tagged


def _filled(struct: Struct, version: int, value_of: Callable[[Field], Any]) -> dict[str, Any]:
    """Give every array one element and every field its value."""
    body = {}
    for field in struct.fields:
        if not _present(field, version, field.versions):
            continue
        value = value_of(field) if field.struct is None else _filled(field.struct, version, value_of)
        if field.array and field.struct is None:
            value = value or {"string": "", "uuid": bytes(16)}.get(field.kind, 0)
        body[field.name] = [value] if field.array else value
    return body


def _negative(field: Field) -> Any:
    if field.kind in ("int8", "int16", "int32", "int64"):
        return -1
    return "" if field.kind == "string" else field.default


def _with_unknown_tags(body: dict[str, Any]) -> dict[str, Any]:
    tagged: dict[str, Any] = {UNKNOWN_TAGS: {_UNKNOWN_TAG: b"unknown"}}
    for name, value in body.items():
        if isinstance(value, dict):
            tagged[name] = _with_unknown_tags(value)
        elif isinstance(value, list):
            tagged[name] = [_with_unknown_tags(one) if isinstance(one, dict) else one for one in value]
        else:
            tagged[name] = value
    return tagged
