"""Read share group state (key 84): how far a share group has come in partitions, for the leader of those.

Sent by the leader of a partition to the share coordinator. KIP-932 (0).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, int64, message, string, struct, uuid


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    state_epoch: int = int32(default=0)
    start_offset: int = int64(default=0)
    state_batches: Sequence[StateBatch] = array(StateBatch, default=())


@struct
class ReadStateResult:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionResult] = array(PartitionResult)


@struct
class ReadShareGroupStateResponse:
    results: Sequence[ReadStateResult] = array(ReadStateResult)


@struct
class ReadStatePartition:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateData:
    topic_id: bytes = uuid()
    partitions: Sequence[ReadStatePartition] = array(ReadStatePartition)


@message(key=84, versions=(0, 0), flexible=0, response=ReadShareGroupStateResponse)
class ReadShareGroupStateRequest:
    group_id: str = string()
    topics: Sequence[ReadStateData] = array(ReadStateData)
