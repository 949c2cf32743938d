"""What Kafka's message definitions say, in a form to compare with our schema."""

import re
from typing import Any

from odradek_protocol.schema import ZEROS

from .kafka_jars import Schema

NEWEST = 1 << 15
"""The end of a range without one."""

RENAMED = {("TxnOffsetCommitRequest", "GenerationId"): "GenerationIdOrMemberEpoch"}
"""The newest name of a field that was called otherwise, by message and older name."""


def find_schema(name: str, schemas: dict[str, Schema]) -> Schema | None:
    """The definition of the message `name`, None where a release has none."""
    schema = schemas.get(name)
    if schema is None:
        return None
    if schema["type"] != "coordinator-key":
        fields = [{**field, "name": RENAMED.get((name, field["name"]), field["name"])} for field in schema["fields"]]
        return {**schema, "fields": fields}
    return _stored_key([each for each in schemas.values() if each["name"] in (name, f"Legacy{name}")])


def _stored_key(schemas: list[Schema]) -> Schema:
    """The definitions of a key as one.

    Newer releases have a definition with the one version 0 for each version of a key, which is its "apiKey".
    """
    versions = sorted(schema["apiKey"] for schema in schemas)
    spelled = str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"
    fields = [[(field["name"], field["type"]) for field in schema["fields"]] for schema in schemas]
    assert all(each == fields[0] for each in fields)
    merged = [{**field, "versions": "0+"} for field in schemas[0]["fields"]]
    return {**schemas[0], "validVersions": spelled, "fields": merged}


def parse_versions(spelled: str | None) -> tuple[int, int] | None:
    """The range in a definition: "3+", "2-4", "1", or "none"."""
    if spelled is None or spelled == "none":
        return None
    if spelled.endswith("+"):
        return int(spelled[:-1]), NEWEST
    first, _, last = spelled.partition("-")
    return int(first), int(last or first)


def versions_of(field: Schema) -> tuple[int, int] | None:
    """The versions that have a field: those in which it is tagged, where nothing else is written."""
    return parse_versions(field.get("versions", field.get("taggedVersions")))


def stable_versions(schema: Schema) -> tuple[int, int]:
    """The versions of a message that a release serves by default."""
    versions = parse_versions(schema["validVersions"])
    assert versions is not None
    return versions[0], versions[1] - bool(schema.get("latestVersionUnstable"))


def within_range(version: int, versions: tuple[int, int] | None) -> bool:
    """Whether `version` is in a range, which may be empty (None)."""
    return versions is not None and versions[0] <= version <= versions[1]


def snake_case(name: str) -> str:
    """The name of a field as we spell it."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def children_of(field: Schema, schema: Schema) -> list[Schema] | None:
    """The fields of the struct that `field` holds, None when it holds none."""
    if "fields" in field:
        return list(field["fields"])
    shared = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    return shared.get(field["type"].removeprefix("[]"))


def default_of(field: Schema, children: list[Schema] | None) -> Any:
    """What a field of Kafka's is when nobody sets it."""
    spelled = field.get("default")
    if "default" in field and spelled in (None, "null"):
        return None
    if spelled is None:
        if field["type"].startswith("[]"):
            return ()
        if children is None:
            return ZEROS[field["type"]]
        return {snake_case(child["name"]): default_of(child, None) for child in children}
    if field["type"] == "bool":
        return str(spelled).lower() == "true"
    return spelled if field["type"] == "string" else int(str(spelled), 0)


def layout_of_schema(fields: list[Schema], version: int, schema: Schema) -> list[Any]:
    """The fields of a version as (name, type, nullable, tag, fields within), in line first and then by tag."""
    layout = []
    for field in fields:
        if not within_range(version, versions_of(field)):
            continue
        children = children_of(field, schema)
        kind = field["type"]
        if children is not None:
            kind = "[]struct" if kind.startswith("[]") else "struct"
        nullable = within_range(version, parse_versions(field.get("nullableVersions")))
        tag = field.get("tag") if within_range(version, parse_versions(field.get("taggedVersions"))) else None
        within = None if children is None else layout_of_schema(children, version, schema)
        layout.append((snake_case(field["name"]), kind, nullable, tag, within))
    return in_wire_order(layout)


def in_wire_order(layout: list[Any]) -> list[Any]:
    """The fields of a layout in line first, then the tagged ones by tag."""
    return sorted(layout, key=lambda field: -1 if field[3] is None else field[3])
