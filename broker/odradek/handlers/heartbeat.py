"""Heartbeat (key 12), v0-4: a member is alive, and learns whether it has to join again (REBALANCE_IN_PROGRESS).

Order of the checks: group id (INVALID_GROUP_ID), coordinator, group and member (UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID), generation (ILLEGAL_GENERATION), rebalance. While the group is loaded the answer is NONE.

KIP-345 (v3, static members).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(HeartbeatRequest)
def heartbeat(node: "Node", connection: "Connection", request: Request[HeartbeatRequest]) -> HeartbeatResponse:
    """Answer a Heartbeat request."""
    body = request.body
    try:
        node.groups.heartbeat(body.group_id, body.member_id, body.group_instance_id, body.generation_id)
    except BrokerError as error:
        return HeartbeatResponse(error_code=error.error)
    return HeartbeatResponse(error_code=Error.NONE)
