"""DescribeConfigs (key 32), v0-4: the settings of topics, brokers, loggers and groups; one row for each.

No keys, null or empty, asks for all. The broker with no name is what is set for all brokers. Values come with the
place they come from; synonyms are told when asked for (v1), types always and documentation when asked for from v3 on.
Sensitive values are null.

Order of the checks: the resource's kind, INVALID_REQUEST; its name: INVALID_TOPIC_EXCEPTION and
UNKNOWN_TOPIC_OR_PARTITION, or INVALID_REQUEST for a broker that is not this one and a group without a name.

KIP-133, KIP-226 (v1), KIP-412 (loggers), KIP-569 (v3).
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from odradek.cluster.topics import check_name
from odradek.config.describe import (
    ConfigEntry,
    ConfigSource,
    describe_broker,
    describe_default,
    describe_group,
    describe_topic,
)
from odradek.config.loggers import logger_levels
from odradek.config.resources import ResourceType
from odradek.config_changes import broker_id
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DescribeConfigsRequest)
async def describe_configs(
    node: "Node",
    connection: "Connection",
    request: Request[DescribeConfigsRequest],
) -> DescribeConfigsResponse:
    """Answer a DescribeConfigs request."""
    return DescribeConfigsResponse(results=[_describe(node, request, row) for row in request.body.resources])


def _describe(
    node: "Node", request: Request[DescribeConfigsRequest], row: DescribeConfigsResource
) -> DescribeConfigsResult:
    code, message = Error.NONE, ""
    configs: list[DescribeConfigsResourceResult] = []
    try:
        entries = _entries(node, row.resource_type, row.resource_name, row.configuration_keys or None)
        configs = [_row(entry, request.body) for entry in entries]
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=row.resource_type,
        resource_name=row.resource_name,
        configs=configs,
    )


def _entries(node: "Node", kind: int, name: str, keys: Collection[str] | None) -> Iterable[ConfigEntry]:
    match kind:
        case ResourceType.TOPIC:
            check_name(name)
            topic = node.view.topics.get(name)
            if topic is None:
                raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)
            return describe_topic(node.config, node.config.topic_config(topic.configs), keys)
        case ResourceType.BROKER:
            if not name:
                return describe_default(node.config, keys)
            _check_this_broker(node, name, f"expected {node.node_id} or empty string, but received {name}")
            return describe_broker(node.config, keys)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise BrokerError(Error.INVALID_REQUEST, "Broker id must not be empty")
            _check_this_broker(node, name, f"expected {node.node_id} but received {name}")
            return _loggers(keys)
        case ResourceType.GROUP:
            if not name:
                raise BrokerError(Error.INVALID_REQUEST, "Group name must not be empty")
            return describe_group(node.config, node.view.group_configs.get(name, {}), keys)
        case unknown:
            raise BrokerError(Error.INVALID_REQUEST, f"Unsupported resource type: {unknown}")


def _check_this_broker(node: "Node", name: str, otherwise: str) -> None:
    if broker_id(name) != node.node_id:
        raise BrokerError(Error.INVALID_REQUEST, f"Unexpected broker id, {otherwise}")


def _loggers(keys: Collection[str] | None) -> Iterable[ConfigEntry]:
    for name, level in logger_levels().items():
        if keys is None or name in keys:
            yield ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER)


def _row(entry: ConfigEntry, asked: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if asked.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.source is ConfigSource.DEFAULT,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in synonyms],
        config_type=entry.type,
        documentation=entry.documentation if asked.include_documentation else None,
    )
