"""The settings that a single group may have of its own, and what they may be (resource type GROUP).

A group's setting comes before the broker's of the same name with `group.` before it. Kafka's own checks and words.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from odradek.config.broker import BrokerConfig
from odradek.config.config_types import BOOLEAN, STRING
from odradek.config.dynamic import Alteration, AlterationKind
from odradek.config.errors import ConfigError
from odradek.config.setting import Setting
from odradek.config.validators import one_of

__all__ = [
    "DEFAULT_ISOLATION_LEVEL",
    "DEFAULT_OFFSET_RESET",
    "GROUP_KEYS",
    "OWN_SETTINGS",
    "alter_group_overrides",
    "check_group",
    "duration_of",
]

GROUP_KEYS = (
    "consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "share.assignment.interval.ms",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.session.timeout.ms",
    "streams.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
    "streams.session.timeout.ms",
)
"""A group's own settings; the broker's are these with `group.` before them."""

BOUNDS: Mapping[str, tuple[str | None, str | None]] = {
    "streams.initial.rebalance.delay.ms": (None, None),
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}
"""The settings that are the least and the most for a group's own, where they are not called as for the others."""

DEFAULT_OFFSET_RESET = "latest"
DEFAULT_ISOLATION_LEVEL = "read_uncommitted"
ISO_DURATION = re.compile(
    r"P(?=.)(?:(?P<days>\d+)D)?(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)


def duration_of(reset: str) -> timedelta | None:
    """How far back from now "by_duration:PnDTnHnMn.nS" begins; None for what is no such text."""
    kind, _, text = reset.partition(":")
    match = ISO_DURATION.fullmatch(text) if kind.lower() == "by_duration" else None
    return (
        None if match is None else timedelta(**{unit: float(value or 0) for unit, value in match.groupdict().items()})
    )


def check_offset_reset(key: str, value: str) -> None:
    """ConfigError unless a share group can begin to read there."""
    if value.lower() not in ("latest", "earliest") and duration_of(value) is None:
        text = "Invalid share group auto offset reset strategy"
        raise ConfigError(key, value, "'latest', 'earliest' or 'by_duration:PnDTnHnMn.nS'", text=f"{text}: {value}")


OWN_SETTINGS = {
    setting.key: setting
    for setting in (
        Setting("share.auto.offset.reset", STRING, default=DEFAULT_OFFSET_RESET, valid=check_offset_reset),
        Setting(
            "share.isolation.level",
            STRING,
            default=DEFAULT_ISOLATION_LEVEL,
            valid=one_of("read_committed", "read_uncommitted"),
        ),
        Setting("share.renew.acknowledge.enable", BOOLEAN, default=True),
    )
}
"""Settings that only groups have."""


def alter_group_overrides(overrides: Mapping[str, str], alterations: Iterable[Alteration]) -> dict[str, str]:
    """A group's settings after `alterations`. ConfigError on a list operation, as no setting of a group is a list."""
    altered = dict(overrides)
    for key, kind, value in alterations:
        if kind in (AlterationKind.APPEND, AlterationKind.SUBTRACT):
            text = f"Can't {kind.name} to key {key} because its type is not LIST."
            raise ConfigError(key, value, "a setting that is a list", text=text)
        if kind is AlterationKind.DELETE or value is None:
            altered.pop(key, None)
        else:
            altered[key] = value
    return altered


def check_group(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError unless a group may have these settings."""
    values = {}
    for key in GROUP_KEYS:
        values[key] = config.value_of(f"group.{key}")
    for key, text in overrides.items():
        if key in OWN_SETTINGS:
            OWN_SETTINGS[key].parse(text)
            continue
        if key not in GROUP_KEYS:
            raise ConfigError(key, text, "a setting of groups", text=f"Unknown group config name: {key}")
        values[key] = config.SETTINGS[f"group.{key}"].type.parse(key, text)
        _check_bounds(config, key, values[key])
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            text = f"{session} must be greater than {heartbeat}"
            raise ConfigError(session, values[session], f"more than {heartbeat}", text=text)


def _check_bounds(config: BrokerConfig, key: str, value: int) -> None:
    side, name = key.split(".", 1)
    low, high = BOUNDS.get(key, (f"group.{side}.min.{name}", f"group.{side}.max.{name}"))
    valid = config.SETTINGS[f"group.{key}"].valid
    if low is None and valid is not None:
        valid(key, value)
    if low is not None and value < config.value_of(low):
        raise ConfigError(key, value, low, text=f"{key} must be greater than or equal to {low}")
    if high is not None and value > config.value_of(high):
        raise ConfigError(key, value, high, text=f"{key} must be less than or equal to {high}")
