"""ShareGroupDescribe (key 77), v1: epochs, members and assignments of share groups.

Order of the checks, for each group: INVALID_GROUP_ID, coordinator, GROUP_ID_NOT_FOUND where there is no group, or one
of another kind. Topics that are gone are left out of assignments.

KIP-932.
"""

from typing import TYPE_CHECKING

from odradek.cluster.authorized_operations import GROUP_OPERATIONS
from odradek.groups.assignors import Assignment as Partitions
from odradek.groups.membership import check_group_id
from odradek.groups.share_group import ShareGroup
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.share_group_describe import (
    NOT_ASKED,
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(ShareGroupDescribeRequest)
def share_group_describe(
    node: "Node", connection: "Connection", request: Request[ShareGroupDescribeRequest]
) -> ShareGroupDescribeResponse:
    """Answer a ShareGroupDescribe request."""
    operations = GROUP_OPERATIONS if request.body.include_authorized_operations else NOT_ASKED
    groups = []
    for group_id in request.body.group_ids:
        try:
            node.features.check_share_groups()
            check_group_id(group_id)
            described = _described(node, node.groups.find_share_group(group_id))
            described.authorized_operations = operations
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, message = answer_for(error, request)
            described = DescribedGroup(group_id=group_id, error_code=code, error_message=message or None)
        groups.append(described)
    return ShareGroupDescribeResponse(groups=groups)


def _described(node: "Node", group: ShareGroup) -> DescribedGroup:
    tables = group.tables
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=tables.epoch.epoch,
        assignment_epoch=tables.target_epoch.epoch,
        assignor_name=group.assignor,
        members=[
            Member(
                member_id=member.member_id,
                rack_id=member.rack_id,
                member_epoch=tables.current(member.member_id).epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=sorted(member.topic_names),
                assignment=_assignment(node, tables.current(member.member_id).assigned),
            )
            for member in tables.members.values()
        ],
    )


def _assignment(node: "Node", assigned: Partitions) -> Assignment:
    topics = node.view.topics_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
            if topic_id in topics
        ]
    )
