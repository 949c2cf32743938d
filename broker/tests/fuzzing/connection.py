"""Bytes that a client sends: as a stream, and as one frame whose size is right.

Invariant: only ProtocolError escapes. What is received in pieces is the same requests, and the same refusal, as what is
received at once. A message that decodes encodes, and those bytes decode to a message that encodes to the same bytes. A
connection holds no more buffer than for the frame that is coming in.
"""

import struct
from collections.abc import Iterator
from typing import Any

from recorded import load_corpus

from odradek_protocol.codec import decode, encode
from odradek_protocol.connection import LARGEST_KEPT, SMALL_BUFFER, Buffers, Request, ServerConnection
from odradek_protocol.errors import ProtocolError
from odradek_protocol.messages import load_all
from odradek_protocol.schema import apis

load_all()

MAX_REQUEST_BYTES = 1 << 20
"""The limit of the connections here, so that a broken one shows in the memory of the process."""

_SIZE = struct.Struct(">i")
_KEY_AND_VERSION = struct.Struct(">hh")
_REQUEST_START_BYTES = 8


def seeds() -> Iterator[bytes]:
    """Each recorded frame, and two of them that follow one another."""
    before = b""
    for recorded in load_corpus():
        stream = _SIZE.pack(len(recorded.frame)) + recorded.frame
        yield recorded.frame
        yield before + stream
        before = stream


def check(data: bytes) -> None:
    """Hold the invariant for one input."""
    check_stream(data)
    check_stream(_SIZE.pack(len(data)) + data)
    check_reply(data)


def check_stream(data: bytes) -> None:
    """The same outcome whole, byte by byte, and cut in the middle."""
    whole = outcome(data, len(data) or 1)
    assert outcome(data, 1) == whole
    assert outcome(data, len(data) // 2 or 1) == whole


def outcome(data: bytes, piece_bytes: int) -> tuple[list[tuple[int, int, int, bytes]], bool]:
    """The requests that come of `data`, by API key, version, correlation id and body; and whether one was refused."""
    buffers = Buffers()
    connection = ServerConnection(buffers, MAX_REQUEST_BYTES)
    found = []
    try:
        for start in range(0, len(data), piece_bytes):
            connection.receive_data(data[start : start + piece_bytes])
            while (request := connection.next_request()) is not None:
                found.append((request.api.key, request.version, request.correlation_id, body_bytes(request)))
            assert buffers.lent_bytes <= max(2 * (MAX_REQUEST_BYTES + 4), 2 * SMALL_BUFFER)
    except ProtocolError:
        return found, True
    finally:
        connection.close()
        assert buffers.lent_bytes == 0
        assert buffers.kept_bytes <= LARGEST_KEPT
    return found, False


def body_bytes(request: Request[Any]) -> bytes:
    """The body as it is encoded again, which has to be stable."""
    assert isinstance(request.body, request.api.request)
    return stable(request.body, request.version, flexible=request.version >= request.api.flexible)


def stable(body: Any, version: int, *, flexible: bool) -> bytes:
    """The encoding of a message, checked to decode to the same one."""
    encoded = encode(body, version, flexible=flexible)
    again = decode(type(body), version, encoded, flexible=flexible)
    assert encode(again, version, flexible=flexible) == encoded
    return encoded


def check_reply(data: bytes) -> None:
    """What follows a request's first fields, as the reply to that API in that version."""
    if len(data) < _REQUEST_START_BYTES:
        return
    key, version = _KEY_AND_VERSION.unpack_from(data)
    api = apis.get(key)
    if api is None or not api.first <= version <= api.last:
        return
    flexible = version >= api.flexible
    try:
        body = decode(api.response, version, data[_REQUEST_START_BYTES:], flexible=flexible)
    except ProtocolError:
        return
    stable(body, version, flexible=flexible)
