"""Delete share group offsets (key 92): let a share group without members forget topics.

KIP-932 (0).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, int16, int32, message, string, struct, uuid


@struct
class DeletedShareTopic:
    topic_name: str = string()
    topic_id: bytes = uuid(default=NULL_UUID)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    responses: Sequence[DeletedShareTopic] = array(DeletedShareTopic, default=())


@struct
class AskedTopic:
    topic_name: str = string()


@message(key=92, versions=(0, 0), flexible=0, response=DeleteShareGroupOffsetsResponse)
class DeleteShareGroupOffsetsRequest:
    group_id: str = string()
    topics: Sequence[AskedTopic] = array(AskedTopic)
