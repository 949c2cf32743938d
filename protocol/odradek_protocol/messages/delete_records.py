"""Delete records (key 21): move the start of partitions' logs forward.

KIP-107. An offset of -1 is the high watermark.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, int64, message, string, struct


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult:
    name: str = string()
    partitions: Sequence[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@struct
class DeleteRecordsResponse:
    throttle_time_ms: int = int32(default=0)
    topics: Sequence[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)


@struct
class DeleteRecordsPartition:
    partition_index: int = int32()
    offset: int = int64()


@struct
class DeleteRecordsTopic:
    name: str = string()
    partitions: Sequence[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@message(key=21, versions=(0, 2), flexible=2, response=DeleteRecordsResponse)
class DeleteRecordsRequest:
    topics: Sequence[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()
