"""Messages to bytes and back, by Kafka's definitions.

A struct is a dict by Kafka's field names. In what is written, a field that is left out has its default, and one that
the version lacks is dropped; a name that the definition does not have is a KeyError. The key "_tags" holds tagged
fields that the definition does not know, as bytes by tag.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wire.schemas import Field, Struct

UNKNOWN_TAGS = "_tags"

_FIXED = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "uuid": struct.Struct(">16s"),
}


def encode(definition: Struct, version: int, *, flexible: bool, body: Mapping[str, Any]) -> bytes:
    """Write a message."""
    writer = _Writer(version, flexible=flexible)
    writer.struct(definition, body)
    return bytes(writer.out)


def decode(definition: Struct, version: int, *, flexible: bool, data: bytes) -> dict[str, Any]:
    """Read a message. ValueError when bytes are missing or left over."""
    reader = _Reader(data, version, flexible=flexible)
    body = reader.struct(definition)
    if reader.position != len(data):
        raise ValueError(f"{definition.name} v{version}: {len(data) - reader.position} bytes too many: {data.hex()}")
    return body


def unsigned_varint(value: int) -> bytes:
    """Write an unsigned number in groups of seven bits, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Writer:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self.out = bytearray()
        self._version = version
        self._flexible = flexible

    def struct(self, definition: Struct, body: Mapping[str, Any]) -> None:
        unknown = set(body) - {field.name for field in definition.fields} - {UNKNOWN_TAGS}
        if unknown:
            raise KeyError(f"{definition.name} has no field {', '.join(sorted(unknown))}")
        tagged: dict[int, bytes] = dict(body.get(UNKNOWN_TAGS, {}))
        for field in definition.fields:
            if self._version not in field.versions:
                continue
            value = body.get(field.name, field.default)
            if self._version not in field.tagged:
                self._value(field, value)
            elif field.name in body:
                assert field.tag is not None
                within = _Writer(self._version, flexible=self._flexible)
                within._value(field, value)
                tagged[field.tag] = bytes(within.out)
        if self._flexible:
            self.out += unsigned_varint(len(tagged))
            for tag, data in sorted(tagged.items()):
                self.out += unsigned_varint(tag) + unsigned_varint(len(data)) + data

    def _value(self, field: Field, value: Any) -> None:
        if not field.array:
            if field.kind == "struct" and self._version in field.nullable:
                self.out += b"\xff" if value is None else b"\x01"
                if value is None:
                    return
            self._single(field, value)
            return
        self._length(None if value is None else len(value), ">i")
        for element in value or ():
            self._single(field, element)

    def _single(self, field: Field, value: Any) -> None:
        if field.struct is not None:
            self.struct(field.struct, value)
        elif field.kind in _FIXED:
            self.out += _FIXED[field.kind].pack(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            self._length(None if data is None else len(data), ">h" if field.kind == "string" else ">i")
            self.out += data or b""

    def _length(self, length: int | None, classic: str) -> None:
        if self._flexible:
            self.out += unsigned_varint(0 if length is None else length + 1)
        else:
            self.out += struct.pack(classic, -1 if length is None else length)


class _Reader:
    def __init__(self, data: bytes, version: int, *, flexible: bool) -> None:
        self.position = 0
        self._data = data
        self._version = version
        self._flexible = flexible

    def struct(self, definition: Struct) -> dict[str, Any]:
        body: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in definition.fields:
            if self._version not in field.versions:
                continue
            if self._version in field.tagged:
                assert field.tag is not None
                tagged[field.tag] = field
                body[field.name] = field.default
            else:
                body[field.name] = self._value(field)
        if self._flexible:
            self._read_tags(tagged, body)
        return body

    def _read_tags(self, tagged: dict[int, Field], body: dict[str, Any]) -> None:
        for _ in range(self._unsigned_varint()):
            tag = self._unsigned_varint()
            end = self._unsigned_varint() + self.position
            if tag in tagged:
                body[tagged[tag].name] = self._value(tagged[tag])
                if self.position != end:
                    raise ValueError(f"tag {tag} has another size than its value")
            else:
                body.setdefault(UNKNOWN_TAGS, {})[tag] = self._take(end - self.position)

    def _value(self, field: Field) -> Any:
        if field.array:
            count = self._length(">i")
            return None if count is None else [self._single(field) for _ in range(count)]
        if field.kind == "struct" and self._version in field.nullable and self._take(1) == b"\xff":
            return None
        return self._single(field)

    def _single(self, field: Field) -> Any:
        if field.struct is not None:
            return self.struct(field.struct)
        if field.kind in _FIXED:
            layout = _FIXED[field.kind]
            return layout.unpack(self._take(layout.size))[0]
        length = self._length(">h" if field.kind == "string" else ">i")
        if length is None:
            return None
        data = self._take(length)
        return data.decode() if field.kind == "string" else data

    def _length(self, classic: str) -> int | None:
        if self._flexible:
            length = self._unsigned_varint() - 1
        else:
            [length] = struct.unpack(classic, self._take(struct.calcsize(classic)))
        return None if length < 0 else length

    def _unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            [byte] = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _take(self, size: int) -> bytes:
        data = self._data[self.position : self.position + size]
        if len(data) != size:
            raise ValueError(f"{size} bytes wanted, {len(data)} there")
        self.position += size
        return data
