"""IncrementalAlterConfigs (key 44), v0-1: change single settings of topics, brokers, groups, loggers; a row for each.

A setting is set, deleted (its default comes back), or, where it is a list, appended to or subtracted from. With
`validate_only` all is checked and nothing changed.

Order of the checks: an unknown operation, INVALID_REQUEST; so is a resource that comes twice, each time, a row that
names a setting twice or gives null where it does not delete, and a resource of another kind; the resource itself (see
`config_changes`); list operations on what is no list, INVALID_CONFIG; then the settings of a topic or a
group, INVALID_CONFIG, or of a broker, INVALID_REQUEST.

KIP-339, KIP-412 (loggers), KIP-848 (groups).
"""

from typing import TYPE_CHECKING

from odradek.config.dynamic import Alteration, AlterationKind, alter_broker_layer, alter_topic_overrides
from odradek.config.group import alter_group_overrides
from odradek.config.resources import ResourceType
from odradek.config_changes import (
    alter_broker,
    alter_group,
    alter_loggers,
    alter_topic,
    check_row,
    repeated_resources,
)
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(IncrementalAlterConfigsRequest)
async def incremental_alter_configs(
    node: "Node",
    connection: "Connection",
    request: Request[IncrementalAlterConfigsRequest],
) -> IncrementalAlterConfigsResponse:
    """Answer an IncrementalAlterConfigs request."""
    body = request.body
    repeated = repeated_resources((row.resource_type, row.resource_name) for row in body.resources)
    responses = []
    for row in body.resources:
        code, message = Error.NONE, ""
        try:
            alterations = [_alteration(config) for config in row.configs]
            keys = [alteration.key for alteration in alterations]
            nulls = [key for key, kind, value in alterations if value is None and kind is not AlterationKind.DELETE]
            check_row((row.resource_type, row.resource_name), repeated, keys, nulls)
            await _alter(node, row, alterations, validate_only=body.validate_only)
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, message = answer_for(error, request)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message or None,
                resource_type=row.resource_type,
                resource_name=row.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


async def _alter(
    node: "Node", row: AlterConfigsResource, alterations: list[Alteration], *, validate_only: bool
) -> None:
    name = row.resource_name
    match row.resource_type:
        case ResourceType.TOPIC:
            await alter_topic(
                node, name, lambda old: alter_topic_overrides(old, alterations), validate_only=validate_only
            )
        case ResourceType.BROKER:
            await alter_broker(
                node, name, lambda old: alter_broker_layer(old, alterations), validate_only=validate_only
            )
        case ResourceType.GROUP:
            await alter_group(
                node, name, lambda old: alter_group_overrides(old, alterations), validate_only=validate_only
            )
        case ResourceType.BROKER_LOGGER:
            alter_loggers(node, name, alterations, validate_only=validate_only)
        case unknown:
            raise BrokerError(Error.INVALID_REQUEST, f"Unknown resource type {unknown}")


def _alteration(config: AlterableConfig) -> Alteration:
    try:
        kind = AlterationKind(config.config_operation)
    except ValueError as error:
        raise BrokerError(Error.INVALID_REQUEST, f"Unknown operations type {config.config_operation}") from error
    return Alteration(config.name, kind, config.value)
