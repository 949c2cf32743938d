"""Share group heartbeat (key 76): how a consumer joins a share group, stays in it, learns its partitions, and leaves.

KIP-932 (1).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, nested, string, struct, uuid


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: Sequence[int] = array(int32())


@struct
class Assignment:
    topic_partitions: Sequence[TopicPartitions] = array(TopicPartitions)


@struct
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    member_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32(default=0)
    heartbeat_interval_ms: int = int32(default=0)
    assignment: Assignment | None = nested(Assignment, nullable_since=0, default=None)


@message(key=76, versions=(1, 1), flexible=0, response=ShareGroupHeartbeatResponse)
class ShareGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable_since=0, default=None)
    subscribed_topic_names: Sequence[str] | None = array(string(), nullable_since=0, default=None)
