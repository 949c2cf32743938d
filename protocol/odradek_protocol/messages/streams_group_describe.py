"""Streams group describe (key 89): epochs, topology, members and tasks of streams groups.

What it has in common with StreamsGroupHeartbeat is described there.

KIP-1071, KIP-1331 (1, topology descriptions), KIP-1357 (1, assignors).
"""

from collections.abc import Sequence

from odradek_protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TaskOffset, TopicInfo
from odradek_protocol.schema import array, boolean, int8, int16, int32, message, nested, string, struct

NOT_ASKED = -(1 << 31)
"""The authorized operations where nobody asked for them."""

DESCRIPTION_NOT_STORED = 1
"""The status of a topology description that was asked for, and that nobody has."""


@struct
class Subtopology:
    subtopology_id: str = string()
    source_topics: Sequence[str] = array(string())
    repartition_sink_topics: Sequence[str] = array(string())
    state_changelog_topics: Sequence[TopicInfo] = array(TopicInfo)
    repartition_source_topics: Sequence[TopicInfo] = array(TopicInfo)


@struct
class Topology:
    epoch: int = int32()
    subtopologies: Sequence[Subtopology] | None = array(Subtopology, nullable_since=0, default=None)


@struct
class Assignment:
    active_tasks: Sequence[TaskIds] = array(TaskIds)
    standby_tasks: Sequence[TaskIds] = array(TaskIds)
    warmup_tasks: Sequence[TaskIds] = array(TaskIds)


@struct
class Member:
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, nullable_since=0, default=None)
    client_tags: Sequence[KeyValue] = array(KeyValue)
    task_offsets: Sequence[TaskOffset] = array(TaskOffset, default=())
    task_end_offsets: Sequence[TaskOffset] = array(TaskOffset, default=())
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    is_classic: bool = boolean(default=False)


@struct
class TopologyDescriptionNode:
    name: str = string()
    node_type: int = int8()
    source_topics: Sequence[str] = array(string())
    sink_topic: str | None = string(nullable_since=0, default=None)
    stores: Sequence[str] = array(string())
    successors: Sequence[str] = array(string())


@struct
class TopologyDescriptionSubtopology:
    subtopology_id: str = string()
    nodes: Sequence[TopologyDescriptionNode] = array(TopologyDescriptionNode)


@struct
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = nested(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = nested(TopologyDescriptionNode)


@struct
class TopologyDescription:
    subtopologies: Sequence[TopologyDescriptionSubtopology] = array(TopologyDescriptionSubtopology)
    global_stores: Sequence[TopologyDescriptionGlobalStore] = array(TopologyDescriptionGlobalStore)


@struct
class DescribedGroup:
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    group_id: str = string()
    group_state: str = string(default="")
    group_epoch: int = int32(default=0)
    assignment_epoch: int = int32(default=0)
    topology: Topology | None = nested(Topology, nullable_since=0, default=None)
    members: Sequence[Member] = array(Member, default=())
    authorized_operations: int = int32(default=NOT_ASKED)
    topology_description: TopologyDescription | None = nested(
        TopologyDescription, since=1, nullable_since=1, default=None
    )
    topology_description_status: int = int8(since=1, default=0)
    assignor_name: str | None = string(since=1, nullable_since=1, default=None)


@struct
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = int32(default=0)
    groups: Sequence[DescribedGroup] = array(DescribedGroup)


@message(key=89, versions=(0, 1), flexible=0, response=StreamsGroupDescribeResponse)
class StreamsGroupDescribeRequest:
    group_ids: Sequence[str] = array(string())
    include_authorized_operations: bool = boolean()
    include_topology_description: bool = boolean(since=1, default=False)
