"""JoinGroup (key 11), v0-9: become a member of a group, or say again that one is, and wait for the next generation.

Order of the checks: group id (INVALID_GROUP_ID), session timeout (INVALID_SESSION_TIMEOUT), coordinator, then those of
`Group.join`. From v4 on a dynamic member without an id is told one with MEMBER_ID_REQUIRED and has to come again.
A client of v0 has no rebalance timeout: its session timeout stands for it.

KIP-62 (v1), KIP-394 (v4), KIP-345 (v5, static members), KIP-559 (v7, a null protocol where there is none),
KIP-814 (v9, a static leader may be told to skip the assignment).
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.groups.member import JoinResult, Ticket
from odradek.groups.tickets import answer_for_ticket
from odradek.handlers.registry import handles
from odradek.waiting import Postponed
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_THAT_KNOWS_MEMBER_ID = 4
FIRST_WITH_NULL_PROTOCOL = 7
FIRST_THAT_SKIPS_ASSIGNMENT = 9


@handles(JoinGroupRequest)
def join_group(
    node: "Node", connection: "Connection", request: Request[JoinGroupRequest]
) -> JoinGroupResponse | Postponed:
    """Answer a JoinGroup request."""
    body = request.body
    try:
        ticket = node.groups.join(
            body.group_id,
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            client_id=request.client_id or "",
            client_host=connection.peer,
            session_timeout_ms=body.session_timeout_ms,
            rebalance_timeout_ms=body.session_timeout_ms
            if body.rebalance_timeout_ms < 0
            else body.rebalance_timeout_ms,
            protocol_type=body.protocol_type,
            protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in body.protocols],
            requires_known_member_id=request.version >= FIRST_THAT_KNOWS_MEMBER_ID,
            can_skip_assignment=request.version >= FIRST_THAT_SKIPS_ASSIGNMENT,
        )
    except BrokerError as error:
        ticket = Ticket(JoinResult(error.error, body.member_id))
    return answer_for_ticket(ticket, partial(_response, request.version))


def _response(version: int, result: JoinResult) -> JoinGroupResponse:
    no_protocol = None if version >= FIRST_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name or no_protocol,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in result.members
        ],
    )
