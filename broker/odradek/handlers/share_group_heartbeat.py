"""ShareGroupHeartbeat (key 76), v1: join a share group, stay in it, learn its partitions, leave.

Order of the checks: the request alone, INVALID_REQUEST: nothing that is told is empty, a first heartbeat has a
subscription, no epoch below -1. Then coordinator, GROUP_ID_NOT_FOUND, and those of `ShareGroup.heartbeat`. The
assignment is told to who joins, who says what it subscribes to, and when it is another.

KIP-932.
"""

from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.groups.share_group import ShareHeartbeat, ShareHeartbeatResult
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages import share_group_heartbeat as messages
from odradek_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

LONGEST_MEMBER_ID = 36
"""As long as a uuid in text."""


@handles(ShareGroupHeartbeatRequest)
def share_group_heartbeat(
    node: "Node", connection: "Connection", request: Request[ShareGroupHeartbeatRequest]
) -> ShareGroupHeartbeatResponse | Coroutine[Any, Any, ShareGroupHeartbeatResponse]:
    """Answer a ShareGroupHeartbeat request."""
    body = request.body
    try:
        node.features.check_share_groups()
        _check(body)
        heartbeat = ShareHeartbeat(
            member_id=body.member_id,
            member_epoch=body.member_epoch,
            client_id=request.client_id or "",
            client_host=connection.peer,
            rack_id=body.rack_id,
            topic_names=body.subscribed_topic_names,
        )
        result, unwritten = node.groups.share_heartbeat(body.group_id, heartbeat)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        return _refusal(request, error)
    response = _response(node, body, result)
    return response if unwritten is None else unwritten.answer(response, partial(_refusal, request))


def _check(body: ShareGroupHeartbeatRequest) -> None:
    if not 0 < len(body.member_id) <= LONGEST_MEMBER_ID:
        raise BrokerError(Error.INVALID_REQUEST)
    fault = _fault(body)
    if fault is not None:
        raise BrokerError(Error.INVALID_REQUEST, fault)


def _fault(body: ShareGroupHeartbeatRequest) -> str | None:
    """What is wrong with the request alone, in Kafka's words."""
    for name, value in (("MemberId", body.member_id), ("GroupId", body.group_id), ("RackId", body.rack_id)):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    if body.member_epoch == JOIN_EPOCH:
        if not body.subscribed_topic_names:
            return "SubscribedTopicNames must be set in first request."
    elif body.member_epoch < LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    return None


def _response(
    node: "Node", body: ShareGroupHeartbeatRequest, result: ShareHeartbeatResult
) -> ShareGroupHeartbeatResponse:
    assignment = None
    if result.assigned is not None:
        assignment = messages.Assignment(
            topic_partitions=[
                messages.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in result.assigned.items()
            ]
        )
    leaves = body.member_epoch == LEAVE_EPOCH
    return ShareGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=0 if leaves else node.groups.share_heartbeat_interval_ms(body.group_id),
        assignment=assignment,
    )


def _refusal(request: Request[ShareGroupHeartbeatRequest], error: Exception) -> ShareGroupHeartbeatResponse:
    code, message = answer_for(error, request)
    return ShareGroupHeartbeatResponse(error_code=code, error_message=message or None)
