"""Delete topics (key 20), by name up to version 5, by name or id from version 6.

KIP-4; KIP-599 (5, may be throttled; error messages), KIP-516 (6, topic ids).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, int16, int32, message, string, struct, uuid


@struct
class DeletableTopicResult:
    name: str | None = string(nullable_since=6)
    topic_id: bytes = uuid(since=6, default=NULL_UUID)
    error_code: int = int16()
    error_message: str | None = string(since=5, nullable_since=5, default=None)


@struct
class DeleteTopicsResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    responses: Sequence[DeletableTopicResult] = array(DeletableTopicResult)


@struct
class DeleteTopicState:
    name: str | None = string(nullable_since=0, default=None)
    topic_id: bytes = uuid()


@message(key=20, versions=(0, 6), flexible=4, response=DeleteTopicsResponse)
class DeleteTopicsRequest:
    topics: Sequence[DeleteTopicState] = array(DeleteTopicState, since=6, default=())
    topic_names: Sequence[str] = array(string(), until=5, default=())
    timeout_ms: int = int32()
