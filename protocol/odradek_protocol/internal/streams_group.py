"""Keys and values of the records in `__consumer_offsets` that tell of streams groups (KIP-1071).

The version of a key tells what the record is about:

    17   StreamsGroupMetadata                   the group's epoch, and which topology has its topics
    19   StreamsGroupMemberMetadata             what a member says about itself
    20   StreamsGroupTargetAssignmentMetadata   the epoch of the target assignment
    21   StreamsGroupTargetAssignmentMember     the tasks that a member is to have
    22   StreamsGroupCurrentMemberAssignment    the tasks that it has, and how far it has come
    23   StreamsGroupTopology                   what the application reads, writes and keeps

A record without a value deletes what its key names. KIP-1251 (22, assignment epochs), KIP-1263 (20, timestamp),
KIP-1331 (17, descriptions).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, int64, message, nested, string, struct, uint16


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@message(versions=(17, 17))
class StreamsGroupMetadataKey:
    group_id: str = string()


@message(versions=(0, 0), flexible=0)
class StreamsGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(tag=0, default=-1)
    last_assignment_configs: Sequence[KeyValue] | None = array(KeyValue, nullable_since=0, tag=1, default=None)
    stored_description_topology_epoch: int = int32(tag=2, default=-1)
    failed_description_topology_epoch: int = int32(tag=3, default=-1)


@message(versions=(19, 19))
class StreamsGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@message(versions=(0, 0), flexible=0)
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = string(nullable_since=0)
    rack_id: str | None = string(nullable_since=0)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, nullable_since=0, default=None)
    client_tags: Sequence[KeyValue] = array(KeyValue)


@message(versions=(20, 20))
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, default=0)


@message(versions=(21, 21))
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TargetTaskIds:
    subtopology_id: str = string()
    partitions: Sequence[int] = array(int32())


@message(versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: Sequence[TargetTaskIds] = array(TargetTaskIds)
    standby_tasks: Sequence[TargetTaskIds] = array(TargetTaskIds)
    warmup_tasks: Sequence[TargetTaskIds] = array(TargetTaskIds)


@message(versions=(22, 22))
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class CurrentTaskIds:
    subtopology_id: str = string()
    partitions: Sequence[int] = array(int32())
    assignment_epochs: Sequence[int] | None = array(int32(), nullable_since=0, tag=0, default=None)


@message(versions=(0, 0), flexible=0)
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: Sequence[CurrentTaskIds] = array(CurrentTaskIds)
    standby_tasks: Sequence[CurrentTaskIds] = array(CurrentTaskIds)
    warmup_tasks: Sequence[CurrentTaskIds] = array(CurrentTaskIds)
    active_tasks_pending_revocation: Sequence[CurrentTaskIds] = array(CurrentTaskIds)
    standby_tasks_pending_revocation: Sequence[CurrentTaskIds] = array(CurrentTaskIds)
    warmup_tasks_pending_revocation: Sequence[CurrentTaskIds] = array(CurrentTaskIds)


@message(versions=(23, 23))
class StreamsGroupTopologyKey:
    group_id: str = string()


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


@message(versions=(0, 0), flexible=0)
class StreamsGroupTopologyValue:
    epoch: int = int32()
    subtopologies: Sequence[Subtopology] = array(Subtopology)
