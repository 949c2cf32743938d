"""StreamsGroupDescribe (key 89), v0-1: epochs, topology, members and tasks of streams groups.

Order of the checks, for each group: UNSUPPORTED_VERSION below level 1 of the feature streams.version,
INVALID_GROUP_ID, coordinator, GROUP_ID_NOT_FOUND where there is no group, or one of another kind. Where all topics are
as the topology needs them the numbers of partitions of internal topics are told, else what the members told of them.

KIP-1071; KIP-1331 (v1): nobody has a topology description; KIP-1357 (v1, assignors).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from odradek.cluster.authorized_operations import GROUP_OPERATIONS
from odradek.groups.membership import check_group_id
from odradek.groups.streams_group import StreamsGroup
from odradek.groups.streams_state import StreamsMember
from odradek.groups.streams_tasks import Role, Task, by_subtopology
from odradek.groups.streams_topology import InternalTopic, Subtopology
from odradek.groups.streams_topology import Topology as AnyTopology
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages import streams_group_describe as messages
from odradek_protocol.messages.streams_group_describe import (
    DESCRIPTION_NOT_STORED,
    NOT_ASKED,
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from odradek_protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TopicInfo

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(StreamsGroupDescribeRequest)
def streams_group_describe(
    node: "Node", connection: "Connection", request: Request[StreamsGroupDescribeRequest]
) -> StreamsGroupDescribeResponse:
    """Answer a StreamsGroupDescribe request."""
    body = request.body
    groups = []
    for group_id in body.group_ids:
        try:
            node.features.check_streams_groups()
            check_group_id(group_id)
            described = _described(node.groups.find_streams_group(group_id))
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, message = answer_for(error, request)
            described = DescribedGroup(group_id=group_id, error_code=code, error_message=message or None)
        if described.error_code == Error.NONE:
            described.authorized_operations = GROUP_OPERATIONS if body.include_authorized_operations else NOT_ASKED
            described.topology_description_status = DESCRIPTION_NOT_STORED if body.include_topology_description else 0
        groups.append(described)
    return StreamsGroupDescribeResponse(groups=groups)


def _described(group: StreamsGroup) -> DescribedGroup:
    tables = group.tables
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=tables.epoch.epoch,
        assignment_epoch=tables.target_epoch.epoch,
        topology=None if tables.topology is None else _topology(group, tables.topology),
        members=[_member(group, member) for member in tables.members.values()],
        assignor_name=group.assignor,
    )


def _topology(group: StreamsGroup, topology: AnyTopology) -> messages.Topology:
    configured = group.configured(topology).subtopologies if group.is_validated else {}
    subtopologies = []
    for name, told in sorted(topology.subtopologies.items()):
        if name in configured:
            found = configured[name]
            subtopologies.append(_subtopology(told, found.repartition_source_topics, found.state_changelog_topics))
        else:
            subtopologies.append(_subtopology(told, told.repartition_source_topics, told.state_changelog_topics))
    return messages.Topology(epoch=topology.epoch, subtopologies=subtopologies)


def _subtopology(
    subtopology: Subtopology, sources: Sequence[InternalTopic], changelogs: Sequence[InternalTopic]
) -> messages.Subtopology:
    return messages.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=_topics(changelogs),
        repartition_source_topics=_topics(sources),
    )


def _topics(topics: Sequence[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in topic.configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> messages.Member:
    current, endpoint = group.tables.current(member.member_id), member.user_endpoint
    return messages.Member(
        member_id=member.member_id,
        member_epoch=current.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags],
        assignment=_assignment(current.assigned),
        target_assignment=_assignment(group.tables.targets.get(member.member_id, ())),
    )


def _assignment(tasks: Iterable[Task]) -> messages.Assignment:
    found = list(tasks)
    active, standby, warmup = (
        [
            TaskIds(subtopology_id=name, partitions=partitions)
            for name, partitions in by_subtopology(found, role).items()
        ]
        for role in Role
    )
    return messages.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
