"""Altering settings while the broker runs: what an alteration makes of a layer, and which settings it may name.

The rules and the wording are Kafka's. An operation on a list goes out from the layer's own value, else from the
setting's default.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.config.broker import BrokerConfig, broker_setting, listener_base
from odradek.config.config_types import ConfigType
from odradek.config.errors import ConfigError
from odradek.config.setting import PER_BROKER, READ_ONLY, Setting
from odradek.config.topic import TopicConfig

__all__ = ["Alteration", "AlterationKind", "alter_broker_layer", "alter_topic_overrides", "check_alterable"]

CLUSTER_LEVEL_LISTENER_KEYS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""What may be set for one listener of all brokers at once."""


class AlterationKind(enum.IntEnum):
    """What to do with one setting; the numbers of IncrementalAlterConfigs' `config_operation`."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One setting's change. `value` is None only for DELETE."""

    key: str
    kind: AlterationKind
    value: str | None


def alter_topic_overrides(overrides: Mapping[str, str], alterations: Iterable[Alteration]) -> dict[str, str]:
    """A topic's overrides after `alterations`. ConfigError on a list operation on what is no list."""
    altered = dict(overrides)
    for alteration in alterations:
        setting = TopicConfig.SETTINGS.get(alteration.key)
        if alteration.kind in LIST_KINDS and (setting is None or setting.type is not ConfigType.LIST):
            text = f"Can't {alteration.kind.name} to key {alteration.key} because its type is not LIST."
            raise ConfigError(alteration.key, alteration.value, "a setting that is a list", text=text)
        _alter(altered, alteration, setting)
    return altered


def alter_broker_layer(layer: Mapping[str, str], alterations: Iterable[Alteration]) -> dict[str, str]:
    """A dynamic layer of a broker after `alterations`. ConfigError on a list operation on what is no list."""
    altered = dict(layer)
    for alteration in alterations:
        setting = broker_setting(alteration.key)
        if alteration.kind in LIST_KINDS and (setting is None or setting.type is not ConfigType.LIST):
            text = f"Unknown config name: {alteration.key}"
            if setting is not None:
                kind = alteration.kind.name.lower()
                text = f"Config value {kind} is not allowed for config key: {alteration.key}"
            raise ConfigError(alteration.key, alteration.value, "a setting that is a list", text=text)
        _alter(altered, alteration, setting)
    return altered


LIST_KINDS = (AlterationKind.APPEND, AlterationKind.SUBTRACT)


def _alter(layer: dict[str, str], alteration: Alteration, setting: Setting | None) -> None:
    key, kind, value = alteration
    if kind is AlterationKind.DELETE:
        layer.pop(key, None)
        return
    assert value is not None
    if kind in LIST_KINDS:
        assert setting is not None
        old = layer.get(key)
        parts = [part for part in old.split(",") if part] if old is not None else list(setting.default or ())
        for part in value.split(","):
            if kind is AlterationKind.APPEND and part not in parts:
                parts.append(part)
            elif kind is AlterationKind.SUBTRACT and part in parts:
                parts.remove(part)
        value = ",".join(parts)
    layer[key] = value


def check_alterable(config: BrokerConfig, layer: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError unless `layer` may become a dynamic layer: this broker's, or (not `per_broker`) that of all.

    In order: settings that are fixed while the broker runs, security settings that belong to a listener, settings
    of one broker given for all; then each value, and the values together.
    """
    settings = {key: broker_setting(key) for key in layer}
    known = {key: setting for key, setting in settings.items() if setting is not None}
    _refuse(
        [key for key, setting in known.items() if setting.key == key and setting.update is READ_ONLY],
        "Cannot update these configs dynamically",
    )
    _refuse(
        [key for key, setting in known.items() if setting.key == key and _is_listener_security(setting)],
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    if not per_broker:
        _refuse(
            [key for key, setting in known.items() if _belongs_to_one_broker(key, setting)],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    if per_broker:
        config.check_dynamic(broker=layer)
    else:
        config.check_dynamic(default=layer)


def _is_listener_security(setting: Setting) -> bool:
    return setting.update is PER_BROKER and setting.key.startswith("ssl.") and setting.key != "ssl.client.auth"


def _belongs_to_one_broker(key: str, setting: Setting) -> bool:
    if listener_base(key) is not None:
        return setting.key not in CLUSTER_LEVEL_LISTENER_KEYS
    return setting.update is PER_BROKER


def _refuse(keys: list[str], why: str) -> None:
    if keys:
        raise ConfigError(keys[0], "", why, text=f"{why}: [{', '.join(keys)}]")
