"""Describe share group offsets (key 90): where share groups are in partitions, and how much is left.

KIP-932 (0), KIP-1226 (1, lag).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, int16, int32, int64, message, string, struct, uuid


@struct
class DescribedSharePartition:
    partition_index: int = int32()
    start_offset: int = int64(default=0)
    leader_epoch: int = int32(default=0)
    lag: int = int64(since=1, default=-1)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class DescribedShareTopic:
    topic_name: str = string()
    topic_id: bytes = uuid(default=NULL_UUID)
    partitions: Sequence[DescribedSharePartition] = array(DescribedSharePartition)


@struct
class DescribedShareGroup:
    group_id: str = string()
    topics: Sequence[DescribedShareTopic] = array(DescribedShareTopic, default=())
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: int = int32(default=0)
    groups: Sequence[DescribedShareGroup] = array(DescribedShareGroup)


@struct
class AskedTopic:
    topic_name: str = string()
    partitions: Sequence[int] = array(int32())


@struct
class AskedGroup:
    group_id: str = string()
    topics: Sequence[AskedTopic] | None = array(AskedTopic, nullable_since=0)


@message(key=90, versions=(0, 1), flexible=0, response=DescribeShareGroupOffsetsResponse)
class DescribeShareGroupOffsetsRequest:
    groups: Sequence[AskedGroup] = array(AskedGroup)
