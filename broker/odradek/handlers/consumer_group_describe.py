"""ConsumerGroupDescribe (key 69), v0-1: epochs, members and assignments of consumer groups.

Order of the checks, for each group: INVALID_GROUP_ID, coordinator, GROUP_ID_NOT_FOUND where there is no group, or one
of the classic protocol. Topics that are gone are left out of assignments.

KIP-848, KIP-1099 (v1, the protocol of each member).
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from odradek.cluster.authorized_operations import GROUP_OPERATIONS
from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.consumer_state import CurrentAssignment
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.consumer_group_describe import (
    NOT_ASKED,
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


@handles(ConsumerGroupDescribeRequest)
def consumer_group_describe(
    node: "Node", connection: "Connection", request: Request[ConsumerGroupDescribeRequest]
) -> ConsumerGroupDescribeResponse:
    """Answer a ConsumerGroupDescribe request."""
    body = request.body
    operations = GROUP_OPERATIONS if body.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(
        groups=[_describe(node, request, group_id, operations) for group_id in body.group_ids]
    )


def _describe(
    node: "Node", request: Request[ConsumerGroupDescribeRequest], group_id: str, operations: int
) -> DescribedGroup:
    try:
        group = _find(node, group_id)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return DescribedGroup(
            error_code=code,
            error_message=message or None,
            group_id=group_id,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=(),
        )
    return DescribedGroup(
        error_code=Error.NONE,
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.tables.epoch.epoch,
        assignment_epoch=group.tables.target_epoch.epoch,
        assignor_name=group.assignor,
        members=[_member(node, group, member_id) for member_id in group.members],
        authorized_operations=operations,
    )


def _find(node: "Node", group_id: str) -> ConsumerGroup:
    if not group_id:
        raise BrokerError(Error.INVALID_GROUP_ID)
    group = node.groups.find(group_id)
    if group is None:
        raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def _member(node: "Node", group: ConsumerGroup, member_id: str) -> Member:
    info, current = group.members[member_id], group.tables.current(member_id)
    return Member(
        member_id=member_id,
        instance_id=info.instance_id,
        rack_id=info.rack_id,
        member_epoch=current.epoch,
        client_id=info.client_id,
        client_host=info.client_host,
        subscribed_topic_names=sorted(info.topic_names),
        subscribed_topic_regex=info.topic_pattern,
        assignment=_assignment(node, _held(current)),
        target_assignment=_assignment(node, group.tables.targets.get(member_id, {})),
        member_type=CONSUMER_MEMBER if info.classic is None else CLASSIC_MEMBER,
    )


def _held(current: CurrentAssignment) -> Mapping[bytes, Collection[int]]:
    """What a member has, also where it has been asked to give it up."""
    topic_ids = dict.fromkeys([*current.assigned, *current.revoking])
    return {
        topic_id: {**current.assigned.get(topic_id, {}), **current.revoking.get(topic_id, {})} for topic_id in topic_ids
    }


def _assignment(node: "Node", partitions: Mapping[bytes, Collection[int]]) -> Assignment:
    topics = node.view.topics_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(found))
            for topic_id, found in partitions.items()
            if topic_id in topics
        ]
    )
