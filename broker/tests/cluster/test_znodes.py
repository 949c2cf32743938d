"""The znodes' paths and JSON, which real Kafka brokers and tools read too."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cluster import znodes
from odradek.cluster.view import Endpoint

TOPIC_ID = bytes.fromhex("645e490c8bd34f48a808b346e538f865")

registrations = st.builds(
    znodes.BrokerRegistration,
    st.dictionaries(
        st.from_regex(r"[A-Z]{1,8}", fullmatch=True),
        st.builds(
            Endpoint,
            st.sampled_from(["localhost", "10.0.0.1", "::1", "fe80::1", "host.example.org"]),
            st.integers(0, 65535),
            st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
        ),
    ),
    st.none() | st.text(max_size=10),
)
replicas = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=4).map(tuple)


def test_a_topic_is_written_as_kafka_writes_it() -> None:
    assignment = znodes.TopicAssignment(TOPIC_ID, {0: (1,), 1: (1, 2)})
    assert znodes.TopicZNode.path("t") == "/brokers/topics/t"
    assert znodes.TopicZNode.encode(assignment) == (
        b'{"version":3,"topic_id":"ZF5JDIvTT0ioCLNG5Tj4ZQ","partitions":{"0":[1],"1":[1,2]},'
        b'"adding_replicas":{},"removing_replicas":{}}'
    )


def test_a_partitions_state_is_written_as_kafka_writes_it() -> None:
    state = znodes.PartitionState(leader=1, leader_epoch=2, isr=(1, 3), controller_epoch=4)
    assert znodes.PartitionStateZNode.path("t", 7) == "/brokers/topics/t/partitions/7/state"
    assert znodes.PartitionStateZNode.encode(state) == (
        b'{"controller_epoch":4,"leader":1,"version":1,"leader_epoch":2,"isr":[1,3]}'
    )


def test_a_broker_is_written_as_kafka_writes_it() -> None:
    endpoints = {"INSIDE": Endpoint("::1", 9093, "SSL"), "OUTSIDE": Endpoint("example.org", 9092)}
    data = znodes.BrokerZNode.encode(znodes.BrokerRegistration(endpoints, "r1"), 1700000000000)
    assert znodes.BrokerZNode.path(5) == "/brokers/ids/5"
    assert json.loads(data) == {
        "version": 5,
        "host": "example.org",
        "port": 9092,
        "endpoints": ["INSIDE://[::1]:9093", "OUTSIDE://example.org:9092"],
        "jmx_port": -1,
        "timestamp": "1700000000000",
        "listener_security_protocol_map": {"INSIDE": "SSL", "OUTSIDE": "PLAINTEXT"},
        "features": {},
        "rack": "r1",
    }


def test_a_broker_without_a_plaintext_endpoint_has_no_host() -> None:
    data = znodes.BrokerZNode.encode(znodes.BrokerRegistration({"SSL": Endpoint("h", 1, "SSL")}, None), 0)
    assert json.loads(data)["host"] is None
    assert json.loads(data)["port"] == -1
    assert "rack" not in json.loads(data)


def test_a_broker_of_an_older_kafka_is_read() -> None:
    data = b'{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092"]}'
    assert znodes.BrokerZNode.decode(1, data) == znodes.BrokerRegistration({"PLAINTEXT": Endpoint("h", 9092)}, None)


def test_the_small_ones() -> None:
    assert znodes.ClusterIdZNode.encode("MkU3OEVBNTcwNTJENDM2Qk") == b'{"version":"1","id":"MkU3OEVBNTcwNTJENDM2Qk"}'
    assert znodes.ControllerEpochZNode.encode(7) == b"7"
    assert znodes.ControllerZNode.encode(1, 5) == (
        b'{"version":2,"brokerid":1,"timestamp":"5","kraftControllerEpoch":-1}'
    )
    assert znodes.Config.encode({"retention.ms": "1"}) == b'{"version":1,"config":{"retention.ms":"1"}}'
    assert znodes.TopicConfigZNode.path("t") == "/config/topics/t"
    assert znodes.BrokerConfigZNode.path(3) == "/config/brokers/3"
    assert znodes.BrokerConfigZNode.path(None) == "/config/brokers/<default>"
    assert znodes.ProducerIdBlockZNode.encode(znodes.ProducerIdBlock(1, 1000, 1999)) == (
        b'{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}'
    )
    assert znodes.FeatureZNode.encode({"transaction.version": 2}) == (
        b'{"version":2,"status":1,"features":{"transaction.version":{"max_version_level":2}}}'
    )
    assert znodes.DeleteTopicZNode.path("t") == "/admin/delete_topics/t"


@given(registrations)
def test_a_broker_comes_back_as_it_was(registration: znodes.BrokerRegistration) -> None:
    assert znodes.BrokerZNode.decode(1, znodes.BrokerZNode.encode(registration, 0)) == registration


@given(st.binary(min_size=16, max_size=16), st.lists(replicas, max_size=12))
def test_a_topic_comes_back_as_it_was(topic_id: bytes, partitions: list[tuple[int, ...]]) -> None:
    assignment = znodes.TopicAssignment(topic_id, dict(enumerate(partitions)))
    decoded = znodes.TopicZNode.decode("t", znodes.TopicZNode.encode(assignment))
    assert decoded == assignment
    assert list(decoded.partitions) == list(assignment.partitions)


@given(st.integers(-1, 2**31 - 1), st.integers(0, 2**31 - 1), replicas, st.integers(0, 2**31 - 1))
def test_a_state_comes_back_as_it_was(leader: int, epoch: int, isr: tuple[int, ...], controller_epoch: int) -> None:
    state = znodes.PartitionState(leader, epoch, isr, controller_epoch)
    assert znodes.PartitionStateZNode.decode("t", 0, znodes.PartitionStateZNode.encode(state)) == state


@given(st.dictionaries(st.text(), st.text()))
def test_configs_come_back_as_they_were(configs: dict[str, str]) -> None:
    assert znodes.Config.decode("/c", znodes.Config.encode(configs)) == configs


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_comes_back_as_it_was(uuid: bytes) -> None:
    assert len(znodes.encode_uuid(uuid)) == 22
    assert znodes.decode_uuid(znodes.encode_uuid(uuid)) == uuid


DECODERS: list[Callable[[bytes], object]] = [
    znodes.ClusterIdZNode.decode,
    znodes.ControllerEpochZNode.decode,
    znodes.ControllerZNode.decode,
    znodes.ProducerIdBlockZNode.decode,
    znodes.FeatureZNode.decode,
    lambda data: znodes.BrokerZNode.decode(1, data),
    lambda data: znodes.TopicZNode.decode("t", data),
    lambda data: znodes.PartitionStateZNode.decode("t", 0, data),
    lambda data: znodes.Config.decode("/config/topics/t", data),
]

NONSENSE = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"{}",
    b"null",
    b'"text"',
    b'{"id":1,"brokerid":"x","broker":1,"block_start":"a","block_end":"b","endpoints":["x"],"partitions":{"x":[1]},'
    b'"topic_id":"ZF5JDIvTT0ioCLNG5Tj4ZQ","leader":true,"config":[]}',
    b'{"id":null,"endpoints":[7],"partitions":{"0":["x"]},"topic_id":"short","leader":1,"leader_epoch":1,"isr":5,'
    b'"controller_epoch":1,"block_start":1,"block_end":2,"broker":1,"config":null}',
]


@pytest.mark.parametrize("data", NONSENSE)
@pytest.mark.parametrize("decode", DECODERS)
def test_nonsense_is_a_value_error_that_names_the_path(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(ValueError, match="/"):
        decode(data)
