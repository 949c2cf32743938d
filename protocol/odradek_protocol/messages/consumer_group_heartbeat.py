"""Consumer group heartbeat (key 68): how members of a consumer group join it, stay in it, and learn what they own.

`member_epoch` is 0 to join, -1 to leave, -2 for a static member that will be back. What is null, or -1 for the timeout,
is as it was told before. KIP-848; KIP-1082 (1, the member makes its own id).
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
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    member_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32(default=0)
    heartbeat_interval_ms: int = int32(default=0)
    assignment: Assignment | None = nested(Assignment, nullable_since=0, default=None)


@message(key=68, versions=(0, 1), flexible=0, response=ConsumerGroupHeartbeatResponse)
class ConsumerGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: Sequence[str] | None = array(string(), nullable_since=0, default=None)
    subscribed_topic_regex: str | None = string(since=1, nullable_since=1, default=None)
    server_assignor: str | None = string(nullable_since=0, default=None)
    topic_partitions: Sequence[TopicPartitions] | None = array(TopicPartitions, nullable_since=0, default=None)
