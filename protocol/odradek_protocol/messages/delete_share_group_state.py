"""Delete share group state (key 86): forget how far a share group has come in partitions.

Sent by the group coordinator to the share coordinator. KIP-932 (0).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct, uuid


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class DeleteStateResult:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionResult] = array(PartitionResult)


@struct
class DeleteShareGroupStateResponse:
    results: Sequence[DeleteStateResult] = array(DeleteStateResult)


@struct
class DeleteStatePartition:
    partition: int = int32()


@struct
class DeleteStateData:
    topic_id: bytes = uuid()
    partitions: Sequence[DeleteStatePartition] = array(DeleteStatePartition)


@message(key=86, versions=(0, 0), flexible=0, response=DeleteShareGroupStateResponse)
class DeleteShareGroupStateRequest:
    group_id: str = string()
    topics: Sequence[DeleteStateData] = array(DeleteStateData)
