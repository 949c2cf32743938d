"""ConsumerGroupHeartbeat (key 68), v0-1: join a consumer group, stay in it, go to a new assignment, leave.

Order of the checks: UNSUPPORTED_VERSION below level 1 of the feature group.version; the request alone,
INVALID_REQUEST: from v1 on the member makes its own id, nothing that is told is empty, a first heartbeat has a
rebalance timeout, a subscription, and owns nothing, a static member that will be back has an instance id, no other
epoch below -2; UNSUPPORTED_ASSIGNOR. Then coordinator, GROUP_ID_NOT_FOUND, and those of `ConsumerGroup.heartbeat`.
The assignment is told to who joins, to who says everything, and when it is another.

KIP-848, KIP-1082 (v1, member ids).
"""

import uuid
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_group import Heartbeat, HeartbeatResult
from odradek.groups.consumer_state import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages import consumer_group_heartbeat as messages
from odradek_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_CONSUMER_GROUPS = 1
"""The level of the feature group.version from which on there are such groups."""

FIRST_WITH_OWN_MEMBER_ID = 1
JOIN_EPOCH = 0
UNCHANGED = -1


@handles(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(
    node: "Node", connection: "Connection", request: Request[ConsumerGroupHeartbeatRequest]
) -> ConsumerGroupHeartbeatResponse | Coroutine[Any, Any, ConsumerGroupHeartbeatResponse]:
    """Answer a ConsumerGroupHeartbeat request."""
    body = request.body
    try:
        _check_feature(node)
        if _says_nothing(body) and node.groups.keep_alive(
            body.group_id, body.member_id, body.member_epoch, request.client_id or "", connection.peer
        ):
            return ConsumerGroupHeartbeatResponse(
                error_code=Error.NONE,
                member_id=body.member_id,
                member_epoch=body.member_epoch,
                heartbeat_interval_ms=node.groups.heartbeat_interval_ms(body.group_id),
            )
        _check(node, body, request.version)
        heartbeat = Heartbeat(
            member_id=body.member_id or str(uuid.uuid4()),
            member_epoch=body.member_epoch,
            client_id=request.client_id or "",
            client_host=connection.peer,
            instance_id=body.instance_id,
            rack_id=body.rack_id,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
            topic_names=body.subscribed_topic_names,
            topic_pattern=body.subscribed_topic_regex,
            server_assignor=body.server_assignor,
            owned=None if body.topic_partitions is None else _owned(body.topic_partitions),
        )
        result, unwritten = node.groups.consumer_heartbeat(body.group_id, heartbeat)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        return _refusal(request, error)
    response = _response(node, body, result)
    return response if unwritten is None else unwritten.answer(response, partial(_refusal, request))


def _check_feature(node: "Node") -> None:
    if node.features.group_version < FIRST_WITH_CONSUMER_GROUPS:
        raise BrokerError(Error.UNSUPPORTED_VERSION)


def _says_nothing(body: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member says only that it is there still."""
    return (
        body.member_epoch > JOIN_EPOCH
        and body.topic_partitions is None
        and body.subscribed_topic_names is None
        and body.subscribed_topic_regex is None
        and body.rebalance_timeout_ms == UNCHANGED
        and body.server_assignor is None
        and body.instance_id is None
        and body.rack_id is None
    )


def _check(node: "Node", body: ConsumerGroupHeartbeatRequest, version: int) -> None:
    fault = _fault(body, version)
    if fault is not None:
        raise BrokerError(Error.INVALID_REQUEST, fault)
    assignors = node.config.group_consumer_assignors
    if body.server_assignor is not None and body.server_assignor not in assignors:
        supported = f"Supported assignors: {', '.join(assignors)}."
        text = f"ServerAssignor {body.server_assignor} is not supported. {supported}"
        raise BrokerError(Error.UNSUPPORTED_ASSIGNOR, text)


def _fault(body: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """What is wrong with the request alone, in Kafka's words."""
    epoch = body.member_epoch
    knows_itself = version >= FIRST_WITH_OWN_MEMBER_ID or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    if knows_itself and not body.member_id.strip():
        return "MemberId can't be empty."
    for name, value in (("GroupId", body.group_id), ("InstanceId", body.instance_id), ("RackId", body.rack_id)):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    if epoch == JOIN_EPOCH:
        if body.rebalance_timeout_ms == UNCHANGED:
            return "RebalanceTimeoutMs must be provided in first request."
        if body.topic_partitions is None or len(body.topic_partitions) > 0:
            return "TopicPartitions must be empty when (re-)joining."
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == LEAVE_STATIC_EPOCH and body.instance_id is None:
        return "InstanceId can't be null."
    elif epoch < LEAVE_STATIC_EPOCH:
        return "MemberEpoch is invalid."
    return None


def _owned(topics: Sequence[messages.TopicPartitions]) -> Assignment:
    return {bytes(topic.topic_id): frozenset(topic.partitions) for topic in topics}


def _response(
    node: "Node", body: ConsumerGroupHeartbeatRequest, result: HeartbeatResult
) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if result.assigned is not None:
        assignment = messages.Assignment(
            topic_partitions=[
                messages.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in result.assigned.items()
            ]
        )
    leaves = body.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)
    return ConsumerGroupHeartbeatResponse(
        error_code=Error.NONE,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=0 if leaves else node.groups.heartbeat_interval_ms(body.group_id),
        assignment=assignment,
    )


def _refusal(request: Request[ConsumerGroupHeartbeatRequest], error: Exception) -> ConsumerGroupHeartbeatResponse:
    code, message = answer_for(error, request)
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message or None)
