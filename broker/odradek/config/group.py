"""The settings that a single group may have of its own, and what they may be (resource type GROUP).

A group's setting comes before the broker's of the same name with `group.` before it. Kafka's own checks and words.
"""

from collections.abc import Iterable, Mapping

from odradek.config.broker import BrokerConfig
from odradek.config.dynamic import Alteration, AlterationKind
from odradek.config.errors import ConfigError

__all__ = ["GROUP_KEYS", "alter_group_overrides", "check_group"]

GROUP_KEYS = ("consumer.assignment.interval.ms", "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms")
"""A group's own settings; the broker's are these with `group.` before them."""

SESSION, HEARTBEAT = GROUP_KEYS[2], GROUP_KEYS[1]


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
        if key not in GROUP_KEYS:
            raise ConfigError(key, text, "a setting of groups", text=f"Unknown group config name: {key}")
        value = values[key] = config.SETTINGS[f"group.{key}"].type.parse(key, text)
        side, name = key.split(".", 1)
        low, high = f"group.{side}.min.{name}", f"group.{side}.max.{name}"
        if value < config.value_of(low):
            raise ConfigError(key, text, low, text=f"{key} must be greater than or equal to {low}")
        if value > config.value_of(high):
            raise ConfigError(key, text, high, text=f"{key} must be less than or equal to {high}")
    if values[SESSION] <= values[HEARTBEAT]:
        text = f"{SESSION} must be greater than {HEARTBEAT}"
        raise ConfigError(SESSION, values[SESSION], f"more than {HEARTBEAT}", text=text)
