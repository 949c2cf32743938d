"""Streams groups as records of __consumer_offsets: Kafka's keys and values, one record for each `StreamsPart`.

key (its version is the kind)                        value, version 0
17  StreamsGroupMetadata (group)                     group epoch, hash of the topics, validated topology, settings
19  StreamsGroupMemberMetadata (group, member)       what the member says of itself
20  StreamsGroupTargetAssignmentMetadata (group)     target epoch
21  StreamsGroupTargetAssignmentMember (.., ..)      tasks
22  StreamsGroupCurrentMemberAssignment (.., ..)     epochs, state, tasks with the epochs of their assignment
23  StreamsGroupTopology (group)                     subtopologies and their topics
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from odradek.groups.consumer_state import MemberState
from odradek.groups.part_records import PartKind, PartRecords
from odradek.groups.streams_state import (
    StreamsCurrent,
    StreamsEpoch,
    StreamsMember,
    StreamsPart,
    StreamsPartValue,
)
from odradek.groups.streams_tasks import Held, Role, Task, Tasks, by_subtopology
from odradek.groups.streams_topology import CopartitionGroup, InternalTopic, Subtopology, Topology
from odradek.groups.tables import TargetEpoch
from odradek_protocol.internal import streams_group as stored

__all__ = ["STREAMS_RECORDS", "decode_topology"]

Pairs = tuple[tuple[str, str], ...]


def _encode_pairs(pairs: Pairs) -> list[stored.KeyValue]:
    return [stored.KeyValue(key=key, value=value) for key, value in pairs]


def _decode_pairs(pairs: Iterable[stored.KeyValue]) -> Pairs:
    return tuple((pair.key, pair.value) for pair in pairs)


def _encode_member(member: StreamsMember) -> object:
    endpoint = member.user_endpoint
    return stored.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else stored.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=_encode_pairs(member.client_tags),
    )


def _decode_member(member_id: str, value: stored.StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return StreamsMember(
        member_id,
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        value.rebalance_timeout_ms,
        value.topology_epoch,
        value.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        _decode_pairs(value.client_tags),
    )


def _encode_target(tasks: Tasks) -> object:
    active, standby, warmup = (
        [
            stored.TargetTaskIds(subtopology_id=name, partitions=partitions)
            for name, partitions in by_subtopology(tasks, role).items()
        ]
        for role in Role
    )
    return stored.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
    )


def _decode_target(_: str, value: stored.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    lists = (value.active_tasks, value.standby_tasks, value.warmup_tasks)
    return frozenset(
        Task(role, each.subtopology_id, partition)
        for role, found in zip(Role, lists, strict=True)
        for each in found
        for partition in each.partitions
    )


def _encode_held(held: Held) -> Iterator[list[stored.CurrentTaskIds]]:
    """The tasks of each role; only active ones are stored with epochs."""
    for role in Role:
        yield [
            stored.CurrentTaskIds(
                subtopology_id=name,
                partitions=partitions,
                assignment_epochs=[held[Task(role, name, each)] for each in partitions]
                if role is Role.ACTIVE
                else None,
            )
            for name, partitions in by_subtopology(held, role).items()
        ]


def _decode_held(lists: Iterable[Sequence[stored.CurrentTaskIds]], member_epoch: int) -> Held:
    """Tasks of each role; an active one whose epoch is not stored has that of the member."""
    held = {}
    for role, found in zip(Role, lists, strict=True):
        for each in found:
            epochs = each.assignment_epochs
            if epochs is None or len(epochs) != len(each.partitions):
                epochs = [member_epoch] * len(each.partitions)
            for partition, epoch in zip(each.partitions, epochs, strict=True):
                held[Task(role, each.subtopology_id, partition)] = epoch
    return held


def _encode_current(current: StreamsCurrent) -> object:
    active, standby, warmup = _encode_held(current.assigned)
    revoking_active, revoking_standby, revoking_warmup = _encode_held(current.revoking)
    return stored.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        active_tasks_pending_revocation=revoking_active,
        standby_tasks_pending_revocation=revoking_standby,
        warmup_tasks_pending_revocation=revoking_warmup,
    )


def _decode_current(_: str, value: stored.StreamsGroupCurrentMemberAssignmentValue) -> StreamsCurrent:
    try:
        state = MemberState(value.state)
    except ValueError:
        state = MemberState.UNKNOWN
    revoking = (
        value.active_tasks_pending_revocation,
        value.standby_tasks_pending_revocation,
        value.warmup_tasks_pending_revocation,
    )
    return StreamsCurrent(
        value.member_epoch,
        value.previous_member_epoch,
        state,
        _decode_held((value.active_tasks, value.standby_tasks, value.warmup_tasks), value.member_epoch),
        _decode_held(revoking, value.member_epoch),
    )


def _encode_topics(topics: Iterable[InternalTopic]) -> list[stored.TopicInfo]:
    return [
        stored.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=_encode_pairs(topic.configs),
        )
        for topic in topics
    ]


def _decode_topics(topics: Iterable[stored.TopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(topic.name, topic.partitions, topic.replication_factor, _decode_pairs(topic.topic_configs))
        for topic in topics
    )


def _encode_topology(topology: Topology) -> object:
    return stored.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            stored.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                state_changelog_topics=_encode_topics(each.state_changelog_topics),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=_encode_topics(each.repartition_source_topics),
                copartition_groups=[
                    stored.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in topology.subtopologies.values()
        ],
    )


def decode_topology(value: Any) -> Topology:
    """The topology that a record tells, or a heartbeat: the two have the same fields."""
    return Topology(
        value.epoch,
        {
            each.subtopology_id: Subtopology(
                each.subtopology_id,
                tuple(each.source_topics),
                tuple(each.source_topic_regex),
                _decode_topics(each.state_changelog_topics),
                tuple(each.repartition_sink_topics),
                _decode_topics(each.repartition_source_topics),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in each.copartition_groups
                ),
            )
            for each in value.subtopologies
        },
    )


def _encode_epoch(epoch: StreamsEpoch) -> object:
    return stored.StreamsGroupMetadataValue(
        epoch=epoch.epoch,
        metadata_hash=epoch.metadata_hash,
        validated_topology_epoch=epoch.validated_topology,
        last_assignment_configs=_encode_pairs(epoch.configs),
    )


def _decode_epoch(_: str, value: stored.StreamsGroupMetadataValue) -> StreamsEpoch:
    configs = _decode_pairs(value.last_assignment_configs or ())
    return StreamsEpoch(value.epoch, value.metadata_hash, value.validated_topology_epoch, configs)


STREAMS_RECORDS: PartRecords[StreamsPart, StreamsPartValue] = PartRecords(
    (
        PartKind(
            StreamsPart.TOPOLOGY,
            stored.StreamsGroupTopologyKey,
            stored.StreamsGroupTopologyValue,
            _encode_topology,
            lambda _, value: decode_topology(value),
        ),
        PartKind(
            StreamsPart.EPOCH,
            stored.StreamsGroupMetadataKey,
            stored.StreamsGroupMetadataValue,
            _encode_epoch,
            _decode_epoch,
        ),
        PartKind(
            StreamsPart.MEMBER,
            stored.StreamsGroupMemberMetadataKey,
            stored.StreamsGroupMemberMetadataValue,
            _encode_member,
            _decode_member,
            name_field="member_id",
        ),
        PartKind(
            StreamsPart.TARGET_EPOCH,
            stored.StreamsGroupTargetAssignmentMetadataKey,
            stored.StreamsGroupTargetAssignmentMetadataValue,
            lambda target: stored.StreamsGroupTargetAssignmentMetadataValue(
                assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
            ),
            lambda _, value: TargetEpoch(value.assignment_epoch, value.assignment_timestamp),
        ),
        PartKind(
            StreamsPart.TARGET,
            stored.StreamsGroupTargetAssignmentMemberKey,
            stored.StreamsGroupTargetAssignmentMemberValue,
            _encode_target,
            _decode_target,
            name_field="member_id",
        ),
        PartKind(
            StreamsPart.CURRENT,
            stored.StreamsGroupCurrentMemberAssignmentKey,
            stored.StreamsGroupCurrentMemberAssignmentValue,
            _encode_current,
            _decode_current,
            name_field="member_id",
        ),
    )
)
