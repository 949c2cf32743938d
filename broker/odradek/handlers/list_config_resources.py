"""ListConfigResources (key 74), v0-1: what has settings that DescribeConfigs tells.

Version 0 asks for client metrics subscriptions, of which there are none. From v1 on the kinds are named, and none
named asks for all: topics, brokers and their loggers, and the groups that have settings of their own. A kind that is
none: UNSUPPORTED_VERSION.

KIP-714 (v0), KIP-1142 (v1).
"""

from typing import TYPE_CHECKING

from odradek.config.resources import ResourceType
from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_KINDS = 1


@handles(ListConfigResourcesRequest)
async def list_config_resources(
    node: "Node",
    connection: "Connection",
    request: Request[ListConfigResourcesRequest],
) -> ListConfigResourcesResponse:
    """Answer a ListConfigResources request."""
    kinds = set(request.body.resource_types or ResourceType)
    if request.version < FIRST_WITH_KINDS:
        kinds = {ResourceType.CLIENT_METRICS}
    if not kinds.issubset(ResourceType):
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION, config_resources=())
    brokers = [str(node_id) for node_id in sorted(node.view.brokers)]
    names = {
        ResourceType.TOPIC: sorted(node.view.topics),
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.GROUP: sorted(group for group, configs in node.view.group_configs.items() if configs),
    }
    resources = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind, all_names in names.items()
        if kind in kinds
        for name in all_names
    ]
    return ListConfigResourcesResponse(error_code=Error.NONE, config_resources=resources)
