"""Frames that real clients sent, as golden bytes.

Invariant: each frame decodes, and encodes to the same bytes again. Cut or changed anywhere it decodes, or raises
ProtocolError; what decodes is of the request's type, and encodes again.
"""

import struct
from typing import Any

import pytest
from recorded import Recorded, load_corpus

from odradek_protocol.codec import encode
from odradek_protocol.connection import Request, ServerConnection
from odradek_protocol.errors import ProtocolError
from odradek_protocol.header import request_header
from odradek_protocol.messages import load_all

load_all()

CHANGES = (0x01, 0x80, 0xFF)
"""Bits to flip in each byte: the lowest, the sign (which is also a varint's "more follows"), and all."""


RECORDED = load_corpus()
each_frame = pytest.mark.parametrize("recorded", RECORDED, ids=str)


def read(frame: bytes) -> Request[Any]:
    connection = ServerConnection()
    connection.receive_data(struct.pack(">i", len(frame)) + frame)
    request = connection.next_request()
    assert request is not None
    return request


def write(request: Request[Any]) -> bytes:
    flexible = request.version >= request.api.flexible
    header = request_header(
        request.api.key, request.version, request.correlation_id, request.client_id, flexible=flexible
    )
    return header + encode(request.body, request.version, flexible=flexible)


def read_or_refuse(frame: bytes) -> None:
    try:
        request = read(frame)
    except ProtocolError:
        return
    assert isinstance(request.body, request.api.request)
    write(request)


def test_the_corpus_holds_what_clients_live_on() -> None:
    """Of each client: Produce, Fetch, ListOffsets, Metadata, the requests of a group, ApiVersions, CreateTopics."""
    by_client = {client: set[int]() for client in {one.client for one in RECORDED}}
    for one in RECORDED:
        by_client[one.client].add(one.key)
    assert len(by_client) == 4
    for keys in by_client.values():
        assert keys >= {0, 1, 2, 3, *range(8, 15), 18, 19}


@each_frame
def test_a_frame_is_read_and_written_as_it_came(recorded: Recorded) -> None:
    request = read(recorded.frame)
    assert (request.api.key, request.version) == (recorded.key, recorded.version)
    assert write(request) == recorded.frame


@each_frame
def test_a_frame_cut_anywhere_is_refused_or_another(recorded: Recorded) -> None:
    """Only a frame that ends where its body may end decodes: none does, as no message here has an optional tail."""
    for end in range(len(recorded.frame)):
        with pytest.raises(ProtocolError):
            read(recorded.frame[:end])


@each_frame
def test_a_frame_changed_anywhere_is_read_or_refused(recorded: Recorded) -> None:
    for position in range(len(recorded.frame)):
        for change in CHANGES:
            changed = bytearray(recorded.frame)
            changed[position] ^= change
            read_or_refuse(bytes(changed))
