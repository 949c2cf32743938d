"""ListGroups (key 16), v0-5: the groups that this broker coordinates.

Filters are lists of names in any case; an empty list lets everything through, a name that nobody knows nothing. While
a partition of __consumer_offsets is loaded the answer is COORDINATOR_LOAD_IN_PROGRESS: it would not be whole.

KIP-518 (v4, states), KIP-848 (v5, types).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(ListGroupsRequest)
def list_groups(
    node: "Node",
    connection: "Connection",
    request: Request[ListGroupsRequest],
) -> ListGroupsResponse:
    """Answer a ListGroups request."""
    states, types = request.body.states_filter, request.body.types_filter
    try:
        groups = node.groups.all_groups()
    except BrokerError as error:
        return ListGroupsResponse(error_code=error.error, groups=[])
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=group.type,
        )
        for group in groups
        if _passes(types, group.type)
    ]
    return ListGroupsResponse(
        error_code=Error.NONE, groups=[each for each in listed if _passes(states, each.group_state)]
    )


def _passes(names: Sequence[str], name: str) -> bool:
    return not names or name.lower() in (each.strip().lower() for each in names)
