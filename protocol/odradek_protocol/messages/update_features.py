"""Update features (key 57): which levels of the cluster's features are in force.

KIP-584; KIP-778 (1, kinds of upgrades, and only validating), KIP-1022 (2, all updates or none).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, message, string, struct


@struct
class UpdatableFeatureResult:
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


@struct
class UpdateFeaturesResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    results: Sequence[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1, default=())


@struct
class FeatureUpdateKey:
    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean(until=0, default=False)
    upgrade_type: int = int8(since=1, default=1)


@message(key=57, versions=(0, 2), flexible=0, response=UpdateFeaturesResponse)
class UpdateFeaturesRequest:
    timeout_ms: int = int32(default=60000)
    feature_updates: Sequence[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1, default=False)
