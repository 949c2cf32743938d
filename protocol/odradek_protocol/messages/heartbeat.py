"""Heartbeat (key 12): a member of a classic group is alive, and learns of a rebalance.

KIP-124 (1, throttle time), KIP-345 (3, static members).
"""

from odradek_protocol.schema import int16, int32, message, string, struct


@struct
class HeartbeatResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    error_code: int = int16()


@message(key=12, versions=(0, 4), flexible=4, response=HeartbeatResponse)
class HeartbeatRequest:
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=3, default=None)
