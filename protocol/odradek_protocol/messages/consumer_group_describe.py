"""Consumer group describe (key 69): epochs, members and assignments of consumer groups.

KIP-848; KIP-1099 (1, which protocol a member speaks).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, message, nested, string, struct, uuid

NOT_ASKED = -(1 << 31)
"""The authorized operations where nobody asked for them."""


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: Sequence[int] = array(int32())


@struct
class Assignment:
    topic_partitions: Sequence[TopicPartitions] = array(TopicPartitions)


@struct
class Member:
    member_id: str = string()
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: Sequence[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable_since=0, default=None)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    member_type: int = int8(since=1, default=-1)


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: Sequence[Member] = array(Member)
    authorized_operations: int = int32(default=NOT_ASKED)


@struct
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = int32(default=0)
    groups: Sequence[DescribedGroup] = array(DescribedGroup)


@message(key=69, versions=(0, 1), flexible=0, response=ConsumerGroupDescribeResponse)
class ConsumerGroupDescribeRequest:
    group_ids: Sequence[str] = array(string())
    include_authorized_operations: bool = boolean()
