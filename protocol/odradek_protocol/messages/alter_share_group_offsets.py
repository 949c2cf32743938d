"""Alter share group offsets (key 91): let a share group without members go on elsewhere.

KIP-932 (0).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, int16, int32, int64, message, string, struct, uuid


@struct
class AlteredSharePartition:
    partition_index: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class AlteredShareTopic:
    topic_name: str = string()
    topic_id: bytes = uuid(default=NULL_UUID)
    partitions: Sequence[AlteredSharePartition] = array(AlteredSharePartition)


@struct
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    responses: Sequence[AlteredShareTopic] = array(AlteredShareTopic, default=())


@struct
class AskedPartition:
    partition_index: int = int32()
    start_offset: int = int64()


@struct
class AskedTopic:
    topic_name: str = string()
    partitions: Sequence[AskedPartition] = array(AskedPartition)


@message(key=91, versions=(0, 0), flexible=0, response=AlterShareGroupOffsetsResponse)
class AlterShareGroupOffsetsRequest:
    group_id: str = string()
    topics: Sequence[AskedTopic] = array(AskedTopic)
