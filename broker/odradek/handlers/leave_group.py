"""LeaveGroup (key 13), v0-5: take members out of a group at once, instead of at the end of their sessions.

Up to v2 the sender leaves, and its error is the reply's. From v3 on members are listed and have an error each; an
administrator names static members by their instance ids and an empty member id.
Order of the checks: group id (INVALID_GROUP_ID), coordinator, then for each member UNKNOWN_MEMBER_ID and
FENCED_INSTANCE_ID.

KIP-345 (v3).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_MANY_MEMBERS = 3


@handles(LeaveGroupRequest)
async def leave_group(
    node: "Node",
    connection: "Connection",
    request: Request[LeaveGroupRequest],
) -> LeaveGroupResponse:
    """Answer a LeaveGroup request."""
    body = request.body
    one = request.version < FIRST_WITH_MANY_MEMBERS
    members = [(body.member_id, None)] if one else [(each.member_id, each.group_instance_id) for each in body.members]
    try:
        errors = node.groups.leave(body.group_id, members)
    except BrokerError as error:
        return LeaveGroupResponse(error_code=error.error)
    if one:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        error_code=Error.NONE,
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
            for (member_id, instance_id), error in zip(members, errors, strict=True)
        ],
    )
