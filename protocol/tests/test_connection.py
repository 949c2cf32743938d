"""Frames in and out of a connection, however the bytes are cut."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek_protocol import schema
from odradek_protocol.connection import SMALL_BUFFER, Buffers, ClientConnection, Request, ServerConnection
from odradek_protocol.errors import Error, ProtocolError
from odradek_protocol.header import request_header
from odradek_protocol.messages import load_all
from odradek_protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek_protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek_protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek_protocol.schema import apis, int16, int32, message

load_all()

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=7, member_id="m", group_instance_id=None)


def heartbeat_frame(version: int, client_id: str | None = "me") -> bytes:
    return ClientConnection(client_id).send(HEARTBEAT, version)


def produce_frame(size: int) -> bytes:
    data = PartitionProduceData(index=0, records=memoryview(bytes(index % 251 for index in range(size))))
    topic = TopicProduceData(name="t", partition_data=[data])
    return ClientConnection("me").send(ProduceRequest(acks=1, timeout_ms=5, topic_data=[topic]), 9)


def whole(connection: ServerConnection, data: bytes) -> list[Request[object]]:
    connection.receive_data(data)
    return drain(connection)


def byte_by_byte(connection: ServerConnection, data: bytes) -> list[Request[object]]:
    requests = []
    for index in range(len(data)):
        connection.receive_data(data[index : index + 1])
        requests += drain(connection)
    return requests


def drain(connection: ServerConnection) -> list[Request[object]]:
    requests = []
    while (request := connection.next_request()) is not None:
        requests.append(request)
    return requests


@pytest.mark.parametrize("feed", [whole, byte_by_byte])
@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("client_id", [None, "", "me"])
def test_requests_arrive_however_they_are_cut(
    feed: Callable[[ServerConnection, bytes], list[Request[HeartbeatRequest]]], version: int, client_id: str | None
) -> None:
    frame = heartbeat_frame(version, client_id)
    requests = feed(ServerConnection(), frame + frame)
    assert [(one.version, one.client_id, one.body) for one in requests] == [(version, client_id, HEARTBEAT)] * 2
    assert [one.size for one in requests] == [len(frame) - 4] * 2


def test_bytes_of_the_next_frame_stay_pending() -> None:
    frame = heartbeat_frame(4)
    connection = ServerConnection()
    assert len(whole(connection, frame + frame[:5])) == 1
    assert connection.pending_bytes == 5
    assert len(whole(connection, frame[5:])) == 1
    assert connection.pending_bytes == 0


@given(st.lists(st.integers(0, 3 * SMALL_BUFFER), max_size=6), st.lists(st.integers(1, 2 * SMALL_BUFFER), min_size=1))
@settings(max_examples=60)
def test_frames_of_any_size_arrive_in_chunks_of_any_size(sizes: list[int], chunks: list[int]) -> None:
    stream = b"".join(map(produce_frame, sizes))
    connection = ServerConnection()
    got: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        buffer = connection.receive_buffer()
        size = min(chunks[turn % len(chunks)], len(buffer), len(stream) - position)
        buffer[:size] = stream[position : position + size]
        connection.received(size)
        position, turn = position + size, turn + 1
        while (request := connection.next_request()) is not None:
            got.append(bytes(request.body.topic_data[0].partition_data[0].records))
    assert got == [bytes(index % 251 for index in range(size)) for size in sizes]


def test_records_are_a_view_of_the_receive_buffer() -> None:
    connection = ServerConnection()
    (request,) = whole(connection, produce_frame(100))
    assert isinstance(request.body, ProduceRequest)
    records = request.body.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert not records.readonly


class TestLimits:
    """What may not come is refused before anything is allocated for it."""

    @pytest.mark.parametrize("size", [-1, -(2**31), 0, 7])
    def test_impossible_sizes(self, size: int) -> None:
        connection = ServerConnection()
        with pytest.raises(ProtocolError, match=str(size)):
            whole(connection, struct.pack(">i", size))

    def test_the_largest_frame_passes_and_one_byte_more_does_not(self) -> None:
        frame = heartbeat_frame(4)
        limit = len(frame) - 4
        assert len(whole(ServerConnection(max_request_bytes=limit), frame)) == 1
        with pytest.raises(ProtocolError, match=str(limit)):
            whole(ServerConnection(max_request_bytes=limit - 1), frame)

    def test_nothing_is_allocated_for_a_frame_over_the_limit(self) -> None:
        buffers = Buffers()
        connection = ServerConnection(buffers, max_request_bytes=1000)
        with pytest.raises(ProtocolError):
            whole(connection, struct.pack(">i", 1001))
        assert buffers.lent_bytes == SMALL_BUFFER

    def test_http_is_refused(self) -> None:
        with pytest.raises(ProtocolError):
            whole(ServerConnection(), b"GET / HTTP/1.1\r\n\r\n")

    def test_a_tls_hello_is_refused(self) -> None:
        with pytest.raises(ProtocolError):
            whole(ServerConnection(), bytes.fromhex("1603010200010001fc0303") + bytes(32))

    @pytest.mark.parametrize(("key", "version"), [(999, 0), (-1, 0), (12, 5), (12, -1), (0, 2), (1, 3)])
    def test_t07_unknown_keys_and_versions(self, key: int, version: int) -> None:
        header = request_header(key, version, 1, "me", flexible=False)
        with pytest.raises(ProtocolError, match=f"{version}"):
            whole(ServerConnection(), struct.pack(">i", len(header)) + header)

    @given(st.binary(max_size=300))
    def test_only_protocol_errors_escape(self, data: bytes) -> None:
        connection = ServerConnection()
        try:
            whole(connection, struct.pack(">i", len(data)) + data)
        except ProtocolError:
            return

    def test_t10_a_body_cut_short_is_refused_at_every_byte(self) -> None:
        body = heartbeat_frame(4)[4:]
        for size in range(8, len(body)):
            with pytest.raises(ProtocolError):
                whole(ServerConnection(), struct.pack(">i", size) + body[:size])

    def test_t10_trailing_bytes_are_accepted(self) -> None:
        body = heartbeat_frame(4)[4:] + b"more"
        (request,) = whole(ServerConnection(), struct.pack(">i", len(body)) + body)
        assert request.body == HEARTBEAT


class TestBuffers:
    """An idle connection holds no memory."""

    def test_an_idle_connection_gives_its_buffer_back(self) -> None:
        buffers = Buffers()
        connection = ServerConnection(buffers)
        whole(connection, produce_frame(200_000))
        assert buffers.lent_bytes == 262_144
        connection.release()
        assert (buffers.lent_bytes, buffers.kept_bytes) == (0, 262_144 + SMALL_BUFFER)

    def test_pending_bytes_keep_the_buffer(self) -> None:
        buffers = Buffers()
        connection = ServerConnection(buffers)
        connection.receive_data(b"\0\0")
        connection.release()
        assert buffers.lent_bytes == SMALL_BUFFER
        connection.close()
        assert buffers.lent_bytes == 0

    def test_the_next_buffer_is_as_large_as_the_last_frame(self) -> None:
        connection = ServerConnection(Buffers())
        whole(connection, produce_frame(200_000))
        connection.release()
        assert len(connection.receive_buffer()) == 262_144

    def test_what_is_kept_is_bounded(self) -> None:
        buffers = Buffers(max_kept_bytes=2 * SMALL_BUFFER)
        for buffer in [buffers.borrow(1) for _ in range(3)]:
            buffers.give_back(buffer)
        assert buffers.kept_bytes == 2 * SMALL_BUFFER

    def test_a_small_one_counts_among_what_is_kept(self) -> None:
        buffers = Buffers(max_kept_bytes=3 * SMALL_BUFFER)
        small, larger, other = buffers.borrow(1), buffers.borrow(2 * SMALL_BUFFER), buffers.borrow(1)
        for buffer in (larger, small, other):
            buffers.give_back(buffer)
        assert (buffers.kept_bytes, buffers.lent_bytes) == (3 * SMALL_BUFFER, 0)
        none = Buffers(max_kept_bytes=0)
        none.give_back(none.borrow(1))
        assert (none.kept_bytes, none.lent_bytes) == (0, 0)

    def test_the_largest_buffers_are_not_kept(self) -> None:
        buffers = Buffers(max_kept_bytes=1 << 40)
        buffers.give_back(buffers.borrow(16 * 1024 * 1024))
        assert buffers.kept_bytes == 16 * 1024 * 1024
        buffers.give_back(buffers.borrow(16 * 1024 * 1024 + 1))
        assert buffers.kept_bytes == 16 * 1024 * 1024


class TestApiVersions:
    """The one request that is answered whatever its version."""

    def test_t01_an_unknown_version_is_answered_in_version_0(self) -> None:
        connection = ServerConnection()
        header = request_header(18, 127, 1, "me", flexible=True)
        (request,) = whole(connection, struct.pack(">i", len(header) + 3) + header + b"\1\2\3")
        assert not request.supported
        this = ApiVersion(api_key=18, min_version=0, max_version=5)
        reply = connection.reply(request, ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[this]))
        assert reply.hex() == "00000010" + "00000001" + "0023" + "00000001" + "001200000005"

    @pytest.mark.parametrize("version", range(6))
    def test_t02_the_reply_header_has_no_tags(self, version: int) -> None:
        client, server = ClientConnection(), ServerConnection()
        asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        (request,) = whole(server, client.send(asked, version))
        reply = server.reply(request, ApiVersionsResponse(error_code=0, api_keys=()))
        assert reply[4:10].hex() == "00000001" + "0000"
        client.receive_data(reply)
        assert client.next_reply() == ApiVersionsResponse(error_code=0, api_keys=())


def test_t08_t09_tagged_fields_of_the_header_are_skipped() -> None:
    header = request_header(12, 4, 1, None, flexible=False)
    tags = bytes([2, 99, 3]) + b"abc" + bytes([100, 0])
    body = heartbeat_frame(4)[4 + len(request_header(12, 4, 1, "me", flexible=True)) :]
    frame = header + tags + body
    (request,) = whole(ServerConnection(), struct.pack(">i", len(frame)) + frame)
    assert (request.client_id, request.body) == (None, HEARTBEAT)
    cut = header + bytes([1, 99, 120]) + body
    with pytest.raises(ProtocolError):
        whole(ServerConnection(), struct.pack(">i", len(cut)) + cut)


def test_the_oldest_header_has_no_client_id() -> None:
    """Header v0, which ControlledShutdown has in its version 0."""

    @schema.struct
    class Shutdown:
        error_code: int = int16()

    try:

        @message(key=7, versions=(0, 1), response=Shutdown, client_id_since=1)
        class ShutdownRequest:
            broker_id: int = int32()

        for version, header in [(0, "0007000000000001"), (1, "0007000100000001" + "00026d65")]:
            frame = ClientConnection("me").send(ShutdownRequest(broker_id=5), version)
            assert frame[4:].hex() == header + "00000005"
            (request,) = whole(ServerConnection(), frame)
            assert (request.client_id, request.body) == ("me" if version else None, ShutdownRequest(broker_id=5))
    finally:
        apis.pop(7, None)


class TestClient:
    """The client's side takes replies in order only."""

    def pair(self, version: int) -> tuple[ClientConnection, bytes]:
        client, server = ClientConnection("me"), ServerConnection()
        (request,) = whole(server, client.send(HEARTBEAT, version))
        return client, server.reply(request, HeartbeatResponse(error_code=27, throttle_time_ms=3))

    @pytest.mark.parametrize("version", [1, 4])
    def test_reply_byte_by_byte(self, version: int) -> None:
        client, reply = self.pair(version)
        for index in range(len(reply)):
            assert client.next_reply() is None
            client.receive_data(reply[index : index + 1])
        assert client.next_reply() == HeartbeatResponse(error_code=27, throttle_time_ms=3)

    def test_another_correlation_id_is_refused(self) -> None:
        client, reply = self.pair(4)
        client.receive_data(reply[:7] + b"\x09" + reply[8:])
        with pytest.raises(ProtocolError, match="correlation"):
            client.next_reply()

    def test_trailing_bytes_are_refused(self) -> None:
        client, reply = self.pair(4)
        client.receive_data(struct.pack(">i", len(reply) - 3) + reply[4:] + b"x")
        with pytest.raises(ProtocolError, match="1 bytes behind"):
            client.next_reply()

    def test_a_reply_to_no_request_is_refused(self) -> None:
        _, reply = self.pair(4)
        client = ClientConnection()
        client.receive_data(reply)
        with pytest.raises(ProtocolError, match="no request"):
            client.next_reply()
