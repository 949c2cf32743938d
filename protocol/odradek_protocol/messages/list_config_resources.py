"""List config resources (key 74): which resources have dynamic settings.

KIP-714 (0, client metrics only, which is resource type 16); KIP-1142 (1, any types; none given asks for all).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, message, string, struct


@struct
class ConfigResource:
    resource_name: str = string()
    resource_type: int = int8(since=1, default=16)


@struct
class ListConfigResourcesResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    config_resources: Sequence[ConfigResource] = array(ConfigResource)


@message(key=74, versions=(0, 1), flexible=0, response=ListConfigResourcesResponse)
class ListConfigResourcesRequest:
    resource_types: Sequence[int] = array(int8(), since=1, default=())
