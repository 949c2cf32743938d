"""Leave group (key 13): remove members from a classic group.

Versions up to 2 remove the caller, later ones a list of members. KIP-345 (3, many and static members), KIP-800 (5,
reason).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct


@struct
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(nullable_since=0)
    error_code: int = int16()


@struct
class LeaveGroupResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    error_code: int = int16()
    members: Sequence[MemberResponse] = array(MemberResponse, since=3, default=())


@struct
class MemberIdentity:
    member_id: str = string()
    group_instance_id: str | None = string(nullable_since=0, default=None)
    reason: str | None = string(since=5, nullable_since=5, default=None)


@message(key=13, versions=(0, 5), flexible=4, response=LeaveGroupResponse)
class LeaveGroupRequest:
    group_id: str = string()
    member_id: str = string(until=2, default="")
    members: Sequence[MemberIdentity] = array(MemberIdentity, since=3, default=())
