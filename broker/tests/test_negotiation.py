"""What a broker says before anything else, and to whom it does not talk."""

import socket

import pytest
from support.wire import TIMEOUT_S, WireClient, fetch_request

from odradek.handlers.registry import load_all, served
from odradek.testing import Broker
from odradek_protocol.codec import decode, encode
from odradek_protocol.errors import Error
from odradek_protocol.header import request_header
from odradek_protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek_protocol.messages.fetch import FetchRequest
from odradek_protocol.messages.metadata import MetadataRequest
from odradek_protocol.messages.produce import ProduceRequest
from odradek_protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek_protocol.schema import Api, Field, Struct

load_all()

SOFTWARE = ApiVersionsRequest(client_software_name="probe", client_software_version="1.0")


def api_versions(client: WireClient, version: int = 3) -> ApiVersionsResponse:
    reply: ApiVersionsResponse = client.call(SOFTWARE, version)
    return reply


def test_t01_api_versions_at_an_unknown_version(client: WireClient) -> None:
    client.send_frame(request_header(18, 127, 1, "probe", flexible=True) + b"\x06probe\x041.0\0")
    assert client.receive_frame().hex() == "00000001" + "0023" + "00000001" + "001200000005"
    assert api_versions(client).error_code == 0, "the connection goes on"


def test_t03_produce_and_fetch_are_advertised_from_0(client: WireClient) -> None:
    """Releases of librdkafka take a first version above 0 of Produce for a broker that cannot compress."""
    ranges = {one.api_key: (one.min_version, one.max_version) for one in api_versions(client).api_keys}
    assert (ranges[0], ranges[1]) == ((0, 13), (0, 18))


def minimal(kind: type[Struct]) -> Struct:
    """A request with nothing but zeros, empty strings and empty arrays."""
    return kind(**{field.name: _zero(field) for field in kind.FIELDS})


def _zero(field: Field) -> object:
    if field.kind == "struct" and field.absent_value is None and field.nullable_since is None:
        assert isinstance(field.of, type)
        return minimal(field.of)
    value = field.absent_value
    return b"" if field.kind == "records" else value


@pytest.mark.parametrize(
    ("api", "version"),
    [(api, version) for api in served() for version in range(api.first, api.last + 1)],
    ids=lambda value: value.name if isinstance(value, Api) else f"v{value}",
)
def test_t04_every_advertised_version_is_answered(broker: Broker, api: Api, version: int) -> None:
    request = minimal(api.request)
    if isinstance(request, ProduceRequest):
        request.acks = 1
    with WireClient(broker.port) as client:
        reply = client.call(request, version)
    assert isinstance(reply, api.response)


def test_t05_topic_ids_come_with_a_metadata_that_tells_them(client: WireClient) -> None:
    ranges = {one.api_key: (one.min_version, one.max_version) for one in api_versions(client).api_keys}
    assert ranges[3][1] >= 12
    assert (ranges[0][1], ranges[1][1], ranges[8][1], ranges[9][1], ranges[20][1]) == (13, 18, 10, 10, 6)


def test_t06_the_families_that_clients_need_at_start(client: WireClient) -> None:
    keys = {one.api_key for one in api_versions(client).api_keys}
    assert keys >= {0, 1, 2, 3, *range(8, 17), 18}


def test_t77_telemetry_is_not_advertised(client: WireClient) -> None:
    keys = {one.api_key for one in api_versions(client).api_keys}
    assert keys.isdisjoint({71, 72})


@pytest.mark.parametrize(
    ("key", "version"), [(999, 0), (76, 0), (3, 99), (29, 0)], ids=["key", "old", "new", "not served"]
)
def test_t07_unknown_keys_and_versions_close_the_connection(client: WireClient, key: int, version: int) -> None:
    client.send_frame(request_header(key, version, 1, "probe", flexible=False) + bytes(8))
    assert client.is_closed_by_broker()


@pytest.mark.parametrize("client_id", [None, "", "ünïcode"])
def test_t08_null_and_empty_client_ids(broker: Broker, client_id: str | None) -> None:
    with WireClient(broker.port, client_id) as client:
        assert api_versions(client).error_code == 0
        assert client.call(MetadataRequest(topics=()), 12).brokers


def test_t09_unknown_tagged_fields_are_skipped(client: WireClient) -> None:
    body = encode(MetadataRequest(topics=()), 12, flexible=True)
    assert body[-1:] == b"\0"
    client.send_frame(request_header(3, 12, 1, "probe", flexible=True) + body[:-1] + b"\x01\x63\x03abc")
    assert client.receive_frame()[:4].hex() == "00000001"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes.fromhex("ffffffff") + bytes(8),
        bytes.fromhex("16030102000100"),
        bytes.fromhex("06400001"),
        bytes.fromhex("0000000a") + request_header(3, 1, 1, None, flexible=False),
    ],
    ids=["http", "negative", "tls", "100 MiB and 1", "short"],
)
def test_t10_junk_closes_the_connection_and_the_broker_lives(broker: Broker, client: WireClient, data: bytes) -> None:
    client.send_raw(data)
    assert client.is_closed_by_broker()
    with WireClient(broker.port) as other:
        assert api_versions(other).error_code == 0


def test_t10_trailing_bytes_are_accepted(client: WireClient) -> None:
    body = encode(MetadataRequest(topics=None), 1, flexible=False)
    client.send_frame(request_header(3, 1, 1, "probe", flexible=False) + body + b"more")
    assert client.receive_frame()[:4].hex() == "00000001"


def test_t11_replies_come_in_the_order_of_the_requests(client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    client.send(fetch_request(topic, [(0, 0)], max_wait_ms=300), 12)
    client.send(SOFTWARE, 3)
    assert isinstance(client.receive(), FetchRequest.API.response)
    assert isinstance(client.receive(), ApiVersionsResponse)


@pytest.mark.parametrize(("name", "software_version"), [("", "1.0"), ("x", ""), ("-x", "1"), ("x y", "1"), ("x", "1.")])
def test_t16_the_name_of_the_client_is_checked(client: WireClient, name: str, software_version: str) -> None:
    asked = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    reply = client.call(asked, 3)
    assert (reply.error_code, list(reply.api_keys)) == (Error.INVALID_REQUEST, [])


def test_t16_another_cluster_or_node_is_meant(broker: Broker, client: WireClient) -> None:
    assert broker.node is not None
    right = broker.node.view.cluster_id
    answers = []
    for cluster_id, node_id in [(right, 1), (None, -1), ("other", 1), (right, 2)]:
        asked = ApiVersionsRequest(
            client_software_name="x", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        reply = client.call(asked, 5)
        answers.append((reply.error_code, bool(reply.api_keys)))
    assert answers == [(0, True), (0, True), (129, False), (129, False)]


def test_t74_sasl_on_a_plain_listener(client: WireClient) -> None:
    reply = client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (reply.error_code, list(reply.mechanisms)) == (Error.ILLEGAL_SASL_STATE, [])


def test_api_versions_of_version_0_is_a_list_of_ranges(client: WireClient) -> None:
    client.send_frame(request_header(18, 0, 7, "probe", flexible=False))
    frame = client.receive_frame()
    reply = decode(ApiVersionsResponse, 0, frame[4:], flexible=False)
    assert {one.api_key for one in reply.api_keys} == {api.key for api in served()}


def test_a_client_that_sends_nothing_hurts_nobody(broker: Broker) -> None:
    silent = [socket.create_connection(("127.0.0.1", broker.port), TIMEOUT_S) for _ in range(200)]
    try:
        with WireClient(broker.port) as client:
            assert api_versions(client).error_code == 0
    finally:
        for one in silent:
            one.close()
