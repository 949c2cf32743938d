"""Keys and values of the records in `__consumer_offsets` that tell of consumer groups of KIP-848.

The version of a key tells what the record is about:

    3    ConsumerGroupMetadata              the group's epoch
    4    ConsumerGroupPartitionMetadata     the partitions of its topics; brokers before 4.1 wrote it, KIP-1101
    5    ConsumerGroupMemberMetadata        what a member says about itself
    6    ConsumerGroupTargetAssignmentMetadata    the epoch of the target assignment
    7    ConsumerGroupTargetAssignmentMember      what a member is to own
    8    ConsumerGroupCurrentMemberAssignment     what it owns, and how far it has come
    16   ConsumerGroupRegularExpression     the topics of a pattern that members subscribe to

A record without a value deletes what its key names. KIP-1251 (8, assignment epochs), KIP-1263 (6, timestamp).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, data, int8, int32, int64, message, nested, string, struct, uuid


@message(versions=(3, 3))
class ConsumerGroupMetadataKey:
    group_id: str = string()


@message(versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64(tag=0, default=0)


@message(versions=(4, 4))
class ConsumerGroupPartitionMetadataKey:
    group_id: str = string()


@struct
class PartitionMetadata:
    partition: int = int32()
    racks: Sequence[str] = array(string())


@struct
class TopicMetadata:
    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: Sequence[PartitionMetadata] = array(PartitionMetadata)


@message(versions=(0, 0), flexible=0)
class ConsumerGroupPartitionMetadataValue:
    topics: Sequence[TopicMetadata] = array(TopicMetadata)


@message(versions=(5, 5))
class ConsumerGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@struct
class ClassicProtocol:
    name: str = string()
    metadata: bytes = data()


@struct
class ClassicMemberMetadata:
    session_timeout_ms: int = int32()
    supported_protocols: Sequence[ClassicProtocol] = array(ClassicProtocol)


@message(versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = string(nullable_since=0)
    rack_id: str | None = string(nullable_since=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: Sequence[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable_since=0)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable_since=0)
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, nullable_since=0, tag=0, default=None
    )


@message(versions=(6, 6))
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, default=0)


@message(versions=(7, 7))
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TargetTopicPartition:
    topic_id: bytes = uuid()
    partitions: Sequence[int] = array(int32())


@message(versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: Sequence[TargetTopicPartition] = array(TargetTopicPartition)


@message(versions=(8, 8))
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class CurrentTopicPartitions:
    topic_id: bytes = uuid()
    partitions: Sequence[int] = array(int32())
    assignment_epochs: Sequence[int] | None = array(int32(), nullable_since=0, tag=0, default=None)


@message(versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: Sequence[CurrentTopicPartitions] = array(CurrentTopicPartitions)
    partitions_pending_revocation: Sequence[CurrentTopicPartitions] = array(CurrentTopicPartitions)


@message(versions=(16, 16))
class ConsumerGroupRegularExpressionKey:
    group_id: str = string()
    regular_expression: str = string()


@message(versions=(0, 0), flexible=0)
class ConsumerGroupRegularExpressionValue:
    topics: Sequence[str] = array(string())
    version: int = int64()
    timestamp: int = int64()
