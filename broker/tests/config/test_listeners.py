"""Listeners: what is taken, and what is refused with its reason."""

import pytest

from odradek.config import BrokerConfig, ConfigError, Listener


def refusal(**settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig({key.replace("_", "."): value for key, value in settings.items()})
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "listeners"),
    [
        ("PLAINTEXT://:9092", [Listener("PLAINTEXT", "", 9092, "PLAINTEXT")]),
        ("plaintext://localhost:0", [Listener("PLAINTEXT", "localhost", 0, "PLAINTEXT")]),
        ("PLAINTEXT://[::1]:65535", [Listener("PLAINTEXT", "::1", 65535, "PLAINTEXT")]),
        ("PLAINTEXT://[fe80::1%eth0]:1", [Listener("PLAINTEXT", "fe80::1%eth0", 1, "PLAINTEXT")]),
    ],
)
def test_a_listener_is_name_host_and_port(text: str, listeners: list[Listener]) -> None:
    config = BrokerConfig({"listeners": text})
    assert config.listeners == listeners
    assert config.advertised_listeners is None


@pytest.mark.parametrize(
    "text", ["localhost:9092", "PLAINTEXT://localhost", "PLAINTEXT://h:65536", "PLAINTEXT://::1:9092", "://h:1"]
)
def test_a_malformed_listener_is_told_with_the_form(text: str) -> None:
    message = refusal(listeners=text)
    assert text in message
    assert "Expected NAME://host:port" in message


def test_several_named_listeners() -> None:
    config = BrokerConfig(
        {
            "listeners": "INTERNAL://10.0.0.1:9092, EXTERNAL://:0 ,LOCAL://localhost:0",
            "listener.security.protocol.map": "internal:plaintext,EXTERNAL:PLAINTEXT,LOCAL:PLAINTEXT",
            "inter.broker.listener.name": "external",
        }
    )
    assert [listener.name for listener in config.listeners] == ["INTERNAL", "EXTERNAL", "LOCAL"]
    assert config.inter_broker_listener_name == "EXTERNAL"
    assert str(config.listeners[0]) == "INTERNAL://10.0.0.1:9092"


def test_names_and_ports_are_not_used_twice() -> None:
    assert "different name" in refusal(listeners="PLAINTEXT://:1,plaintext://:2")
    protocols = "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"
    same = refusal(listeners="A://:9092,B://:9092", listener_security_protocol_map=protocols)
    assert "9092 is there twice" in same
    both = {"listeners": "A://127.0.0.1:9092,B://[::1]:9092", "listener.security.protocol.map": protocols}
    assert len(BrokerConfig(both).listeners) == 2
    third = both["listeners"] + ",C://127.0.0.2:9092"
    assert "9092 is there twice" in refusal(listeners=third, listener_security_protocol_map=protocols)


def test_a_listener_needs_a_security_protocol_that_is_served() -> None:
    assert "No security protocol defined for listener MINE" in refusal(listeners="MINE://:9092")
    for protocol in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        message = refusal(listeners=f"{protocol}://:9092")
        assert "Odradek serves PLAINTEXT only" in message
        assert protocol in message
    assert "TLS is no security protocol" in refusal(listener_security_protocol_map="PLAINTEXT:TLS")
    assert "NAME:PROTOCOL" in refusal(listener_security_protocol_map="PLAINTEXT")


def test_listeners_of_a_kraft_quorum_are_left_out() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.advertised_listeners == [Listener("PLAINTEXT", "localhost", 9092, "PLAINTEXT")]
    only = refusal(listeners="CONTROLLER://:9093", controller_listener_names="CONTROLLER")
    assert "at least one listener for clients" in only


def test_advertised_listeners_can_be_dialled() -> None:
    assert "0.0.0.0 cannot be advertised" in refusal(advertised_listeners="PLAINTEXT://0.0.0.0:9092")
    assert "Expected a host and a port" in refusal(advertised_listeners="PLAINTEXT://:9092")
    assert "Expected a host and a port" in refusal(advertised_listeners="PLAINTEXT://h:0")
    other = refusal(advertised_listeners="OTHER://h:1", listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:SSL")
    assert "Expected the name of one of the listeners: PLAINTEXT" in other
    assert "values must not be empty" in refusal(listeners="PLAINTEXT://:9092,")


def test_brokers_talk_through_a_listener_that_is_there() -> None:
    assert BrokerConfig().inter_broker_listener_name == "PLAINTEXT"
    assert "Expected the name of a listener" in refusal(inter_broker_listener_name="OTHER")
    assert "String must be one of" in refusal(security_inter_broker_protocol="TLS")


def test_connection_limits_of_addresses() -> None:
    config = BrokerConfig({"max.connections.per.ip.overrides": "127.0.0.1:7, localhost:0,[::1]:3"})
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 7, "localhost": 0, "::1": 3}
    assert BrokerConfig().max_connections_per_ip_overrides == {}
    for text in ("localhost", "localhost:x", ":5", "localhost:-1"):
        assert "host:count" in refusal(max_connections_per_ip_overrides=text)
    assert "overrides is set" in refusal(max_connections_per_ip="0")
    only = BrokerConfig({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "h:1"})
    assert only.max_connections_per_ip == 0
