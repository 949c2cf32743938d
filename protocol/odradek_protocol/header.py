"""Request and reply headers.

    request v0   api_key int16, api_version int16, correlation_id int32          (only ControlledShutdown v0)
    request v1   ... client_id nullable string
    request v2   ... client_id nullable string, tagged fields                    (flexible versions)
    reply v0     correlation_id int32
    reply v1     correlation_id int32, tagged fields                             (flexible, but for ApiVersions)

`client_id` keeps its int16 length in v2, so that a broker can read it before it knows the version. The reply to
ApiVersions has header v0 in every version, as the client does not know yet what the broker speaks (KIP-511).
Source: Kafka protocol guide, "Requests Headers"; KIP-482.
"""

import struct

from odradek_protocol.errors import ProtocolError
from odradek_protocol.varint import decode_uvarint

__all__ = [
    "API_VERSIONS",
    "MIN_REQUEST_SIZE",
    "read_client_id",
    "request_header",
    "request_header_v0",
    "skip_tags",
]

API_VERSIONS = 18
"""The key of ApiVersions, the one API whose header rules differ."""

MIN_REQUEST_SIZE = 8
"""Bytes of key, version and correlation id: what every request has."""

_read_int16 = struct.Struct(">h").unpack_from
_start = struct.Struct(">hhih")
_start_v0 = struct.Struct(">hhi")


def read_client_id(frame: memoryview, position: int) -> tuple[str | None, int]:
    """Read the client id at `position`, and give the position behind it.

    Raises ProtocolError when it is cut short or no UTF-8.
    """
    try:
        (size,) = _read_int16(frame, position)
        position += 2
        if size < 0:
            return None, position
        end = position + size
        if end > len(frame):
            raise ProtocolError(f"client id of {size} bytes is cut short")
        return frame[position:end].tobytes().decode(), end
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"client id: {error}") from error


def skip_tags(frame: memoryview, position: int) -> int:
    """The position behind the tagged fields at `position`; none is known in a header.

    Raises ProtocolError when they are cut short.
    """
    try:
        if frame[position] == 0:
            return position + 1
        count, position = decode_uvarint(frame, position)
        for _ in range(count):
            _, position = decode_uvarint(frame, position)
            size, position = decode_uvarint(frame, position)
            position += size
    except IndexError as error:
        raise ProtocolError("tagged fields of the header are cut short") from error
    if position > len(frame):
        raise ProtocolError("tagged fields of the header are cut short")
    return position


def request_header_v0(key: int, version: int, correlation_id: int) -> bytes:
    """The bytes of a request header without a client id."""
    return _start_v0.pack(key, version, correlation_id)


def request_header(key: int, version: int, correlation_id: int, client_id: str | None, *, flexible: bool) -> bytes:
    """The bytes of a request header, v2 when `flexible`, else v1."""
    name = b"" if client_id is None else client_id.encode()
    start = _start.pack(key, version, correlation_id, -1 if client_id is None else len(name))
    return start + name + b"\0" if flexible else start + name
