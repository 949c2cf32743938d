"""Write share group state (key 85): what a share group did with records.

Sent by the leader of a partition to the share coordinator. KIP-932 (0), KIP-1226 (1, how many are done with).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, int64, message, string, struct, uuid


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class WriteStateResult:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionResult] = array(PartitionResult)


@struct
class WriteShareGroupStateResponse:
    results: Sequence[WriteStateResult] = array(WriteStateResult)


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class WriteStatePartition:
    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(since=1, default=-1)
    state_batches: Sequence[StateBatch] = array(StateBatch)


@struct
class WriteStateData:
    topic_id: bytes = uuid()
    partitions: Sequence[WriteStatePartition] = array(WriteStatePartition)


@message(key=85, versions=(0, 1), flexible=0, response=WriteShareGroupStateResponse)
class WriteShareGroupStateRequest:
    group_id: str = string()
    topics: Sequence[WriteStateData] = array(WriteStateData)
