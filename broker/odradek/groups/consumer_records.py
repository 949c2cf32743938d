"""Consumer groups of KIP-848 as records of __consumer_offsets: Kafka's keys and values, one record for each `Part`.

key (its version is the kind)                     value, version 0
3   ConsumerGroupMetadata (group)                 group epoch, hash of the topics
4   ConsumerGroupPartitionMetadata (group)        only ever deleted: brokers before 4.1 wrote it
5   ConsumerGroupMemberMetadata (group, member)   what the member says of itself
6   ConsumerGroupTargetAssignmentMetadata (group) target epoch
7   ConsumerGroupTargetAssignmentMember (.., ..)  partitions
8   ConsumerGroupCurrentMemberAssignment (.., ..) epochs, state, partitions with the epochs of their assignment
16  ConsumerGroupRegularExpression (group, text)  topics
"""

from collections.abc import Mapping, Sequence

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_state import (
    ClassicMember,
    CurrentAssignment,
    MemberInfo,
    MemberState,
    Owned,
    Part,
    PartValue,
    ResolvedPattern,
)
from odradek.groups.part_records import PartKind, PartRecords
from odradek.groups.tables import GroupEpoch, TargetEpoch
from odradek_protocol.internal import consumer_group as stored

__all__ = ["CONSUMER_RECORDS"]

UNKNOWN_EPOCH = 0
"""The assignment epoch of a partition that a broker before 4.3 has stored: commits of any epoch pass for it."""


def _encode_member(member: MemberInfo) -> object:
    classic = None
    if member.classic is not None:
        protocols = [stored.ClassicProtocol(name=name, metadata=data) for name, data in member.classic.protocols]
        classic = stored.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms, supported_protocols=protocols
        )
    return stored.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )


def _decode_member(member_id: str, value: stored.ConsumerGroupMemberMetadataValue) -> MemberInfo:
    classic = None
    if value.classic_member_metadata is not None:
        protocols = value.classic_member_metadata.supported_protocols
        classic = ClassicMember(
            value.classic_member_metadata.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in protocols),
        )
    return MemberInfo(
        member_id,
        client_id=value.client_id,
        client_host=value.client_host,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_pattern=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=classic,
    )


def _encode_target(target: Assignment) -> object:
    return stored.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            stored.TargetTopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in target.items()
        ]
    )


def _encode_owned(owned: Owned) -> list[stored.CurrentTopicPartitions]:
    return [
        stored.CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in owned.items()
    ]


def _decode_owned(owned: Sequence[stored.CurrentTopicPartitions]) -> Mapping[bytes, Mapping[int, int]]:
    found = {}
    for each in owned:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [UNKNOWN_EPOCH] * len(each.partitions)
        found[bytes(each.topic_id)] = dict(zip(each.partitions, epochs, strict=True))
    return found


def _encode_current(current: CurrentAssignment) -> object:
    return stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_encode_owned(current.assigned),
        partitions_pending_revocation=_encode_owned(current.revoking),
    )


def _decode_current(_: str, value: stored.ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    try:
        state = MemberState(value.state)
    except ValueError:
        state = MemberState.UNKNOWN
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        state,
        _decode_owned(value.assigned_partitions),
        _decode_owned(value.partitions_pending_revocation),
    )


def _encode_pattern(pattern: ResolvedPattern) -> object:
    return stored.ConsumerGroupRegularExpressionValue(
        topics=sorted(pattern.topics), version=pattern.version, timestamp=pattern.timestamp_ms
    )


CONSUMER_RECORDS: PartRecords[Part, PartValue] = PartRecords(
    (
        PartKind(
            Part.EPOCH,
            stored.ConsumerGroupMetadataKey,
            stored.ConsumerGroupMetadataValue,
            lambda epoch: stored.ConsumerGroupMetadataValue(epoch=epoch.epoch, metadata_hash=epoch.metadata_hash),
            lambda _, value: GroupEpoch(value.epoch, value.metadata_hash),
        ),
        PartKind(
            Part.PARTITION_METADATA,
            stored.ConsumerGroupPartitionMetadataKey,
            stored.ConsumerGroupPartitionMetadataValue,
            lambda value: value,
            lambda *_: None,
        ),
        PartKind(
            Part.PATTERN,
            stored.ConsumerGroupRegularExpressionKey,
            stored.ConsumerGroupRegularExpressionValue,
            _encode_pattern,
            lambda _, value: ResolvedPattern(frozenset(value.topics), value.version, value.timestamp),
            name_field="regular_expression",
        ),
        PartKind(
            Part.MEMBER,
            stored.ConsumerGroupMemberMetadataKey,
            stored.ConsumerGroupMemberMetadataValue,
            _encode_member,
            _decode_member,
            name_field="member_id",
        ),
        PartKind(
            Part.TARGET_EPOCH,
            stored.ConsumerGroupTargetAssignmentMetadataKey,
            stored.ConsumerGroupTargetAssignmentMetadataValue,
            lambda target: stored.ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
            ),
            lambda _, value: TargetEpoch(value.assignment_epoch, value.assignment_timestamp),
        ),
        PartKind(
            Part.TARGET,
            stored.ConsumerGroupTargetAssignmentMemberKey,
            stored.ConsumerGroupTargetAssignmentMemberValue,
            _encode_target,
            lambda _, value: {bytes(each.topic_id): frozenset(each.partitions) for each in value.topic_partitions},
            name_field="member_id",
        ),
        PartKind(
            Part.CURRENT,
            stored.ConsumerGroupCurrentMemberAssignmentKey,
            stored.ConsumerGroupCurrentMemberAssignmentValue,
            _encode_current,
            _decode_current,
            name_field="member_id",
        ),
    )
)
