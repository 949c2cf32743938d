"""Kafka's message definitions, as the `kafka-clients` jar of a release has them."""

from __future__ import annotations

import functools
import json
import re
import zipfile
from dataclasses import dataclass
from typing import Any

from harness.jars import jars

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*')
_NEWEST = 1 << 15  # the end of a range without one

_EMPTY = {"string": "", "float64": 0.0, "bytes": b"", "records": b"", "uuid": bytes(16)}

Definition = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """One field of a struct: `kind` is a primitive type, or "struct" with `struct`; `array` says that it holds many."""

    name: str
    kind: str
    array: bool
    struct: Struct | None
    versions: range
    nullable: range
    tagged: range
    tag: int | None
    default: Any


@dataclass(frozen=True)
class Struct:
    """The fields of a message or of a part of it, for all versions."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Api:
    """One API of a release: its key, the versions that the release serves, and its two messages."""

    name: str
    key: int
    versions: range
    flexible: range
    request: Struct
    response: Struct


@functools.cache
def apis(release: str) -> dict[str, Api]:
    """Return the APIs of a release by name ("Fetch"), fetching its jars the first time."""
    requests, responses = {}, {}
    with zipfile.ZipFile(jars(f"kafka-{release}") / f"kafka-clients-{release}.jar") as jar:
        for entry in jar.namelist():
            if re.fullmatch(r"common/message/\w+(Request|Response)\.json", entry):
                definition = json.loads(_STRING_OR_COMMENT.sub(_without_comment, jar.read(entry).decode()))
                kinds = requests if definition["type"] == "request" else responses
                kinds[definition["apiKey"]] = definition
    served = [key for key in sorted(requests) if _versions(requests[key]["validVersions"])]
    return {api.name: api for api in (_api(key, requests[key], responses[key]) for key in served)}


def _without_comment(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else ""


def _api(key: int, request: Definition, response: Definition) -> Api:
    served = _versions(request["validVersions"])
    return Api(
        name=request["name"].removesuffix("Request"),
        key=key,
        versions=served[:-1] if request.get("latestVersionUnstable") else served,
        flexible=_versions(request["flexibleVersions"]),
        request=_message(request),
        response=_message(response),
    )


def _message(definition: Definition) -> Struct:
    shared = {common["name"]: common["fields"] for common in definition.get("commonStructs", ())}
    return _struct(definition["name"], definition["fields"], shared)


def _struct(name: str, fields: list[Definition], shared: dict[str, list[Definition]]) -> Struct:
    return Struct(name, tuple(_field(field, shared) for field in fields))


def _field(field: Definition, shared: dict[str, list[Definition]]) -> Field:
    kind = field["type"].removeprefix("[]")
    array = kind != field["type"]
    inner = field.get("fields", shared.get(kind))
    return Field(
        name=field["name"],
        kind=kind if inner is None else "struct",
        array=array,
        struct=None if inner is None else _struct(kind, inner, shared),
        versions=_versions(field.get("versions", field.get("taggedVersions"))),
        nullable=_versions(field.get("nullableVersions")),
        tagged=_versions(field.get("taggedVersions")),
        tag=field.get("tag"),
        default=_default(field.get("default"), kind, array=array),
    )


def _versions(spelled: str | None) -> range:
    """Read a range of versions: "3+", "2-4", "1" or "none"."""
    if spelled is None or spelled == "none":
        return range(0)
    if spelled.endswith("+"):
        return range(int(spelled[:-1]), _NEWEST)
    first, _, last = spelled.partition("-")
    return range(int(first), int(last or first) + 1)


def _default(spelled: Any, kind: str, *, array: bool) -> Any:
    if spelled == "null":
        return None
    if array:
        return []
    if kind == "bool":
        return str(spelled).lower() == "true"
    if kind.startswith(("int", "uint")):
        return int(str(spelled or 0), 0)
    return spelled or _EMPTY.get(kind, {})
