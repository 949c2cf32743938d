"""The handlers of requests about settings, on a real controller and store.

The answers are those of a Kafka 4.3.1 (where it says so, 4.4.0) that was asked the same.
"""

import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from support.cluster import Cluster, cluster

from odradek.cluster.plans import NewTopic
from odradek.handlers.alter_configs import alter_configs
from odradek.handlers.describe_configs import describe_configs
from odradek.handlers.incremental_alter_configs import incremental_alter_configs
from odradek.handlers.list_config_resources import list_config_resources
from odradek_protocol.connection import Request
from odradek_protocol.messages import alter_configs as replace
from odradek_protocol.messages import incremental_alter_configs as change
from odradek_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from odradek_protocol.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
OK = (0, None)

Change = tuple[str, int, str | None]


class Admin(NamedTuple):
    """Asks the handlers of one broker; answers are (code, message)."""

    node: Cluster

    async def ask(self, handler: Callable[..., Coroutine[Any, Any, Any]], body: Any, version: int) -> Any:
        connection: Any = None
        return await handler(self.node, connection, Request(type(body).API, version, 0, "c", body))

    async def change(
        self, kind: int, name: str, *changes: Change, validate_only: bool = False, times: int = 1
    ) -> tuple[int, str | None]:
        configs = [change.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes]
        row = change.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        body = change.IncrementalAlterConfigsRequest(resources=[row] * times, validate_only=validate_only)
        reply = await self.ask(incremental_alter_configs, body, 1)
        assert len(reply.responses) == times
        assert len({(row.error_code, row.error_message) for row in reply.responses}) == 1
        return reply.responses[0].error_code, reply.responses[0].error_message

    async def replace(
        self, kind: int, name: str, *settings: tuple[str, str | None], validate_only: bool = False, times: int = 1
    ) -> tuple[int, str | None]:
        configs = [replace.AlterableConfig(name=key, value=value) for key, value in settings]
        row = replace.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        body = replace.AlterConfigsRequest(resources=[row] * times, validate_only=validate_only)
        reply = await self.ask(alter_configs, body, 2)
        assert len({(row.error_code, row.error_message) for row in reply.responses}) == 1
        return reply.responses[0].error_code, reply.responses[0].error_message

    async def describe(
        self,
        kind: int,
        name: str,
        keys: Sequence[str] | None = None,
        *,
        synonyms: bool = True,
        documentation: bool = False,
        version: int = 4,
    ) -> DescribeConfigsResult:
        row = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        body = DescribeConfigsRequest(resources=[row], include_synonyms=synonyms, include_documentation=documentation)
        reply = await self.ask(describe_configs, body, version)
        (result,) = reply.results
        assert isinstance(result, DescribeConfigsResult)
        return result

    async def one(self, kind: int, name: str, key: str) -> DescribeConfigsResourceResult:
        result = await self.describe(kind, name, [key])
        (config,) = result.configs
        return config


def told(config: DescribeConfigsResourceResult) -> tuple[str | None, int, list[tuple[str, str | None, int]]]:
    """Value, source and synonyms."""
    return config.value, config.config_source, [(each.name, each.value, each.source) for each in config.synonyms]


@asynccontextmanager
async def admin(folder: Path) -> AsyncIterator[Admin]:
    async with cluster(folder) as node:
        await node.controller.create_topic(NewTopic("t", configs={"cleanup.policy": "compact"}))
        yield Admin(node)


def with_admin(test: Callable[[Admin], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    """A test of the answers of a broker that has a topic `t`, compacted."""

    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        async def main() -> None:
            async with admin(tmp_path) as asked:
                await test(asked)

        trio.run(main)

    del run.__wrapped__  # pytest is to see the fixture that `run` takes
    return run


@with_admin
async def test_t68_a_topic_has_37_settings_with_source_and_synonyms(asked: Admin) -> None:
    result = await asked.describe(TOPIC, "t")
    assert (result.error_code, result.error_message, len(result.configs)) == (0, "", 37)
    configs = {config.name: config for config in result.configs}
    assert told(configs["cleanup.policy"]) == (
        "compact",
        1,
        [("cleanup.policy", "compact", 1), ("log.cleanup.policy", "delete", 5)],
    )
    assert told(configs["retention.ms"]) == ("604800000", 5, [])
    assert told(configs["segment.bytes"]) == ("1073741824", 5, [("log.segment.bytes", "1073741824", 5)])
    assert told(configs["min.cleanable.dirty.ratio"])[0] == "0.5"
    assert (configs["cleanup.policy"].config_type, configs["retention.ms"].config_type) == (7, 5)
    assert not any(config.read_only or config.is_sensitive for config in result.configs)
    assert {config.documentation for config in result.configs} == {None}


@with_admin
async def test_t68_a_broker_has_350_settings_246_of_them_read_only(asked: Admin) -> None:
    result = await asked.describe(BROKER, "1", documentation=True)
    assert (result.error_code, len(result.configs), sum(config.read_only for config in result.configs)) == (0, 350, 246)
    assert all(config.documentation for config in result.configs)
    configs = {config.name: config for config in result.configs}
    assert told(configs["node.id"]) == ("1", 4, [("node.id", "1", 4)])
    assert told(configs["broker.id"]) == ("1", 4, [("broker.id", "1", 4), ("broker.id", "-1", 5)])
    assert told(configs["log.retention.ms"]) == (None, 5, [])
    assert told(configs["log.cleaner.io.max.bytes.per.second"])[0] == "1.7976931348623157E308"
    password = configs["ssl.keystore.password"]
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)


@with_admin
async def test_t14_null_or_no_keys_ask_for_all(asked: Admin) -> None:
    everything = await asked.describe(TOPIC, "t", None)
    assert await asked.describe(TOPIC, "t", []) == everything
    some = await asked.describe(TOPIC, "t", ["retention.ms", "nope"])
    assert [config.name for config in some.configs] == ["retention.ms"]
    broker = await asked.describe(BROKER, "1", ["num.partitions"])
    assert [config.name for config in broker.configs] == ["num.partitions"]


@with_admin
async def test_t68_synonyms_are_told_only_when_asked_for(asked: Admin) -> None:
    result = await asked.describe(TOPIC, "t", ["cleanup.policy", "retention.ms"], synonyms=False)
    assert [(config.config_source, config.is_default, config.synonyms) for config in result.configs] == [
        (1, False, []),
        (5, True, []),
    ]


@with_admin
async def test_t68_layers_of_a_broker_are_told_best_first(asked: Admin) -> None:
    assert await asked.change(BROKER, "1", ("message.max.bytes", SET, "5000"), ("custom.key", SET, "7")) == OK
    assert await asked.change(BROKER, "", ("message.max.bytes", SET, "6000"), ("log.retention.ms", SET, "1000")) == OK
    maximum = [("message.max.bytes", "5000", 2), ("message.max.bytes", "6000", 3), ("message.max.bytes", "1048588", 5)]
    assert told(await asked.one(BROKER, "1", "message.max.bytes")) == ("5000", 2, maximum)
    assert told(await asked.one(TOPIC, "t", "max.message.bytes")) == ("5000", 2, maximum)
    retention = [("log.retention.ms", "1000", 3), ("log.retention.hours", "168", 5)]
    assert told(await asked.one(TOPIC, "t", "retention.ms")) == ("1000", 3, retention)
    custom = await asked.one(BROKER, "1", "custom.key")
    assert told(custom) == (None, 2, [("custom.key", None, 2)])
    assert (custom.read_only, custom.is_sensitive, custom.config_type) == (True, True, 0)
    default = await asked.describe(BROKER, "")
    assert [(config.name, *told(config)) for config in default.configs] == [
        ("message.max.bytes", "6000", 3, [("message.max.bytes", "6000", 3)]),
        ("log.retention.ms", "1000", 3, [("log.retention.ms", "1000", 3)]),
    ]
    assert len((await asked.describe(BROKER, "1")).configs) == 351


@with_admin
async def test_t68_resources_that_are_not_there(asked: Admin) -> None:
    async def answer(kind: int, name: str) -> tuple[int, str | None]:
        result = await asked.describe(kind, name)
        assert not result.configs
        return result.error_code, result.error_message

    assert await answer(TOPIC, "nope") == (3, "")
    assert await answer(TOPIC, "") == (17, "Topic name is invalid: the empty string is not allowed")
    assert (await answer(TOPIC, "bad/name"))[0] == 17
    assert await answer(BROKER, "9") == (42, "Unexpected broker id, expected 1 or empty string, but received 9")
    assert await answer(BROKER, "x") == (42, "Broker id must be an integer, but it is: x")
    assert await answer(BROKER_LOGGER, "") == (42, "Broker id must not be empty")
    assert await answer(BROKER_LOGGER, "9") == (42, "Unexpected broker id, expected 1 but received 9")
    assert await answer(GROUP, "") == (42, "Group name must not be empty")
    assert (await answer(99, "x"))[0] == 42
    assert (await answer(CLIENT_METRICS, "m"))[0] == 42


@with_admin
async def test_t68_a_group_has_what_the_broker_says(asked: Admin) -> None:
    result = await asked.describe(GROUP, "g")
    configs = {config.name: config for config in result.configs}
    name = "consumer.session.timeout.ms"
    assert told(configs[name]) == ("45000", 5, [(f"group.{name}", "45000", 5)])
    assert not any(config.read_only for config in result.configs)
    assert [config.name for config in (await asked.describe(GROUP, "g", [name])).configs] == [name]


@with_admin
async def test_a_group_may_have_settings_of_its_own_within_the_bounds_of_the_broker(asked: Admin) -> None:
    name, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    assert await asked.change(GROUP, "g/1", (name, SET, "50000"), (heartbeat, SET, "6000")) == OK
    configs = {config.name: config for config in (await asked.describe(GROUP, "g/1")).configs}
    assert told(configs[name]) == ("50000", 8, [(name, "50000", 8), (f"group.{name}", "45000", 5)])
    assert asked.node.view.group_configs == {"g/1": {name: "50000", heartbeat: "6000"}}
    assert await asked.change(GROUP, "g/1", (heartbeat, DELETE, None)) == OK
    assert asked.node.view.group_configs == {"g/1": {name: "50000"}}
    assert await asked.change(GROUP, "", (name, SET, "50000")) == (42, "Default group resources are not allowed.")
    refusals = {
        (name, "44999"): f"{name} must be greater than or equal to group.consumer.min.session.timeout.ms",
        (name, "60001"): f"{name} must be less than or equal to group.consumer.max.session.timeout.ms",
        ("consumer.nope", "1"): "Unknown group config name: consumer.nope",
    }
    for (key, value), text in refusals.items():
        assert await asked.change(GROUP, "g", (key, SET, value)) == (40, text)
    assert (await asked.change(GROUP, "g", (name, APPEND, "1")))[0] == 40


@with_admin
async def test_t69_an_incremental_change_leaves_the_rest_and_a_replacement_does_not(asked: Admin) -> None:
    assert await asked.change(TOPIC, "t", ("retention.ms", SET, "5000")) == OK
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "compact", "retention.ms": "5000"}
    assert await asked.replace(TOPIC, "t", ("segment.ms", "6000")) == OK
    assert asked.node.view.topics["t"].configs == {"segment.ms": "6000"}
    assert await asked.change(TOPIC, "t", ("segment.ms", DELETE, None), ("nope", DELETE, None)) == OK
    assert asked.node.view.topics["t"].configs == {}
    assert await asked.change(BROKER, "1", ("message.max.bytes", SET, "5"), ("log.retention.ms", SET, "6")) == OK
    assert await asked.replace(BROKER, "1", ("message.max.bytes", "70")) == OK
    assert asked.node.config.dynamic_broker == {"message.max.bytes": "70"}
    assert asked.node.config.message_max_bytes == 70


@with_admin
async def test_t69_lists(asked: Admin) -> None:
    assert await asked.change(TOPIC, "t", ("cleanup.policy", APPEND, "delete")) == OK
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "compact,delete"}
    assert await asked.change(TOPIC, "t", ("cleanup.policy", SUBTRACT, "compact")) == OK
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "delete"}
    assert await asked.change(TOPIC, "t", ("retention.ms", APPEND, "5")) == (
        40,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    )
    assert await asked.change(TOPIC, "t", ("cleanup.policy", APPEND, "x")) == (
        40,
        "Invalid value x for configuration cleanup.policy: String must be one of: compact, delete",
    )
    assert await asked.change(BROKER, "1", ("message.max.bytes", APPEND, "5")) == (
        40,
        "Config value append is not allowed for config key: message.max.bytes",
    )


@with_admin
async def test_t69_wrong_values_are_40_for_topics_and_42_for_brokers(asked: Admin) -> None:
    text = "Not a number of type"
    assert await asked.change(TOPIC, "t", ("retention.ms", SET, "abc")) == (
        40,
        f"Invalid value abc for configuration retention.ms: {text} LONG",
    )
    assert await asked.replace(TOPIC, "t", ("retention.ms", "x")) == (
        40,
        f"Invalid value x for configuration retention.ms: {text} LONG",
    )
    assert await asked.change(TOPIC, "t", ("nope", SET, "1")) == (40, "Unknown topic config name: nope")
    assert await asked.replace(TOPIC, "t", ("nope", "1")) == (40, "Unknown topic config name: nope")
    for name in ("1", ""):
        assert await asked.change(BROKER, name, ("message.max.bytes", SET, "x")) == (
            42,
            f"Invalid value x for configuration message.max.bytes: {text} INT",
        )
        assert await asked.change(BROKER, name, ("log.dirs", SET, "/x")) == (
            42,
            "Cannot update these configs dynamically: [log.dirs]",
        )
        assert await asked.change(BROKER, name, ("log.dirs", DELETE, None)) == OK
    assert await asked.replace(BROKER, "1", ("log.dirs", "x")) == (
        42,
        "Cannot update these configs dynamically: [log.dirs]",
    )
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "compact"}


@with_admin
async def test_t69_malformed_changes(asked: Admin) -> None:
    twice = (42, "Error due to duplicate config keys")
    assert await asked.change(TOPIC, "t", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")) == twice
    assert await asked.replace(TOPIC, "t", ("retention.ms", "5"), ("retention.ms", "6")) == twice
    null = (42, "Null value not supported for : retention.ms")
    assert await asked.change(TOPIC, "t", ("retention.ms", SET, None), ("nope", DELETE, None)) == null
    assert await asked.replace(TOPIC, "t", ("retention.ms", None)) == null
    repeated = (42, "Each resource must appear at most once.")
    assert await asked.change(TOPIC, "t", ("retention.ms", SET, "5"), times=2) == repeated
    assert await asked.replace(TOPIC, "t", ("retention.ms", "5"), times=2) == repeated
    assert await asked.change(TOPIC, "t", ("retention.ms", 9, "5")) == (42, "Unknown operations type 9")
    assert await asked.change(3, "t", ("retention.ms", SET, "5")) == (42, "Unknown resource type 3")
    assert await asked.replace(BROKER_LOGGER, "1", ("root", "INFO")) == (42, "Unknown resource type 8")
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "compact"}


@with_admin
async def test_t69_resources_that_are_not_there(asked: Admin) -> None:
    setting = ("retention.ms", SET, "5")
    assert await asked.change(TOPIC, "nope", setting) == (3, "The topic 'nope' does not exist.")
    assert await asked.change(TOPIC, "", setting) == (42, "Default topic resources are not allowed.")
    assert (await asked.change(TOPIC, "bad/name", setting))[0] == 17
    assert await asked.replace(TOPIC, "nope", ("retention.ms", "5")) == (3, "The topic 'nope' does not exist.")
    wrong_id = "Unexpected broker id, expected 1, but received 9"
    assert await asked.change(BROKER, "9", ("message.max.bytes", SET, "5")) == (42, wrong_id)
    assert await asked.change(BROKER, "x", setting) == (42, "Node id must be an integer, but it is: x")


@with_admin
async def test_t69_validate_only_changes_nothing(asked: Admin) -> None:
    assert await asked.change(TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True) == OK
    assert await asked.replace(TOPIC, "t", validate_only=True) == OK
    assert (await asked.change(TOPIC, "t", ("retention.ms", SET, "x"), validate_only=True))[0] == 40
    assert await asked.change(BROKER, "1", ("message.max.bytes", SET, "5"), validate_only=True) == OK
    assert (await asked.change(BROKER, "1", ("message.max.bytes", SET, "x"), validate_only=True))[0] == 42
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "compact"}
    assert asked.node.config.dynamic_broker == {}
    assert not await asked.node.store.exists("/config/brokers/1")


@with_admin
async def test_t69_changes_at_once_all_count(asked: Admin) -> None:
    keys = ("retention.ms", "segment.ms", "flush.ms", "file.delete.delay.ms")
    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(asked.change, TOPIC, "t", (key, SET, "5000"))
            nursery.start_soon(asked.change, BROKER, "1", ("message.max.bytes", SET, "5"))
    assert asked.node.view.topics["t"].configs == {"cleanup.policy": "compact", **dict.fromkeys(keys, "5000")}


@with_admin
async def test_changes_are_kept_as_kafka_keeps_them(asked: Admin) -> None:
    await asked.change(BROKER, "", ("message.max.bytes", SET, "5"))
    await asked.change(TOPIC, "t", ("retention.ms", SET, "5"))
    broker = await asked.node.store.get("/config/brokers/<default>")
    assert broker.data == b'{"version":1,"config":{"message.max.bytes":"5"}}'
    topic = await asked.node.store.get("/config/topics/t")
    assert topic.data == b'{"version":1,"config":{"cleanup.policy":"compact","retention.ms":"5"}}'


@with_admin
async def test_levels_of_loggers(asked: Admin) -> None:
    name = "odradek.tests.levels"
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    level = await asked.one(BROKER_LOGGER, "1", name)
    assert (level.value, level.config_source, level.read_only, level.config_type) == ("WARN", 6, False, 0)
    names = [config.name for config in (await asked.describe(BROKER_LOGGER, "1")).configs]
    assert names[0] == "root"
    assert all(each.startswith("odradek") for each in names[1:])
    assert await asked.change(BROKER_LOGGER, "1", (name, SET, "TRACE"), validate_only=True) == OK
    assert logger.level == logging.WARNING
    assert await asked.change(BROKER_LOGGER, "1", (name, SET, "TRACE")) == OK
    assert (await asked.one(BROKER_LOGGER, "1", name)).value == "TRACE"
    assert await asked.change(BROKER_LOGGER, "1", (name, DELETE, None)) == OK
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "changed", "answer"),
    [
        ("1", ("nope", SET, "DEBUG"), (40, "Logger nope does not exist!")),
        (
            "1",
            ("root", SET, "debug"),
            (
                40,
                "Cannot set the log level of root to debug as it is not a supported log level. "
                "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
            ),
        ),
        ("1", ("root", DELETE, None), (42, "Removing the log level of the root logger is not allowed")),
        ("1", ("root", APPEND, "DEBUG"), (42, "APPEND operation is not allowed for the BROKER_LOGGER resource")),
        ("9", ("root", SET, "DEBUG"), (42, "Unexpected node id. Expected 1, but received 9")),
        ("", ("root", SET, "DEBUG"), (42, "Node id must be an integer, but it is: ")),
    ],
)
def test_wrong_changes_of_levels(tmp_path: Path, name: str, changed: Change, answer: tuple[int, str]) -> None:
    async def main() -> None:
        async with admin(tmp_path) as asked:
            assert await asked.change(BROKER_LOGGER, name, changed) == answer

    trio.run(main)


@with_admin
async def test_what_has_settings_is_listed_by_kind(asked: Admin) -> None:
    async def listed(*kinds: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
        reply = await asked.ask(list_config_resources, ListConfigResourcesRequest(resource_types=kinds), version)
        return reply.error_code, [(each.resource_type, each.resource_name) for each in reply.config_resources]

    everything = [(TOPIC, "t"), (BROKER, "1"), (BROKER_LOGGER, "1")]
    assert await listed() == (0, everything)
    assert await listed(TOPIC) == (0, [(TOPIC, "t")])
    assert await listed(BROKER, GROUP) == (0, [(BROKER, "1")])
    assert await listed(BROKER_LOGGER) == (0, [(BROKER_LOGGER, "1")])
    assert await listed(GROUP) == await listed(CLIENT_METRICS) == (0, [])
    assert await listed(99) == await listed(0) == (35, [])
    assert await listed(version=0) == (0, [])
