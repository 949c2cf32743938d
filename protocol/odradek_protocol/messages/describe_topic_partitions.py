"""Describe topic partitions (key 75): topics page by page, from a cursor on.

KIP-966. A null `next_cursor` is the end.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int16, int32, message, nested, string, struct, uuid

NOT_ASKED = -(1 << 31)
"""Authorized operations that the request did not ask for (KIP-430)."""


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: Sequence[int] = array(int32())
    isr_nodes: Sequence[int] = array(int32())
    eligible_leader_replicas: Sequence[int] | None = array(int32(), nullable_since=0, default=None)
    last_known_elr: Sequence[int] | None = array(int32(), nullable_since=0, default=None)
    offline_replicas: Sequence[int] = array(int32())


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable_since=0)
    topic_id: bytes = uuid()
    is_internal: bool = boolean(default=False)
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=NOT_ASKED)


@struct
class Cursor:
    topic_name: str = string()
    partition_index: int = int32()


@struct
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = int32(default=0)
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(Cursor, nullable_since=0, default=None)


@struct
class TopicRequest:
    name: str = string()


@message(key=75, versions=(0, 0), flexible=0, response=DescribeTopicPartitionsResponse)
class DescribeTopicPartitionsRequest:
    topics: Sequence[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested(Cursor, nullable_since=0, default=None)
