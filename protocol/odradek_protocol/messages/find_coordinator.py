"""Find coordinator (key 10): the broker that coordinates a group or a transactional id.

Versions up to 3 ask for one key, later ones for many. KIP-98 (1, key types), KIP-699 (4, many keys), KIP-890 (5),
KIP-932 (6, share groups).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, message, string, struct


@struct
class Coordinator:
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


@struct
class FindCoordinatorResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    error_code: int = int16(until=3, default=0)
    error_message: str | None = string(since=1, until=3, nullable_since=1, default=None)
    node_id: int = int32(until=3, default=0)
    host: str = string(until=3, default="")
    port: int = int32(until=3, default=0)
    coordinators: Sequence[Coordinator] = array(Coordinator, since=4, default=())


@message(key=10, versions=(0, 6), flexible=3, response=FindCoordinatorResponse)
class FindCoordinatorRequest:
    key: str = string(until=3, default="")
    key_type: int = int8(since=1, default=0)
    coordinator_keys: Sequence[str] = array(string(), since=4, default=())
