"""Offset fetch (key 9): the stored positions of a group, or from version 8 of many groups.

Versions up to 7 use the top-level fields, later ones `groups`. A null topics array asks for all topics.
KIP-88 (2, all topics), KIP-320 (5, leader epochs), KIP-447 (7, stable offsets only), KIP-709 (8, many groups),
KIP-848 (9, member epochs; 10, topic ids).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, boolean, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetFetchResponsePartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=5, default=-1)
    metadata: str | None = string(nullable_since=0)
    error_code: int = int16()


@struct
class OffsetFetchResponseTopic:
    name: str = string()
    partitions: Sequence[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1)
    metadata: str | None = string(nullable_since=0)
    error_code: int = int16()


@struct
class OffsetFetchResponseTopics:
    name: str = string(until=9, default="")
    topic_id: bytes = uuid(since=10, default=NULL_UUID)
    partitions: Sequence[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


@struct
class OffsetFetchResponseGroup:
    group_id: str = string()
    topics: Sequence[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = int16(default=0)


@struct
class OffsetFetchResponse:
    throttle_time_ms: int = int32(since=3, default=0)
    topics: Sequence[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7, default=())
    error_code: int = int16(since=2, until=7, default=0)
    groups: Sequence[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8, default=())


@struct
class OffsetFetchRequestTopic:
    name: str = string()
    partition_indexes: Sequence[int] = array(int32())


@struct
class OffsetFetchRequestTopics:
    name: str = string(until=9, default="")
    topic_id: bytes = uuid(since=10, default=NULL_UUID)
    partition_indexes: Sequence[int] = array(int32())


@struct
class OffsetFetchRequestGroup:
    group_id: str = string()
    member_id: str | None = string(since=9, nullable_since=9, default=None)
    member_epoch: int = int32(since=9, default=-1)
    topics: Sequence[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable_since=0)


@message(key=9, versions=(0, 10), flexible=6, response=OffsetFetchResponse)
class OffsetFetchRequest:
    group_id: str = string(until=7, default="")
    topics: Sequence[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, until=7, nullable_since=2, default=()
    )
    groups: Sequence[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8, default=())
    require_stable: bool = boolean(since=7, default=False)
