"""Read share group state summary (key 87): where a share group is in partitions, without its records.

Sent by the group coordinator to the share coordinator. KIP-932 (0), KIP-1226 (1, how many are done with).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, int64, message, string, struct, uuid


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    state_epoch: int = int32(default=0)
    leader_epoch: int = int32(default=0)
    start_offset: int = int64(default=0)
    delivery_complete_count: int = int32(since=1, default=-1)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionResult] = array(PartitionResult)


@struct
class ReadShareGroupStateSummaryResponse:
    results: Sequence[ReadStateSummaryResult] = array(ReadStateSummaryResult)


@struct
class ReadStateSummaryPartition:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateSummaryData:
    topic_id: bytes = uuid()
    partitions: Sequence[ReadStateSummaryPartition] = array(ReadStateSummaryPartition)


@message(key=87, versions=(0, 1), flexible=0, response=ReadShareGroupStateSummaryResponse)
class ReadShareGroupStateSummaryRequest:
    group_id: str = string()
    topics: Sequence[ReadStateSummaryData] = array(ReadStateSummaryData)
