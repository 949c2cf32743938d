"""Streams group heartbeat (key 88): how a Kafka Streams application's members join a group, tell its topology, learn
their tasks, and leave.

`member_epoch` is 0 to join, -1 to leave. What is null, or -1 for the timeout, is as it was told before. A task is a
partition of a subtopology: it reads that partition of each of the subtopology's source topics.

KIP-1071, KIP-1331 (1, topology descriptions).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, int64, message, nested, string, struct, uint16


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@struct
class TopicInfo:
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: Sequence[KeyValue] = array(KeyValue)


@struct
class CopartitionGroup:
    source_topics: Sequence[int] = array(int16())
    source_topic_regex: Sequence[int] = array(int16())
    repartition_source_topics: Sequence[int] = array(int16())


@struct
class Subtopology:
    subtopology_id: str = string()
    source_topics: Sequence[str] = array(string())
    source_topic_regex: Sequence[str] = array(string())
    state_changelog_topics: Sequence[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: Sequence[str] = array(string())
    repartition_source_topics: Sequence[TopicInfo] = array(TopicInfo)
    copartition_groups: Sequence[CopartitionGroup] = array(CopartitionGroup)


@struct
class Topology:
    epoch: int = int32()
    subtopologies: Sequence[Subtopology] = array(Subtopology)


@struct
class TaskIds:
    subtopology_id: str = string()
    partitions: Sequence[int] = array(int32())


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class TaskOffset:
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@struct
class Status:
    status_code: int = int8()
    status_detail: str = string()


@struct
class TopicPartition:
    topic: str = string()
    partitions: Sequence[int] = array(int32())


@struct
class EndpointToPartitions:
    user_endpoint: Endpoint = nested(Endpoint)
    active_partitions: Sequence[TopicPartition] = array(TopicPartition)
    standby_partitions: Sequence[TopicPartition] = array(TopicPartition)


@struct
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    member_id: str = string(default="")
    member_epoch: int = int32(default=0)
    heartbeat_interval_ms: int = int32(default=0)
    acceptable_recovery_lag_legacy: int = int32(until=0, default=0)
    task_offset_interval_ms: int = int32(default=0)
    acceptable_recovery_lag: int = int64(since=1, default=-1)
    status: Sequence[Status] | None = array(Status, nullable_since=0, default=())
    active_tasks: Sequence[TaskIds] | None = array(TaskIds, nullable_since=0, default=None)
    standby_tasks: Sequence[TaskIds] | None = array(TaskIds, nullable_since=0, default=None)
    warmup_tasks: Sequence[TaskIds] | None = array(TaskIds, nullable_since=0, default=None)
    topology_description_required: bool = boolean(since=1, default=False)
    endpoint_information_epoch: int = int32(default=0)
    partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable_since=0, default=None
    )


@message(key=88, versions=(0, 1), flexible=0, response=StreamsGroupHeartbeatResponse)
class StreamsGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = nested(Topology, nullable_since=0, default=None)
    active_tasks: Sequence[TaskIds] | None = array(TaskIds, nullable_since=0, default=None)
    standby_tasks: Sequence[TaskIds] | None = array(TaskIds, nullable_since=0, default=None)
    warmup_tasks: Sequence[TaskIds] | None = array(TaskIds, nullable_since=0, default=None)
    process_id: str | None = string(nullable_since=0, default=None)
    user_endpoint: Endpoint | None = nested(Endpoint, nullable_since=0, default=None)
    client_tags: Sequence[KeyValue] | None = array(KeyValue, nullable_since=0, default=None)
    task_offsets: Sequence[TaskOffset] | None = array(TaskOffset, nullable_since=0, default=None)
    task_end_offsets: Sequence[TaskOffset] | None = array(TaskOffset, nullable_since=0, default=None)
    shutdown_application: bool = boolean(default=False)
