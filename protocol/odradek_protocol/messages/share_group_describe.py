"""Share group describe (key 77): state, epochs and members of share groups.

KIP-932 (1).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int16, int32, message, nested, string, struct, uuid

NOT_ASKED = -(1 << 31)
"""Authorized operations that the request did not ask for (KIP-430)."""


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
    rack_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: Sequence[str] = array(string())
    assignment: Assignment = nested(Assignment)


@struct
class DescribedGroup:
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    group_id: str = string()
    group_state: str = string(default="")
    group_epoch: int = int32(default=0)
    assignment_epoch: int = int32(default=0)
    assignor_name: str = string(default="")
    members: Sequence[Member] = array(Member, default=())
    authorized_operations: int = int32(default=NOT_ASKED)


@struct
class ShareGroupDescribeResponse:
    throttle_time_ms: int = int32(default=0)
    groups: Sequence[DescribedGroup] = array(DescribedGroup)


@message(key=77, versions=(1, 1), flexible=0, response=ShareGroupDescribeResponse)
class ShareGroupDescribeRequest:
    group_ids: Sequence[str] = array(string())
    include_authorized_operations: bool = boolean()
