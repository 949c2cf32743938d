"""Alter partition reassignments (key 45): which brokers are to hold the replicas of partitions.

KIP-455; KIP-860 (1, the number of replicas may be held).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int16, int32, message, string, struct


@struct
class ReassignablePartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class ReassignableTopicResponse:
    name: str = string()
    partitions: Sequence[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@struct
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = int32(default=0)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    responses: Sequence[ReassignableTopicResponse] = array(ReassignableTopicResponse)


@struct
class ReassignablePartition:
    partition_index: int = int32()
    replicas: Sequence[int] | None = array(int32(), nullable_since=0, default=None)


@struct
class ReassignableTopic:
    name: str = string()
    partitions: Sequence[ReassignablePartition] = array(ReassignablePartition)


@message(key=45, versions=(0, 1), flexible=0, response=AlterPartitionReassignmentsResponse)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60_000)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    topics: Sequence[ReassignableTopic] = array(ReassignableTopic)
