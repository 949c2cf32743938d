"""Negotiation, and every API and version that both brokers serve, asked with requests made from definitions alone."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from wire.comparison import compared

if TYPE_CHECKING:
    from wire.client import Wire

SERVED = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup"),
    *("Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersions"),
    *("CreateTopics", "DeleteTopics", "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "DescribeConfigs"),
    *("AlterConfigs", "DescribeLogDirs", "CreatePartitions", "DeleteGroups", "IncrementalAlterConfigs"),
    *("OffsetDelete", "DescribeCluster", "ListConfigResources", "DescribeTopicPartitions"),
    *("AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit"),
    *("DescribeProducers", "DescribeTransactions", "ListTransactions"),
)
UNKNOWN_API = 999


@pytest.mark.parametrize("api", SERVED)
@compared("beside_kafka_4")
def test_t04_t09_t14_t15_every_version_answers_requests_of_any_shape(wire: Wire, api: str) -> None:
    for version in wire.versions(api):
        for shape, body in wire.shapes(api, version).items():
            wire.note("shape", f"{api} v{version} {shape}")
            wire.call(api, version, **(body | {"Acks": 1} if api == "Produce" else body))


@compared("beside_kafka_4")
def test_t02_t03_t05_t77_what_is_advertised(wire: Wire) -> None:
    for version in wire.versions("ApiVersions"):
        wire.call("ApiVersions", version, ClientSoftwareName="probe", ClientSoftwareVersion="1.0")


@compared("beside_kafka_4")
def test_t01_api_versions_at_an_unknown_version(wire: Wire) -> None:
    for flexible in (False, True):
        wire.send_frame(wire.header(18, 127, flexible=flexible) + b"\1\1\0")
        reply = wire.receive_frame()
        assert reply is not None
        wire.note("all but the range", reply[4:-2])
        wire.call("Metadata", 1, Topics=[])


@pytest.mark.parametrize(("software", "version"), [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a.", "1")])
@compared("beside_kafka_4")
def test_t16_the_clients_software_is_checked(wire: Wire, software: str, version: str) -> None:
    for api_version in (3, 4):
        wire.call("ApiVersions", api_version, ClientSoftwareName=software, ClientSoftwareVersion=version)


@pytest.mark.parametrize(("key", "version"), [(UNKNOWN_API, 0), (0, 99), (3, 99), (3, -1), (-1, 0)])
@compared("beside_kafka_4")
def test_t07_what_is_not_served_closes_the_connection(wire: Wire, key: int, version: int) -> None:
    wire.send_frame(wire.header(key, version, flexible=False) + bytes(20))
    wire.note("reply", wire.receive_frame())


@compared("beside_kafka_4")
def test_t08_a_client_without_a_name(wire: Wire) -> None:
    for version in (1, 12):
        for client_id in (None, "", "with spaces and \u00fc"):
            wire.send_frame(wire.frame("Metadata", version, client_id=client_id, Topics=[]))
            wire.receive("Metadata", version)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP"),
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">i", 104857601), id="size above the limit"),
        pytest.param(struct.pack(">i", 0), id="no bytes"),
        pytest.param(struct.pack(">ihh", 4, 3, 1), id="header cut short"),
        pytest.param(struct.pack(">ihhihi", 14, 3, 1, 7, -1, 5), id="body cut short"),
        pytest.param(struct.pack(">ihhihi", 14, 3, 1, 7, -1, 1 << 30), id="array longer than the request"),
        pytest.param(struct.pack(">ihhihih", 16, 3, 1, 7, -1, 1, -1), id="null where none may be"),
    ],
)
@compared("beside_kafka_4")
def test_t10_bytes_that_make_no_sense(wire: Wire, raw: bytes) -> None:
    wire.send_raw(raw)
    wire.note("reply", wire.receive_frame())
    wire.call("Metadata", 1, Topics=[])


@compared("beside_kafka_4")
def test_t10_bytes_behind_a_request_are_ignored(wire: Wire) -> None:
    wire.send_frame(wire.frame("Metadata", 1, Topics=[]) + b"rest")
    wire.receive("Metadata", 1)


@compared("beside_kafka_4")
def test_t11_replies_come_in_the_order_of_the_requests(wire: Wire) -> None:
    wire.create_topic("t11")
    wait = {"MaxWaitMs": 300, "MinBytes": 1, "Topics": []}
    wait["Topics"] = [{"Topic": "t11", "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 100}]}]
    wire.send("Fetch", 4, **wait)
    wire.send("Metadata", 1, Topics=[])
    wire.send("ListGroups", 0)
    wire.receive("Fetch", 4)
    wire.receive("Metadata", 1)


@compared("beside_kafka_4")
def test_t74_no_security_is_served_without_security(wire: Wire) -> None:
    for version in wire.versions("SaslHandshake"):
        for mechanism in ("PLAIN", "GSSAPI", "", "NONSENSE"):
            wire.call("SaslHandshake", version, Mechanism=mechanism)
