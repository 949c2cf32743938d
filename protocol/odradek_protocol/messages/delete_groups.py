"""Delete groups (key 42) that have no members, with their offsets.

KIP-229. Version 3 adds error messages.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct


@struct
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()
    error_message: str | None = string(since=3, nullable_since=3, default=None)


@struct
class DeleteGroupsResponse:
    throttle_time_ms: int = int32(default=0)
    results: Sequence[DeletableGroupResult] = array(DeletableGroupResult)


@message(key=42, versions=(0, 3), flexible=2, response=DeleteGroupsResponse)
class DeleteGroupsRequest:
    groups_names: Sequence[str] = array(string())
