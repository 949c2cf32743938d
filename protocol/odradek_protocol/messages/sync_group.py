"""Sync group (key 14): the leader hands in the assignment, each member gets its part.

KIP-124 (1, throttle time), KIP-345 (3, static members), KIP-559 (5, protocol type and name).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, data, int16, int32, message, string, struct


@struct
class SyncGroupResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable_since=5, default=None)
    protocol_name: str | None = string(since=5, nullable_since=5, default=None)
    assignment: bytes = data()


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = data()


@message(key=14, versions=(0, 5), flexible=4, response=SyncGroupResponse)
class SyncGroupRequest:
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=3, default=None)
    protocol_type: str | None = string(since=5, nullable_since=5, default=None)
    protocol_name: str | None = string(since=5, nullable_since=5, default=None)
    assignments: Sequence[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)
