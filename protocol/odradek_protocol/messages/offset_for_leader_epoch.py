"""Offset for leader epoch (key 23): where a leader epoch ends in the log.

KIP-101; KIP-279 (1, the epoch that was found), KIP-320 (2, fencing by epoch; 3, consumers: `replica_id` -1; versions
without the field have -2, which is neither a consumer nor a broker).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, int64, message, string, struct


@struct
class EpochEndOffset:
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(since=1, default=-1)
    end_offset: int = int64(default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: str = string()
    partitions: Sequence[EpochEndOffset] = array(EpochEndOffset)


@struct
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = int32(since=2, default=0)
    topics: Sequence[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)


@struct
class OffsetForLeaderPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(since=2, default=-1)
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic:
    topic: str = string()
    partitions: Sequence[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message(key=23, versions=(0, 4), flexible=4, response=OffsetForLeaderEpochResponse)
class OffsetForLeaderEpochRequest:
    replica_id: int = int32(since=3, default=-2)
    topics: Sequence[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)
