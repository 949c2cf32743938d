"""Alter configs (key 33): replace all settings of topics or brokers.

KIP-133. What the request does not name falls back to its default; IncrementalAlterConfigs does not do that.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, message, string, struct


@struct
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    resource_type: int = int8()
    resource_name: str = string()


@struct
class AlterConfigsResponse:
    throttle_time_ms: int = int32(default=0)
    responses: Sequence[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


@struct
class AlterableConfig:
    name: str = string()
    value: str | None = string(nullable_since=0)


@struct
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: Sequence[AlterableConfig] = array(AlterableConfig)


@message(key=33, versions=(0, 2), flexible=2, response=AlterConfigsResponse)
class AlterConfigsRequest:
    resources: Sequence[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()
