"""Describe configs (key 32): settings of topics and brokers, and where their values come from.

Null `configuration_keys` asks for all. KIP-133; KIP-226 (1, sources and synonyms in the place of `is_default`),
KIP-569 (3, types and documentation).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, message, string, struct


@struct
class DescribeConfigsSynonym:
    name: str = string()
    value: str | None = string(nullable_since=0)
    source: int = int8()


@struct
class DescribeConfigsResourceResult:
    name: str = string()
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    is_default: bool = boolean(until=0, default=False)
    config_source: int = int8(since=1, default=-1)
    is_sensitive: bool = boolean()
    synonyms: Sequence[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, since=1, default=())
    config_type: int = int8(since=3, default=0)
    documentation: str | None = string(since=3, nullable_since=3, default="")


@struct
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    resource_type: int = int8()
    resource_name: str = string()
    configs: Sequence[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@struct
class DescribeConfigsResponse:
    throttle_time_ms: int = int32(default=0)
    results: Sequence[DescribeConfigsResult] = array(DescribeConfigsResult)


@struct
class DescribeConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: Sequence[str] | None = array(string(), nullable_since=0)


@message(key=32, versions=(0, 4), flexible=4, response=DescribeConfigsResponse)
class DescribeConfigsRequest:
    resources: Sequence[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(since=1, default=False)
    include_documentation: bool = boolean(since=3, default=False)
