"""Create partitions (key 37): raise the number of partitions of topics.

KIP-195; KIP-599 (3, may be throttled). Null assignments leave the choice to the broker.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int16, int32, message, string, struct


@struct
class CreatePartitionsTopicResult:
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class CreatePartitionsResponse:
    throttle_time_ms: int = int32(default=0)
    results: Sequence[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)


@struct
class CreatePartitionsAssignment:
    broker_ids: Sequence[int] = array(int32())


@struct
class CreatePartitionsTopic:
    name: str = string()
    count: int = int32()
    assignments: Sequence[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable_since=0)


@message(key=37, versions=(0, 3), flexible=2, response=CreatePartitionsResponse)
class CreatePartitionsRequest:
    topics: Sequence[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()
