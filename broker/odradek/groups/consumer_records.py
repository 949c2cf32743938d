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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.consumer_state import (
    Change,
    ClassicMember,
    CurrentAssignment,
    GroupEpoch,
    MemberInfo,
    MemberState,
    Owned,
    Part,
    PartValue,
    ResolvedPattern,
    TargetEpoch,
)
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal import consumer_group as stored
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

__all__ = ["ConsumerRecord", "consumer_record", "consumer_tombstones", "decode_consumer_record"]

VALUE_VERSION = 0
UNKNOWN_EPOCH = 0
"""The assignment epoch of a partition that a broker before 4.3 has stored: commits of any epoch pass for it."""


class ConsumerRecord(NamedTuple):
    """What a record is about."""

    group_id: str
    part: Part
    name: str
    value: PartValue | None


class _Kind(NamedTuple):
    part: Part
    key: Any
    name_field: str | None
    value: Any
    encode: Callable[[Any], object]
    decode: Callable[[str, Any], PartValue | None]


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


KINDS = (
    _Kind(
        Part.EPOCH,
        stored.ConsumerGroupMetadataKey,
        None,
        stored.ConsumerGroupMetadataValue,
        lambda epoch: stored.ConsumerGroupMetadataValue(epoch=epoch.epoch, metadata_hash=epoch.metadata_hash),
        lambda _, value: GroupEpoch(value.epoch, value.metadata_hash),
    ),
    _Kind(
        Part.PARTITION_METADATA,
        stored.ConsumerGroupPartitionMetadataKey,
        None,
        stored.ConsumerGroupPartitionMetadataValue,
        lambda value: value,
        lambda *_: None,
    ),
    _Kind(
        Part.MEMBER,
        stored.ConsumerGroupMemberMetadataKey,
        "member_id",
        stored.ConsumerGroupMemberMetadataValue,
        _encode_member,
        _decode_member,
    ),
    _Kind(
        Part.TARGET_EPOCH,
        stored.ConsumerGroupTargetAssignmentMetadataKey,
        None,
        stored.ConsumerGroupTargetAssignmentMetadataValue,
        lambda target: stored.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
        ),
        lambda _, value: TargetEpoch(value.assignment_epoch, value.assignment_timestamp),
    ),
    _Kind(
        Part.TARGET,
        stored.ConsumerGroupTargetAssignmentMemberKey,
        "member_id",
        stored.ConsumerGroupTargetAssignmentMemberValue,
        _encode_target,
        lambda _, value: {bytes(each.topic_id): frozenset(each.partitions) for each in value.topic_partitions},
    ),
    _Kind(
        Part.CURRENT,
        stored.ConsumerGroupCurrentMemberAssignmentKey,
        "member_id",
        stored.ConsumerGroupCurrentMemberAssignmentValue,
        _encode_current,
        _decode_current,
    ),
    _Kind(
        Part.PATTERN,
        stored.ConsumerGroupRegularExpressionKey,
        "regular_expression",
        stored.ConsumerGroupRegularExpressionValue,
        _encode_pattern,
        lambda _, value: ResolvedPattern(frozenset(value.topics), value.version, value.timestamp),
    ),
)
BY_PART = {kind.part: kind for kind in KINDS}
BY_KEY_VERSION: Mapping[int, _Kind] = {kind.key.VERSIONS[0]: kind for kind in KINDS}


def consumer_record(group_id: str, change: Change) -> tuple[bytes, bytes | None]:
    """The key and the value of a change. INVALID_REQUEST for text that they cannot hold."""
    kind = BY_PART[change.part]
    names = {} if kind.name_field is None else {kind.name_field: change.name}
    try:
        key = encode_versioned(kind.key(group_id=group_id, **names), kind.key.VERSIONS[0])
        value = None if change.value is None else encode_versioned(kind.encode(change.value), VALUE_VERSION)
    except ProtocolError as error:
        raise BrokerError(Error.INVALID_REQUEST, str(error)) from error
    return key, value


def consumer_tombstones(group: ConsumerGroup) -> list[tuple[bytes, bytes | None]]:
    """The records that delete a group."""
    tables = group.tables
    parts = [(Part.CURRENT, member_id) for member_id in tables.members]
    parts += [(Part.TARGET, member_id) for member_id in tables.members]
    parts.append((Part.TARGET_EPOCH, ""))
    parts += [(Part.MEMBER, member_id) for member_id in tables.members]
    parts += [(Part.PATTERN, pattern) for pattern in tables.patterns]
    parts += [(Part.PARTITION_METADATA, ""), (Part.EPOCH, "")]
    return [consumer_record(group.group_id, Change(part, name, None, None)) for part, name in parts]


def decode_consumer_record(key: bytes | memoryview, value: bytes | memoryview | None) -> ConsumerRecord | None:
    """What a record tells of a consumer group; None when it is about something else. ProtocolError when it is none."""
    kind = BY_KEY_VERSION.get(read_version(key))
    if kind is None:
        return None
    subject = decode_versioned(kind.key, key)
    name = "" if kind.name_field is None else cast(str, getattr(subject, kind.name_field))
    decoded = None if value is None else kind.decode(name, decode_versioned(kind.value, value))
    return ConsumerRecord(subject.group_id, kind.part, name, decoded)
