"""List groups (key 16): the groups that this broker coordinates.

KIP-518 (4, filter by state), KIP-848 (5, filter by type).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct


@struct
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4, default="")
    group_type: str = string(since=5, default="")


@struct
class ListGroupsResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    error_code: int = int16()
    groups: Sequence[ListedGroup] = array(ListedGroup)


@message(key=16, versions=(0, 5), flexible=3, response=ListGroupsResponse)
class ListGroupsRequest:
    states_filter: Sequence[str] = array(string(), since=4, default=())
    types_filter: Sequence[str] = array(string(), since=5, default=())
