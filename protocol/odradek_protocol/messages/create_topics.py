"""Create topics (key 19).

KIP-4; KIP-464 (4, -1 for the broker's defaults), KIP-525 (5, the settings that result), KIP-599 (6, may be throttled),
KIP-516 (7, topic ids).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, boolean, int8, int16, int32, message, string, struct, uuid


@struct
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()


@struct
class CreatableTopicResult:
    name: str = string()
    topic_id: bytes = uuid(since=7, default=NULL_UUID)
    error_code: int = int16()
    error_message: str | None = string(since=1, nullable_since=1, default=None)
    topic_config_error_code: int = int16(since=5, tag=0, default=0)
    num_partitions: int = int32(since=5, default=-1)
    replication_factor: int = int16(since=5, default=-1)
    configs: Sequence[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, since=5, nullable_since=5, default=()
    )


@struct
class CreateTopicsResponse:
    throttle_time_ms: int = int32(since=2, default=0)
    topics: Sequence[CreatableTopicResult] = array(CreatableTopicResult)


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: Sequence[int] = array(int32())


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable_since=0)


@struct
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: Sequence[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: Sequence[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(key=19, versions=(0, 7), flexible=5, response=CreateTopicsResponse)
class CreateTopicsRequest:
    topics: Sequence[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(since=1, default=False)
