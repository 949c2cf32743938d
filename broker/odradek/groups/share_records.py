"""Share groups as records of __consumer_offsets: Kafka's keys and values, one record for each `SharePart`.

key (its version is the kind)                        value, version 0
10  ShareGroupMemberMetadata (group, member)         what the member says of itself
11  ShareGroupMetadata (group)                       group epoch, hash of the topics
12  ShareGroupTargetAssignmentMetadata (group)       target epoch
13  ShareGroupTargetAssignmentMember (.., ..)        partitions
14  ShareGroupCurrentMemberAssignment (.., ..)       epochs, partitions
15  ShareGroupStatePartitionMetadata (group)         the partitions of which there is a state
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_state import GroupEpoch, TargetEpoch
from odradek.groups.share_group import ShareGroup
from odradek.groups.share_state import (
    NamedPartitions,
    ShareChange,
    ShareCurrent,
    ShareMember,
    SharePart,
    SharePartValue,
    TopicStates,
)
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal import share_group as stored
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

__all__ = ["ShareRecord", "decode_share_record", "share_record", "share_tombstones"]

VALUE_VERSION = 0
STABLE = 1
"""The state of every member of a share group; what consumer groups have beside it, share groups do without."""


class ShareRecord(NamedTuple):
    """What a record is about."""

    group_id: str
    part: SharePart
    name: str
    value: SharePartValue | None


class _Kind(NamedTuple):
    part: SharePart
    key: Any
    of_member: bool
    value: Any
    encode: Callable[[Any], object]
    decode: Callable[[str, Any], SharePartValue]


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


KINDS = (
    _Kind(
        SharePart.MEMBER,
        stored.ShareGroupMemberMetadataKey,
        True,
        stored.ShareGroupMemberMetadataValue,
        _encode_member,
        _decode_member,
    ),
    _Kind(
        SharePart.EPOCH,
        stored.ShareGroupMetadataKey,
        False,
        stored.ShareGroupMetadataValue,
        lambda epoch: stored.ShareGroupMetadataValue(epoch=epoch.epoch, metadata_hash=epoch.metadata_hash),
        lambda _, value: GroupEpoch(value.epoch, value.metadata_hash),
    ),
    _Kind(
        SharePart.TARGET_EPOCH,
        stored.ShareGroupTargetAssignmentMetadataKey,
        False,
        stored.ShareGroupTargetAssignmentMetadataValue,
        lambda target: stored.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
        ),
        lambda _, value: TargetEpoch(value.assignment_epoch, value.assignment_timestamp),
    ),
    _Kind(
        SharePart.TARGET,
        stored.ShareGroupTargetAssignmentMemberKey,
        True,
        stored.ShareGroupTargetAssignmentMemberValue,
        lambda target: stored.ShareGroupTargetAssignmentMemberValue(topic_partitions=_encode_assignment(target)),
        lambda _, value: _decode_assignment(value.topic_partitions),
    ),
    _Kind(
        SharePart.CURRENT,
        stored.ShareGroupCurrentMemberAssignmentKey,
        True,
        stored.ShareGroupCurrentMemberAssignmentValue,
        _encode_current,
        _decode_current,
    ),
    _Kind(
        SharePart.TOPICS,
        stored.ShareGroupStatePartitionMetadataKey,
        False,
        stored.ShareGroupStatePartitionMetadataValue,
        _encode_topics,
        _decode_topics,
    ),
)
BY_PART = {kind.part: kind for kind in KINDS}
BY_KEY_VERSION: Mapping[int, _Kind] = {kind.key.VERSIONS[0]: kind for kind in KINDS}


def share_record(group_id: str, change: ShareChange) -> tuple[bytes, bytes | None]:
    """The key and the value of a change. INVALID_REQUEST for text that they cannot hold."""
    kind = BY_PART[change.part]
    names = {"member_id": change.name} if kind.of_member else {}
    try:
        key = encode_versioned(kind.key(group_id=group_id, **names), kind.key.VERSIONS[0])
        value = None if change.value is None else encode_versioned(kind.encode(change.value), VALUE_VERSION)
    except ProtocolError as error:
        raise BrokerError(Error.INVALID_REQUEST, str(error)) from error
    return key, value


def share_tombstones(group: ShareGroup) -> list[tuple[bytes, bytes | None]]:
    """The records that delete a group."""
    members = group.members
    parts = [(SharePart.CURRENT, member_id) for member_id in members]
    parts += [(SharePart.TARGET, member_id) for member_id in members]
    parts.append((SharePart.TARGET_EPOCH, ""))
    parts += [(SharePart.MEMBER, member_id) for member_id in members]
    parts += [(SharePart.TOPICS, ""), (SharePart.EPOCH, "")]
    return [share_record(group.group_id, ShareChange(part, name, None)) for part, name in parts]


def decode_share_record(key: bytes | memoryview, value: bytes | memoryview | None) -> ShareRecord | None:
    """What a record tells of a share group; None when it is about something else. ProtocolError when it is none."""
    kind = BY_KEY_VERSION.get(read_version(key))
    if kind is None:
        return None
    subject = decode_versioned(kind.key, key)
    name = cast(str, subject.member_id) if kind.of_member else ""
    decoded = None if value is None else kind.decode(name, decode_versioned(kind.value, value))
    return ShareRecord(subject.group_id, kind.part, name, decoded)
