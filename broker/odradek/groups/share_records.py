"""Share groups as records of __consumer_offsets: Kafka's keys and values, one record for each `SharePart`.

key (its version is the kind)                        value, version 0
10  ShareGroupMemberMetadata (group, member)         what the member says of itself
11  ShareGroupMetadata (group)                       group epoch, hash of the topics
12  ShareGroupTargetAssignmentMetadata (group)       target epoch
13  ShareGroupTargetAssignmentMember (.., ..)        partitions
14  ShareGroupCurrentMemberAssignment (.., ..)       epochs, partitions
15  ShareGroupStatePartitionMetadata (group)         the partitions of which there is a state
"""

from collections.abc import Iterable

from odradek.groups.assignors import Assignment
from odradek.groups.part_records import PartKind, PartRecords
from odradek.groups.share_state import (
    NamedPartitions,
    ShareCurrent,
    ShareMember,
    SharePart,
    SharePartValue,
    TopicStates,
)
from odradek.groups.tables import GroupEpoch, TargetEpoch
from odradek_protocol.internal import share_group as stored

__all__ = ["SHARE_RECORDS"]

STABLE = 1
"""The state of every member of a share group; what consumer groups have beside it, share groups do without."""


def _encode_member(member: ShareMember) -> object:
    return stored.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )


def _decode_member(member_id: str, value: stored.ShareGroupMemberMetadataValue) -> ShareMember:
    topics = frozenset(value.subscribed_topic_names)
    return ShareMember(member_id, value.rack_id, value.client_id, value.client_host, topics)


def _encode_assignment(assignment: Assignment) -> list[stored.TopicPartitions]:
    return [
        stored.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
    ]


def _decode_assignment(topics: Iterable[stored.TopicPartitions]) -> Assignment:
    return {bytes(each.topic_id): frozenset(each.partitions) for each in topics}


def _encode_current(current: ShareCurrent) -> object:
    return stored.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=STABLE,
        assigned_partitions=_encode_assignment(current.assigned),
    )


def _decode_current(_: str, value: stored.ShareGroupCurrentMemberAssignmentValue) -> ShareCurrent:
    return ShareCurrent(value.member_epoch, value.previous_member_epoch, _decode_assignment(value.assigned_partitions))


def _encode_named(partitions: NamedPartitions) -> list[stored.TopicPartitionsInfo]:
    return [
        stored.TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
        for topic_id, (name, indexes) in partitions.items()
    ]


def _decode_named(topics: Iterable[stored.TopicPartitionsInfo]) -> NamedPartitions:
    return {bytes(each.topic_id): (each.topic_name, frozenset(each.partitions)) for each in topics}


def _encode_topics(topics: TopicStates) -> object:
    return stored.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_encode_named(topics.initializing),
        initialized_topics=_encode_named(topics.initialized),
        deleting_topics=[
            stored.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in topics.deleting.items()
        ],
    )


def _decode_topics(_: str, value: stored.ShareGroupStatePartitionMetadataValue) -> TopicStates:
    return TopicStates(
        _decode_named(value.initializing_topics),
        _decode_named(value.initialized_topics),
        {bytes(each.topic_id): each.topic_name for each in value.deleting_topics},
    )


SHARE_RECORDS: PartRecords[SharePart, SharePartValue] = PartRecords(
    (
        PartKind(
            SharePart.EPOCH,
            stored.ShareGroupMetadataKey,
            stored.ShareGroupMetadataValue,
            lambda epoch: stored.ShareGroupMetadataValue(epoch=epoch.epoch, metadata_hash=epoch.metadata_hash),
            lambda _, value: GroupEpoch(value.epoch, value.metadata_hash),
        ),
        PartKind(
            SharePart.TOPICS,
            stored.ShareGroupStatePartitionMetadataKey,
            stored.ShareGroupStatePartitionMetadataValue,
            _encode_topics,
            _decode_topics,
        ),
        PartKind(
            SharePart.MEMBER,
            stored.ShareGroupMemberMetadataKey,
            stored.ShareGroupMemberMetadataValue,
            _encode_member,
            _decode_member,
            name_field="member_id",
        ),
        PartKind(
            SharePart.TARGET_EPOCH,
            stored.ShareGroupTargetAssignmentMetadataKey,
            stored.ShareGroupTargetAssignmentMetadataValue,
            lambda target: stored.ShareGroupTargetAssignmentMetadataValue(
                assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
            ),
            lambda _, value: TargetEpoch(value.assignment_epoch, value.assignment_timestamp),
        ),
        PartKind(
            SharePart.TARGET,
            stored.ShareGroupTargetAssignmentMemberKey,
            stored.ShareGroupTargetAssignmentMemberValue,
            lambda target: stored.ShareGroupTargetAssignmentMemberValue(topic_partitions=_encode_assignment(target)),
            lambda _, value: _decode_assignment(value.topic_partitions),
            name_field="member_id",
        ),
        PartKind(
            SharePart.CURRENT,
            stored.ShareGroupCurrentMemberAssignmentKey,
            stored.ShareGroupCurrentMemberAssignmentValue,
            _encode_current,
            _decode_current,
            name_field="member_id",
        ),
    )
)
