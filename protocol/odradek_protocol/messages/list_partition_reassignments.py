"""List partition reassignments (key 46): the partitions whose replicas are on their way to other brokers.

KIP-455.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct


@struct
class OngoingPartitionReassignment:
    partition_index: int = int32()
    replicas: Sequence[int] = array(int32())
    adding_replicas: Sequence[int] = array(int32())
    removing_replicas: Sequence[int] = array(int32())


@struct
class OngoingTopicReassignment:
    name: str = string()
    partitions: Sequence[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


@struct
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    topics: Sequence[OngoingTopicReassignment] = array(OngoingTopicReassignment)


@struct
class ListPartitionReassignmentsTopics:
    name: str = string()
    partition_indexes: Sequence[int] = array(int32())


@message(key=46, versions=(0, 0), flexible=0, response=ListPartitionReassignmentsResponse)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60_000)
    topics: Sequence[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable_since=0, default=None
    )
