"""Settings of topics, brokers and groups beside a real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared

if TYPE_CHECKING:
    from wire.client import Wire

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(wire: Wire, version: int, kind: int, name: str, keys: list[str] | None = None, **more: Any) -> None:
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}
    wire.call("DescribeConfigs", version, Resources=[resource], **more)


def alter(
    wire: Wire, kind: int, name: str, *changes: tuple[str, int, str | None], version: int = 1, **more: Any
) -> None:
    """Change settings one by one, and wait until a description shows what Kafka's controller has settled."""
    wanted = [{"Name": key, "ConfigOperation": operation, "Value": value} for key, operation, value in changes]
    resource = {"ResourceType": kind, "ResourceName": name, "Configs": wanted}
    wire.call("IncrementalAlterConfigs", version, Resources=[resource], **more)


def settle(wire: Wire, name: str, key: str, value: str) -> None:
    """Wait until a topic's setting has this value."""
    resource = {"ResourceType": TOPIC, "ResourceName": name, "ConfigurationKeys": [key]}

    def there() -> bool:
        [result] = wire.ask("DescribeConfigs", 4, Resources=[resource])["Results"]
        return bool(result["Configs"][0]["Value"] == value)

    wire.until(there)


class TestDescribeConfigs:
    @compared("beside_kafka_4")
    def test_t68_a_topic(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, retention_ms="1000", cleanup_policy="compact")
        for version in wire.versions("DescribeConfigs"):
            describe(wire, version, TOPIC, name)
            describe(wire, version, TOPIC, name, IncludeSynonyms=True)
            describe(wire, version, TOPIC, name, ["retention.ms", "nope", "cleanup.policy"])
            describe(wire, version, TOPIC, name, [])

    @pytest.mark.parametrize("broker", ["1", ""])
    @compared("beside_kafka_4")
    def test_t68_a_broker(self, wire: Wire, broker: str) -> None:
        describe(wire, 4, BROKER, broker, IncludeSynonyms=True)
        describe(wire, 1, BROKER, broker)
        describe(wire, 1, BROKER, broker, ["log.retention.ms", "broker.id", "nope"])

    @pytest.mark.parametrize(
        ("kind", "resource"),
        [
            *((TOPIC, resource) for resource in ("unknown", "", "a/b")),
            *((BROKER, resource) for resource in ("9", "x", "-1", " ")),
            *((BROKER_LOGGER, resource) for resource in ("9", "x", "")),
            *((GROUP, resource) for resource in ("unknown", "")),
            *((CLIENT_METRICS, resource) for resource in ("unknown", "")),
            *((kind, "x") for kind in (0, 1, 3, 64, -1, 127)),
        ],
    )
    @compared("beside_kafka_4")
    def test_t68_what_is_not_there(self, wire: Wire, kind: int, resource: str) -> None:
        for version in (1, 4):
            describe(wire, version, kind, resource)

    @compared("beside_kafka_4")
    def test_documentation_is_given_when_asked_for(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        describe(wire, 4, TOPIC, name, ["retention.ms"], IncludeDocumentation=True)

    @compared("beside_kafka_4")
    def test_a_resource_named_twice(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        resource = {"ResourceType": TOPIC, "ResourceName": name, "ConfigurationKeys": ["retention.ms"]}
        wire.call("DescribeConfigs", 4, Resources=[resource, resource])


class TestIncrementalAlterConfigs:
    @compared("beside_kafka_4")
    def test_t69_operations(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        alter(wire, TOPIC, name, ("retention.ms", SET, "1000"), ("segment.ms", SET, "5000"), version=0)
        settle(wire, name, "retention.ms", "1000")
        alter(wire, TOPIC, name, ("cleanup.policy", APPEND, "compact"))
        settle(wire, name, "cleanup.policy", "delete,compact")
        alter(wire, TOPIC, name, ("cleanup.policy", SUBTRACT, "delete"))
        settle(wire, name, "cleanup.policy", "compact")
        alter(wire, TOPIC, name, ("retention.ms", DELETE, None))
        settle(wire, name, "retention.ms", "604800000")
        describe(wire, 4, TOPIC, name, ["retention.ms", "segment.ms", "cleanup.policy"], IncludeSynonyms=True)

    @pytest.mark.parametrize(
        "changes",
        [
            [("retention.ms", SET, "abc")],
            [("retention.ms", SET, "-2")],
            [("retention.ms", SET, "")],
            [("retention.ms", SET, None)],
            [("retention.ms", APPEND, "5")],
            [("retention.ms", SUBTRACT, "5")],
            [("retention.ms", 7, "5")],
            [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
            [("nope", SET, "5")],
            [("nope", DELETE, None)],
            [("", SET, "5")],
            [("cleanup.policy", SET, "shred")],
            [("cleanup.policy", APPEND, "delete")],
            [("cleanup.policy", SUBTRACT, "compact")],
            [("cleanup.policy", APPEND, None)],
            [("cleanup.policy", SET, "")],
            [("compression.type", SET, "rar")],
            [("min.insync.replicas", SET, "0")],
            [("unclean.leader.election.enable", SET, "maybe")],
            [("min.cleanable.dirty.ratio", SET, "2")],
            [("min.cleanable.dirty.ratio", SET, "x")],
            [("max.message.bytes", SET, "99999999999")],
            [("message.timestamp.type", SET, "Never")],
            [("segment.bytes", SET, "1")],
            [("retention.ms", SET, "5"), ("nope", SET, "5")],
            [],
        ],
        ids=str,
    )
    @compared("beside_kafka_4")
    def test_t69_topic_changes_one_by_one(
        self, wire: Wire, name: str, changes: list[tuple[str, int, str | None]]
    ) -> None:
        wire.create_topic(name)
        alter(wire, TOPIC, name, *changes, ValidateOnly=True)

    @pytest.mark.parametrize(
        ("kind", "resource"),
        [
            *((TOPIC, resource) for resource in ("unknown", "", "a/b")),
            *((BROKER, resource) for resource in ("9", "x", "-1")),
            *((BROKER_LOGGER, resource) for resource in ("9", "x")),
            *((kind, "x") for kind in (0, 1, 3, 64, -1)),
        ],
    )
    @compared("beside_kafka_4")
    def test_what_is_not_there(self, wire: Wire, kind: int, resource: str) -> None:
        alter(wire, kind, resource, ("retention.ms", SET, "5"))

    @pytest.mark.parametrize(
        "change",
        [
            ("log.retention.ms", SET, "1000"),
            ("log.retention.ms", SET, "abc"),
            ("log.retention.ms", DELETE, None),
            ("broker.id", SET, "5"),
            ("log.dirs", SET, "/tmp"),
            ("nope", SET, "5"),
            ("num.io.threads", SET, "9"),
            ("num.io.threads", SET, "100"),
            ("message.max.bytes", SET, "-1"),
            ("log.cleanup.policy", APPEND, "compact"),
            ("advertised.listeners", SET, "PLAINTEXT://elsewhere:9092"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("broker", ["1", ""])
    @compared("beside_kafka_4")
    def test_broker_changes(self, wire: Wire, broker: str, change: tuple[str, int, str | None]) -> None:
        alter(wire, BROKER, broker, change, ValidateOnly=True)

    @compared("beside_kafka_4")
    def test_a_resource_named_twice(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        one = {"ResourceType": TOPIC, "ResourceName": name}
        configs = [{"Name": "retention.ms", "ConfigOperation": SET, "Value": "5"}]
        wire.call("IncrementalAlterConfigs", 1, Resources=[{**one, "Configs": configs}, {**one, "Configs": []}])


class TestAlterConfigs:
    @compared("beside_kafka_4")
    def test_t69_all_is_replaced(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, retention_ms="1000", segment_ms="5000")
        for version, value in zip(wire.versions("AlterConfigs"), ("2000", "3000", "4000"), strict=True):
            configs = [{"Name": "retention.ms", "Value": value}]
            resource = {"ResourceType": TOPIC, "ResourceName": name, "Configs": configs}
            wire.call("AlterConfigs", version, Resources=[resource], ValidateOnly=True)
            wire.call("AlterConfigs", version, Resources=[resource])
            settle(wire, name, "retention.ms", value)
            describe(wire, 4, TOPIC, name, ["retention.ms", "segment.ms"], IncludeSynonyms=True)

    @pytest.mark.parametrize(
        ("kind", "resource", "configs"),
        [
            (TOPIC, None, [("retention.ms", "abc")]),
            (TOPIC, None, [("retention.ms", None)]),
            (TOPIC, None, [("nope", "1")]),
            (TOPIC, None, [("retention.ms", "1"), ("retention.ms", "2")]),
            (TOPIC, "unknown", [("retention.ms", "1")]),
            (BROKER, "9", [("log.retention.ms", "1")]),
            (BROKER, "1", [("broker.id", "1")]),
            (BROKER_LOGGER, "1", [("kafka", "INFO")]),
            (3, "x", [("retention.ms", "1")]),
        ],
        ids=str,
    )
    @compared("beside_kafka_4")
    def test_refusals(
        self, wire: Wire, name: str, kind: int, resource: str | None, configs: list[tuple[str, str | None]]
    ) -> None:
        wire.create_topic(name)
        wanted = [{"Name": key, "Value": value} for key, value in configs]
        one = {"ResourceType": kind, "ResourceName": name if resource is None else resource, "Configs": wanted}
        wire.call("AlterConfigs", 2, Resources=[one], ValidateOnly=True)


class TestListConfigResources:
    @compared("beside_kafka_4")
    def test_by_kind(self, wire: Wire) -> None:
        for kinds in ([BROKER], [BROKER_LOGGER], [BROKER, BROKER_LOGGER], [GROUP], [CLIENT_METRICS], [3], [0], [-1]):
            wire.call("ListConfigResources", 1, ResourceTypes=kinds)
        wire.call("ListConfigResources", 0)
