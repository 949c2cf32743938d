"""AlterConfigs (key 33), v0-2: replace all settings of topics and brokers; one row for each.

What a row does not name goes back to its default: IncrementalAlterConfigs changes single settings. With
`validate_only` all is checked and nothing changed.

Order of the checks: a resource that comes twice fails each time, INVALID_REQUEST; so does a row that names a setting
twice or gives null, and a resource that is neither topic nor broker; the resource itself (see `config_changes`); a
topic's settings, INVALID_CONFIG; a broker's, INVALID_REQUEST.

KIP-133, KIP-226 (brokers).
"""

from typing import TYPE_CHECKING

from odradek.config.resources import ResourceType
from odradek.config_changes import alter_broker, alter_group, alter_topic, check_row, repeated_resources
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(AlterConfigsRequest)
async def alter_configs(
    node: "Node",
    connection: "Connection",
    request: Request[AlterConfigsRequest],
) -> AlterConfigsResponse:
    """Answer an AlterConfigs request."""
    body = request.body
    repeated = repeated_resources((row.resource_type, row.resource_name) for row in body.resources)
    responses = []
    for row in body.resources:
        code, message = Error.NONE, ""
        try:
            nulls = [config.name for config in row.configs if config.value is None]
            check_row((row.resource_type, row.resource_name), repeated, [config.name for config in row.configs], nulls)
            await _replace(node, row, validate_only=body.validate_only)
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
    return AlterConfigsResponse(responses=responses)


async def _replace(node: "Node", row: AlterConfigsResource, *, validate_only: bool) -> None:
    settings = {config.name: config.value for config in row.configs if config.value is not None}
    match row.resource_type:
        case ResourceType.TOPIC:
            await alter_topic(node, row.resource_name, lambda _: settings, validate_only=validate_only)
        case ResourceType.BROKER:
            await alter_broker(node, row.resource_name, lambda _: settings, validate_only=validate_only)
        case ResourceType.GROUP:
            await alter_group(node, row.resource_name, lambda _: settings, validate_only=validate_only)
        case unknown:
            raise BrokerError(Error.INVALID_REQUEST, f"Unknown resource type {unknown}")
