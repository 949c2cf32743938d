"""Offset commit (key 8): store the positions of a group.

Version 1 has a timestamp for each partition, 2 to 4 a retention time, 0 neither and no member. KIP-211 (5, retention is
the broker's), KIP-320 (6, leader epochs), KIP-345 (7, static members), KIP-848 (9, member epochs; 10, topic ids).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    name: str = string(until=9, default="")
    topic_id: bytes = uuid(since=10, default=NULL_UUID)
    partitions: Sequence[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, by_column=True)


@struct
class OffsetCommitResponse:
    throttle_time_ms: int = int32(since=3, default=0)
    topics: Sequence[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)


@struct
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=6, default=-1)
    commit_timestamp: int = int64(since=1, until=1, default=-1)
    committed_metadata: str | None = string(nullable_since=0)


@struct
class OffsetCommitRequestTopic:
    name: str = string(until=9, default="")
    topic_id: bytes = uuid(since=10, default=NULL_UUID)
    partitions: Sequence[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, by_column=True)


@message(key=8, versions=(0, 10), flexible=8, response=OffsetCommitResponse)
class OffsetCommitRequest:
    group_id: str = string()
    generation_id_or_member_epoch: int = int32(since=1, default=-1)
    member_id: str = string(since=1, default="")
    group_instance_id: str | None = string(since=7, nullable_since=7, default=None)
    retention_time_ms: int = int64(since=2, until=4, default=-1)
    topics: Sequence[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)
