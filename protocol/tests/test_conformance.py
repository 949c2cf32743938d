"""Every message against Kafka's own definition of it, in each release that Odradek is measured against.

Two things are compared. The layout of each version: which fields, in which order, of which type, nullable or not,
tagged or not. And the ranges and defaults as they are written in the schema entries, against the newest release that
has the field, so that an entry cannot be wrong where no served version shows it.

A test of the test follows: each kind of slip, made in each field of each message, is found.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from odradek_protocol.internal import (
    consumer_group,
    consumer_offsets,
    consumer_protocol,
    share_group,
    share_group_state,
    streams_group,
    transaction_log,
)
from odradek_protocol.messages import load_all
from odradek_protocol.schema import NEVER_FLEXIBLE, REQUIRED, Field, Struct, apis

from .kafka_definitions import (
    NEWEST,
    children_of,
    default_of,
    find_schema,
    in_wire_order,
    layout_of_schema,
    parse_versions,
    snake_case,
    stable_versions,
    versions_of,
    within_range,
)
from .kafka_jars import RELEASES, Schema, message_schemas

load_all()

pytestmark = pytest.mark.timeout(900)  # the first run fetches the jars


@dataclass(frozen=True)
class Message:
    """A message of ours: its class, and what Kafka calls it where."""

    kind: type[Struct]
    name: str
    artifact: str
    first: int
    last: int
    flexible: int
    key: int | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def is_reply(self) -> bool:
        return self.name.endswith("Response")

    def schemas(self) -> dict[str, Schema]:
        """Kafka's definitions of the message, by release, from the first one on that is no draft."""
        releases = RELEASES[FIRST_RELEASE.get(self.name, 1 if "Share" in self.name else 0) :]
        found = {release: find_schema(self.name, message_schemas(self.artifact, release)) for release in releases}
        return {release: schema for release, schema in found.items() if schema is not None}


FIRST_RELEASE = {"StreamsGroupHeartbeatResponse": 2}
"""From which release on Kafka's definition of a message counts: 4.3 gives a field a name that 4.4 has for another."""

STORED = {
    consumer_group: "kafka-group-coordinator",
    consumer_offsets: "kafka-group-coordinator",
    consumer_protocol: "kafka-clients",
    share_group: "kafka-group-coordinator",
    share_group_state: "kafka-share-coordinator",
    streams_group: "kafka-group-coordinator",
    transaction_log: "kafka-transaction-coordinator",
}
"""The modules of stored messages, and where Kafka's definitions of them are."""


def _messages() -> Iterator[Message]:
    for api in apis.values():
        for kind, name in ((api.request, f"{api.name}Request"), (api.response, f"{api.name}Response")):
            yield Message(kind, name, "kafka-clients", api.first, api.last, api.flexible, api.key)
    for module, artifact in STORED.items():
        for kind in vars(module).values():
            if hasattr(kind, "VERSIONS"):
                first, last = kind.VERSIONS
                yield Message(kind, kind.__name__, artifact, first, last, kind.FLEXIBLE)


MESSAGES = sorted(_messages(), key=str)


def _kind(field: Field) -> str:
    """The type of a field of ours, spelled as Kafka does; structs are all "struct"."""
    if field.kind != "array":
        return field.kind
    return f"[]{field.of.kind}" if isinstance(field.of, Field) else "[]struct"


def _struct_of(field: Field) -> type[Struct] | None:
    return None if field.of is None or isinstance(field.of, Field) else field.of


def _value(default: Any) -> Any:
    """A default of ours in the form that `default_of` has."""
    if isinstance(default, Struct):
        slots: Sequence[str] = type(default).__slots__
        return {slot: _value(getattr(default, slot)) for slot in slots}
    return default


def layout_of_struct(kind: type[Struct], version: int) -> list[Any]:
    """The layout of a struct of ours in `version`, in the form that `layout_of_schema` gives Kafka's."""
    layout = []
    for field in kind.FIELDS:
        if field.in_version(version):
            struct = _struct_of(field)
            within = None if struct is None else layout_of_struct(struct, version)
            layout.append((field.name, _kind(field), field.nullable(version), field.tag, within))
    return in_wire_order(layout)


def _without_later_tags(ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Our fields but for the tagged ones that a release does not know: a newer one may add them to an old version."""
    known = {field[0]: field[4] for field in theirs}
    found = [field for field in ours if field[3] is None or field[0] in known]
    within = [_without_later_tags(field[4], known.get(field[0]) or []) if field[4] else field[4] for field in found]
    return [(*field[:4], each) for field, each in zip(found, within, strict=True)]


def differences(message: Message) -> list[str]:
    """Everything in which `message` is not what the releases say."""
    schemas = message.schemas()
    found = list(_range_differences(message, schemas))
    for version in range(message.first, message.last + 1):
        for release, schema in schemas.items():
            if within_range(version, stable_versions(schema)):
                ours = layout_of_struct(message.kind, version)
                theirs = layout_of_schema(schema["fields"], version, schema)
                if release != RELEASES[-1]:
                    ours = _without_later_tags(ours, theirs)
                if ours != theirs:
                    found.append(f"version {version}, {release}: {ours} instead of {theirs}")
    newest_first = [(schema["fields"], schema) for schema in reversed(schemas.values())]
    parent = (0, message.last)
    found.extend(_declared_differences(message.kind, newest_first, parent, message))
    return found


def _range_differences(message: Message, schemas: dict[str, Schema]) -> Iterator[str]:
    ranges = [stable_versions(schema) for schema in schemas.values()]
    first, last = min(low for low, _ in ranges), max(high for _, high in ranges)
    if message.is_reply or message.key is not None:
        # A reply's definition does not say that a version is unstable: the request's does.
        requests = replace(message, name=message.name.replace("Response", "Request")).schemas()
        last = max(stable_versions(schema)[1] for schema in requests.values())
    if (message.first, message.last) != (first, last):
        yield f"serves {message.first} to {message.last}, the releases {first} to {last}"
    for release, schema in schemas.items():
        flexible = parse_versions(schema["flexibleVersions"]) or (NEVER_FLEXIBLE, NEWEST)
        if message.flexible != flexible[0]:
            yield f"flexible from {message.flexible}, in {release} from {flexible[0]}"
        if message.key not in (None, schema.get("apiKey")):
            yield f"key {message.key}, in {release} {schema.get('apiKey')}"


def _declared_differences(
    kind: type[Struct], definitions: list[tuple[list[Schema], Schema]], parent: tuple[int, int], message: Message
) -> Iterator[str]:
    """Differences between the ranges and defaults of a struct's fields and those in the newest definition of each.

    `definitions` are the fields of the struct in each release with the whole schema, newest first; `parent` is the
    range of versions that has the struct. A bound that the parent implies is left out.
    """
    for field in kind.FIELDS:
        same = [
            (each, schema)
            for fields, schema in definitions
            for each in fields
            if snake_case(each["name"]) == field.name
        ]
        if not same:
            yield f"{field.name} is in no release"
            continue
        theirs, schema = same[0]
        versions = versions_of(theirs)
        assert versions is not None
        yield from (f"{field.name}: {text}" for text in _range_slips(field, theirs, versions, parent, message.first))
        yield from (f"{field.name}: {text}" for text in _default_slips(field, theirs, schema, parent, message))
        struct = _struct_of(field)
        if struct is not None:
            within = [(children_of(each, its_schema) or [], its_schema) for each, its_schema in same]
            yield from _declared_differences(struct, within, _overlap(versions, parent), message)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def _range_slips(
    field: Field, theirs: Schema, versions: tuple[int, int], parent: tuple[int, int], first_served: int
) -> Iterator[str]:
    first, last = versions
    if field.since != (first if first > parent[0] else 0):
        yield f"since {field.since} instead of {first}"
    if field.until != (last if last < parent[1] else None):
        yield f"until {field.until} instead of {last}"
    nullable = parse_versions(theirs.get("nullableVersions"))
    expected = None
    if nullable is not None and nullable[1] >= first_served:
        expected = nullable[0] if nullable[0] > max(first, parent[0]) else field.since
    if field.nullable_since != expected:
        yield f"nullable since {field.nullable_since} instead of {expected}"
    if field.tag != theirs.get("tag"):
        yield f"tag {field.tag} instead of {theirs.get('tag')}"


def _default_slips(
    field: Field, theirs: Schema, schema: Schema, parent: tuple[int, int], message: Message
) -> Iterator[str]:
    expected = default_of(theirs, children_of(theirs, schema))
    if field.default is REQUIRED:
        until = parent[1] if field.until is None else field.until
        if "default" in theirs or field.since > max(parent[0], message.first) or until < parent[1]:
            yield f"has no default where a message may lack it; it is {expected!r}"
    elif message.is_reply and field.name == "error_message" and field.nullable_since is not None:
        if field.default is not None:
            yield f"default {field.default!r} of a message that may be null"
    elif _value(field.default) != expected or isinstance(field.default, bool) != isinstance(expected, bool):
        yield f"default {field.default!r} instead of {expected!r}"


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_message_is_what_the_releases_say(message: Message) -> None:
    assert differences(message) == []


# The test of the test


def _fields(kind: type[Struct]) -> Iterable[Field]:
    for field in kind.FIELDS:
        yield field
        struct = _struct_of(field)
        if struct is not None:
            yield from _fields(struct)


def _other_kind(field: Field) -> dict[str, Any]:
    if field.kind == "array" and isinstance(field.of, Field):
        return {"of": Field("int8" if field.of.kind != "int8" else "int16")}
    other = {"int32": "uint32", "int64": "float64", "string": "bytes", "bytes": "records", "records": "bytes"}
    return {"kind": other.get(field.kind, "int32")} if field.of is None else {}


def _other_default(field: Field) -> dict[str, Any]:
    if field.default is REQUIRED:
        return {"default": "unheard of"}
    return {"default": () if field.default is None else None if field.default != () else ("unheard of",)}


SLIPS: dict[str, Callable[[Field, Message], dict[str, Any]]] = {
    "name": lambda field, _: {"name": f"{field.name}_"},
    "type": lambda field, _: _other_kind(field),
    "since": lambda field, _: {"since": field.since + 1},
    "since earlier": lambda field, _: {"since": field.since - 1} if field.since else {},
    "until": lambda field, message: {"until": message.last - 1 if field.until is None else field.until - 1},
    "until later": lambda field, _: {} if field.until is None else {"until": field.until + 1},
    "nullable": lambda field, _: {"nullable_since": 0 if field.nullable_since is None else None},
    "nullable later": lambda field, _: (
        {} if field.nullable_since is None else {"nullable_since": field.nullable_since + 1}
    ),
    "tag": lambda field, _: {"tag": 7 if field.tag is None else field.tag + 1},
    "default": lambda field, _: _other_default(field),
}


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_no_slip_in_a_field_goes_unnoticed(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    assert message.schemas()
    for field in _fields(message.kind):
        for slip, make in SLIPS.items():
            with monkeypatch.context() as patch:
                changes = make(field, message)
                for attribute, value in changes.items():
                    patch.setattr(field, attribute, value)
                assert not changes or differences(message), f"{slip} of {field.name}: {changes}"


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_no_slip_in_a_message_goes_unnoticed(message: Message) -> None:
    assert differences(replace(message, flexible=message.flexible + 1))
    assert differences(replace(message, first=message.first + 1))
    assert differences(replace(message, last=message.last + 1))
    assert message.key is None or differences(replace(message, key=message.key + 1))


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_order_of_fields_matters(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    inline = [field for field in message.kind.FIELDS if field.tag is None]
    if len(inline) < 2:
        return
    monkeypatch.setattr(message.kind, "FIELDS", tuple(reversed(message.kind.FIELDS)))
    assert differences(message)
