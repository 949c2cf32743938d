"""Stored messages: an int16 version, then the message in that version.

version int16 | message
"""

from typing import Any, TypeVar, cast

from odradek_protocol.codec import Encoder, decode, encoder
from odradek_protocol.errors import ProtocolError

__all__ = ["decode_newest", "decode_versioned", "encode_versioned", "read_version"]

T = TypeVar("T")

VERSION_BYTES = 2

_writers: dict[tuple[type, int], tuple[bytes, Encoder]] = {}


def read_version(data: bytes | memoryview) -> int:
    """The version that `data` starts with.

    Raises ProtocolError when it is shorter than that.
    """
    if len(data) < VERSION_BYTES:
        raise ProtocolError(f"{len(data)} bytes are too few for a version")
    return int.from_bytes(data[:VERSION_BYTES], "big", signed=True)


def encode_versioned(value: object, version: int) -> bytes:
    """The version and then `value` in that version.

    Raises ProtocolError when the message has no such version, or a value does not fit its field.
    """
    kind = type(value)
    prefix, write = _writers.get((kind, version)) or _writer(kind, version)
    parts: list[Any] = [prefix]
    write(value, parts.append)
    return b"".join(parts)


def _writer(kind: Any, version: int) -> tuple[bytes, Encoder]:
    _check_version(kind, version)
    prefix = version.to_bytes(VERSION_BYTES, "big", signed=True)
    entry = _writers[kind, version] = prefix, encoder(kind, version, version >= kind.FLEXIBLE)
    return entry


def decode_versioned(kind: type[T], data: bytes | memoryview) -> T:
    """Read a message of type `kind` in the version that `data` starts with; bytes behind it are not looked at.

    Raises ProtocolError when the message has no such version, or the bytes are no such message.
    """
    version = read_version(data)
    _check_version(kind, version)
    flexible = version >= cast(Any, kind).FLEXIBLE
    return cast(T, decode(kind, version, memoryview(data)[VERSION_BYTES:], flexible=flexible))


def decode_newest(kind: type[T], data: bytes | memoryview) -> T:
    """Read a message whose later versions, known or not, begin with what the versions before have.

    Raises ProtocolError when the bytes are no such message.
    """
    version = min(read_version(data), cast(Any, kind).VERSIONS[1])
    _check_version(kind, version)
    return cast(T, decode(kind, version, memoryview(data)[VERSION_BYTES:], flexible=False))


def _check_version(kind: Any, version: int) -> None:
    first, last = kind.VERSIONS
    if not first <= version <= last:
        raise ProtocolError(f"{kind.__name__} has versions {first} to {last}, not {version}")
