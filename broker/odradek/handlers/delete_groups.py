"""DeleteGroups (key 42), v0-3: delete groups without members, and their offsets.

Each group has an error of its own: coordinator, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, in this order.

KIP-229. Version 3 tells messages.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DeleteGroupsRequest)
async def delete_groups(
    node: "Node",
    connection: "Connection",
    request: Request[DeleteGroupsRequest],
) -> DeleteGroupsResponse:
    """Answer a DeleteGroups request."""
    results = []
    for group_id in dict.fromkeys(request.body.groups_names):
        code, message = Error.NONE, ""
        try:
            await node.groups.delete_group(group_id)
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, message = answer_for(error, request)
        results.append(DeletableGroupResult(group_id=group_id, error_code=code, error_message=message or None))
    return DeleteGroupsResponse(results=results)
