"""Initialize share group state (key 83): where a share group begins to read partitions.

Sent by the group coordinator to the share coordinator. KIP-932 (0).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, int64, message, string, struct, uuid


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class InitializeStateResult:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionResult] = array(PartitionResult)


@struct
class InitializeShareGroupStateResponse:
    results: Sequence[InitializeStateResult] = array(InitializeStateResult)


@struct
class InitializeStatePartition:
    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


@struct
class InitializeStateData:
    topic_id: bytes = uuid()
    partitions: Sequence[InitializeStatePartition] = array(InitializeStatePartition)


@message(key=83, versions=(0, 0), flexible=0, response=InitializeShareGroupStateResponse)
class InitializeShareGroupStateRequest:
    group_id: str = string()
    topics: Sequence[InitializeStateData] = array(InitializeStateData)
