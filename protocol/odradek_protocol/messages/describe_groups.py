"""Describe groups (key 15): state and members of classic groups.

KIP-430 (3, authorized operations), KIP-345 (4, static members), KIP-1043 (6, GROUP_ID_NOT_FOUND with a message).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, data, int16, int32, message, string, struct

NOT_ASKED = -(1 << 31)
"""Authorized operations that the request did not ask for (KIP-430)."""


@struct
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string(since=4, nullable_since=4, default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = data()
    member_assignment: bytes = data()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(since=6, nullable_since=6, default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: Sequence[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(since=3, default=NOT_ASKED)


@struct
class DescribeGroupsResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    groups: Sequence[DescribedGroup] = array(DescribedGroup)


@message(key=15, versions=(0, 6), flexible=5, response=DescribeGroupsResponse)
class DescribeGroupsRequest:
    groups: Sequence[str] = array(string())
    include_authorized_operations: bool = boolean(since=3, default=False)
