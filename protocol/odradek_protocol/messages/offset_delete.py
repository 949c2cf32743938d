"""Offset delete (key 47): forget the offsets of a group for partitions that it does not read.

KIP-496. Never flexible.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct


@struct
class OffsetDeleteResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic:
    name: str = string()
    partitions: Sequence[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@struct
class OffsetDeleteResponse:
    error_code: int = int16()
    throttle_time_ms: int = int32(default=0)
    topics: Sequence[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic:
    name: str = string()
    partitions: Sequence[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message(key=47, versions=(0, 0), response=OffsetDeleteResponse)
class OffsetDeleteRequest:
    group_id: str = string()
    topics: Sequence[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)
