"""Keys and values of the records of share groups in `__consumer_offsets`, as `versioned` writes them (KIP-932).

The version of a key tells what the record is about:

    10   ShareGroupMemberMetadataKey             a member, and what it is subscribed to
    11   ShareGroupMetadataKey                   the group's epoch
    12   ShareGroupTargetAssignmentMetadataKey   the epoch of the assignment
    13   ShareGroupTargetAssignmentMemberKey     what a member is to have
    14   ShareGroupCurrentMemberAssignmentKey    what a member has
    15   ShareGroupStatePartitionMetadataKey     the partitions of which the share coordinator keeps the group's state

A record without a value deletes what its key names. KIP-1263 (when an assignment was made).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int32, int64, message, string, struct, uuid


@message(versions=(10, 10))
class ShareGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(versions=(0, 0), flexible=0)
class ShareGroupMemberMetadataValue:
    rack_id: str | None = string(nullable_since=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: Sequence[str] = array(string())


@message(versions=(11, 11))
class ShareGroupMetadataKey:
    group_id: str = string()


@message(versions=(0, 0), flexible=0)
class ShareGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()


@message(versions=(12, 12))
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, default=0)


@message(versions=(13, 13))
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: Sequence[int] = array(int32())


@message(versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: Sequence[TopicPartitions] = array(TopicPartitions)


@message(versions=(14, 14))
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(versions=(0, 0), flexible=0)
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: Sequence[TopicPartitions] = array(TopicPartitions)


@message(versions=(15, 15))
class ShareGroupStatePartitionMetadataKey:
    group_id: str = string()


@struct
class TopicPartitionsInfo:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: Sequence[int] = array(int32())


@struct
class TopicInfo:
    topic_id: bytes = uuid()
    topic_name: str = string()


@message(versions=(0, 0), flexible=0)
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: Sequence[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: Sequence[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: Sequence[TopicInfo] = array(TopicInfo)
