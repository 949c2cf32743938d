"""DescribeGroups (key 15), v0-6: state and members of groups.

A group that is not there, or is no classic one, has the state "Dead" and no error, from v6 on GROUP_ID_NOT_FOUND with
a message. Metadata and assignments are told of stable groups only. Errors of a group stand in the group.

KIP-430 (v3, authorized operations), KIP-345 (v4, static members), KIP-1043 (v6).
"""

from typing import TYPE_CHECKING

from odradek.cluster.authorized_operations import GROUP_OPERATIONS
from odradek.groups.group import Group
from odradek.groups.states import GroupState
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.describe_groups import (
    NOT_ASKED,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_GROUP_ID_NOT_FOUND = 6


@handles(DescribeGroupsRequest)
def describe_groups(
    node: "Node",
    connection: "Connection",
    request: Request[DescribeGroupsRequest],
) -> DescribeGroupsResponse:
    """Answer a DescribeGroups request."""
    operations = GROUP_OPERATIONS if request.body.include_authorized_operations else NOT_ASKED
    groups = []
    for group_id in request.body.groups:
        described = _describe(node, request, group_id)
        if described.error_code == Error.NONE:
            described.authorized_operations = operations
        groups.append(described)
    return DescribeGroupsResponse(groups=groups)


def _describe(node: "Node", request: Request[DescribeGroupsRequest], group_id: str) -> DescribedGroup:
    try:
        group = node.groups.find(group_id)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return _without_members(group_id, "", code, message)
    if isinstance(group, Group):
        return _described(group)
    if request.version < FIRST_WITH_GROUP_ID_NOT_FOUND:
        return _without_members(group_id, GroupState.DEAD.value, Error.NONE, None)
    message = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return _without_members(group_id, GroupState.DEAD.value, Error.GROUP_ID_NOT_FOUND, message)


def _without_members(group_id: str, state: str, error: Error, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=[],
    )


def _described(group: Group) -> DescribedGroup:
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        error_code=Error.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
