"""Incremental alter configs (key 44): set, delete, append to or subtract from single settings.

KIP-339. `config_operation`: 0 set, 1 delete, 2 append, 3 subtract.
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
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = int32(default=0)
    responses: Sequence[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


@struct
class AlterableConfig:
    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable_since=0)


@struct
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: Sequence[AlterableConfig] = array(AlterableConfig)


@message(key=44, versions=(0, 1), flexible=1, response=IncrementalAlterConfigsResponse)
class IncrementalAlterConfigsRequest:
    resources: Sequence[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()
