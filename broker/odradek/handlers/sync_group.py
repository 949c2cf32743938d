"""SyncGroup (key 14), v0-5: the leader hands in the assignment, everybody gets a part of it.

Assignments are passed on untouched; a member that the leader left out gets none, which is empty bytes.
Order of the checks: protocol type and name are there (v5, INCONSISTENT_GROUP_PROTOCOL), group id (INVALID_GROUP_ID),
coordinator, then those of `Group.sync`, or `classic_members.sync` in a consumer group.

KIP-345 (v3, static members), KIP-559 (v5, protocol type and name).
"""

from typing import TYPE_CHECKING

from odradek.groups.member import SyncResult, Ticket
from odradek.groups.tickets import answer_for_ticket
from odradek.handlers.registry import handles
from odradek.waiting import Postponed
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_PROTOCOL = 5


@handles(SyncGroupRequest)
def sync_group(
    node: "Node", connection: "Connection", request: Request[SyncGroupRequest]
) -> SyncGroupResponse | Postponed:
    """Answer a SyncGroup request."""
    body = request.body
    if request.version >= FIRST_WITH_PROTOCOL and None in (body.protocol_type, body.protocol_name):
        return SyncGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL, assignment=b"")
    try:
        ticket = node.groups.sync(
            body.group_id,
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id,
            protocol_type=body.protocol_type,
            protocol_name=body.protocol_name,
            assignments={each.member_id: bytes(each.assignment) for each in body.assignments},
        )
    except BrokerError as error:
        ticket = Ticket(SyncResult(error.error))
    return answer_for_ticket(ticket, _response)


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
