"""Join group (key 11): become a member of a classic group and wait for its next generation.

KIP-62 (1, rebalance timeout), KIP-394 (4, the member id is given first), KIP-345 (5, static members),
KIP-559 (7, protocol type and name), KIP-800 (8, reason), KIP-814 (9, a static leader skips the assignment).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, data, int16, int32, message, string, struct


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable_since=5, default=None)
    metadata: bytes = data()


@struct
class JoinGroupResponse:
    throttle_time_ms: int = int32(since=2, default=0)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable_since=7, default=None)
    protocol_name: str | None = string(nullable_since=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9, default=False)
    member_id: str = string()
    members: Sequence[JoinGroupResponseMember] = array(JoinGroupResponseMember)


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = data()


@message(key=11, versions=(0, 9), flexible=6, response=JoinGroupResponse)
class JoinGroupRequest:
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable_since=5, default=None)
    protocol_type: str = string()
    protocols: Sequence[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(since=8, nullable_since=8, default=None)
