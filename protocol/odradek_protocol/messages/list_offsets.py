"""List offsets (key 2): the offset of a timestamp, or of a named place in the log, for each partition.

Version 0 gives a list of offsets (`max_num_offsets`, `old_style_offsets`), all later ones a single offset.
KIP-79 (1, timestamps), KIP-98 (2, isolation), KIP-320 (4, leader epochs), KIP-207 (5), KIP-734 (7, greatest timestamp),
KIP-405 (8, local log), KIP-1005 (9, last tiered offset), KIP-1075 (10, timeout), KIP-1023 (11, next upload).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: Sequence[int] = array(int64(), until=0, default=())
    timestamp: int = int64(since=1, default=-1)
    offset: int = int64(since=1, default=-1)
    leader_epoch: int = int32(since=4, default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = string()
    partitions: Sequence[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@struct
class ListOffsetsResponse:
    throttle_time_ms: int = int32(since=2, default=0)
    topics: Sequence[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)


@struct
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32(since=4, default=-1)
    timestamp: int = int64()
    max_num_offsets: int = int32(until=0, default=1)


@struct
class ListOffsetsTopic:
    name: str = string()
    partitions: Sequence[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(key=2, versions=(0, 11), flexible=6, response=ListOffsetsResponse)
class ListOffsetsRequest:
    replica_id: int = int32()
    isolation_level: int = int8(since=2, default=0)
    topics: Sequence[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10, default=0)
