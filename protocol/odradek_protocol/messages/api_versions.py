"""API versions (key 18): which APIs and versions, and which features, this broker serves.

The header of the reply is version 0 at every version, because the client cannot yet know what the broker speaks.
KIP-35; KIP-511 (3, name and version of the client), KIP-584 (3, features), KIP-1242 (5, the node that was meant).
Features whose lowest version is 0 are for version 4 and later only.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int16, int32, int64, message, string, struct


@struct
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey:
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


@struct
class FinalizedFeatureKey:
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


@struct
class ApiVersionsResponse:
    error_code: int = int16()
    api_keys: Sequence[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1, default=0)
    supported_features: Sequence[SupportedFeatureKey] = array(SupportedFeatureKey, since=3, tag=0, default=())
    finalized_features_epoch: int = int64(since=3, tag=1, default=-1)
    finalized_features: Sequence[FinalizedFeatureKey] = array(FinalizedFeatureKey, since=3, tag=2, default=())
    zk_migration_ready: bool = boolean(since=3, tag=3, default=False)


@message(key=18, versions=(0, 5), flexible=3, response=ApiVersionsResponse)
class ApiVersionsRequest:
    client_software_name: str = string(since=3, default="")
    client_software_version: str = string(since=3, default="")
    cluster_id: str | None = string(since=5, nullable_since=5, default=None)
    node_id: int = int32(since=5, default=-1)
