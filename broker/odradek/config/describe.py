"""Settings as DescribeConfigs tells them: value, source, synonyms.

A synonym is a place that a value could come from, best first: each name the setting goes by, in each layer that has
it. As in Kafka, the list begins where the setting's own name first appears, and the first one's source is the
setting's: a log.retention.ms that comes of log.retention.hours is told as a default.
"""

import enum
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from odradek.config.broker import BrokerConfig, all_settings, broker_setting, listener_base
from odradek.config.config_types import ConfigType
from odradek.config.group import GROUP_KEYS, OWN_SETTINGS
from odradek.config.known import KNOWN
from odradek.config.setting import READ_ONLY, Setting
from odradek.config.topic import TopicConfig

__all__ = [
    "ConfigEntry",
    "ConfigSource",
    "Synonym",
    "describe_broker",
    "describe_default",
    "describe_group",
    "describe_topic",
]

CHAINS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Settings that stand for one thing in several units, the one that wins first."""

NAMES = {key: chain for chain in CHAINS for key in chain}
NAMES["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class ConfigSource(enum.IntEnum):
    """Where a value comes from; the numbers of DescribeConfigs' `config_source`."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    GROUP = 8


class Synonym(NamedTuple):
    """A value that a setting could have, and where from. A sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting as it is told. A sensitive value is None, and so is null."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType = ConfigType.UNKNOWN
    read_only: bool = False
    sensitive: bool = False
    synonyms: tuple[Synonym, ...] = ()
    documentation: str = ""


def describe_broker(config: BrokerConfig, keys: Collection[str] | None = None) -> Iterator[ConfigEntry]:
    """Every setting of this broker, or those among `keys`; hidden and unknown ones only where they were given."""
    given = config.static | config.dynamic_default | config.dynamic_broker
    names = [entry.key for entry in all_settings() if not entry.hidden or entry.key in given]
    names.extend(key for key in given if key not in config.values)
    for name in names:
        if keys is None or name in keys:
            yield _broker_entry(config, name, given.get(name), _synonyms(config, name))


def describe_default(config: BrokerConfig, keys: Collection[str] | None = None) -> Iterator[ConfigEntry]:
    """The settings that are altered for all brokers, or those among `keys`."""
    for name, text in config.dynamic_default.items():
        if keys is None or name in keys:
            synonyms = (each for each in _synonyms(config, name) if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
            entry = _broker_entry(config, name, text, tuple(synonyms))
            yield entry._replace(value=None if entry.sensitive else text)


def describe_topic(
    config: BrokerConfig, topic: TopicConfig, keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """Every setting of a topic, or those among `keys`."""
    for name, setting in TopicConfig.SETTINGS.items():
        overridden = name in topic.overrides
        if (setting.hidden and not overridden) or (keys is not None and name not in keys):
            continue
        value = setting.type.format(topic.values[name])
        synonyms = _synonyms(config, setting.server) if setting.server else ()
        if overridden:
            synonyms = (Synonym(name, value, ConfigSource.TOPIC), *synonyms)
        yield ConfigEntry(name, value, _source(synonyms), setting.type, synonyms=synonyms, documentation=setting.doc)


def describe_group(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The settings of a group, or those among `keys`: its own, else the broker's."""
    for name in sorted((*GROUP_KEYS, *OWN_SETTINGS)):
        if keys is not None and name not in keys:
            continue
        if name in OWN_SETTINGS:
            setting = OWN_SETTINGS[name]
            entry = ConfigEntry(name, setting.type.format(setting.default), ConfigSource.DEFAULT, setting.type)
        else:
            entry = next(describe_broker(config, (f"group.{name}",)))._replace(name=name, read_only=False)
        own = overrides.get(name)
        if own is not None:
            synonyms = (Synonym(name, own, ConfigSource.GROUP), *entry.synonyms)
            entry = entry._replace(value=own, source=ConfigSource.GROUP, synonyms=synonyms)
        yield entry


def _broker_entry(config: BrokerConfig, name: str, text: str | None, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    setting = broker_setting(name)
    if setting is None:
        return ConfigEntry(name, None, _source(synonyms), read_only=True, sensitive=True, synonyms=synonyms)
    own = setting.key == name
    value = setting.type.format(config.values[name]) if own else text
    return ConfigEntry(
        name,
        None if setting.type.sensitive else value,
        _source(synonyms),
        setting.type,
        not own or setting.update is READ_ONLY,
        setting.type.sensitive,
        synonyms,
        setting.doc or UNUSED_DOC,
    )


UNUSED_DOC = "A setting of Kafka's that Odradek does not use."


def _source(synonyms: tuple[Synonym, ...]) -> ConfigSource:
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT


def _synonyms(config: BrokerConfig, key: str) -> tuple[Synonym, ...]:
    base = listener_base(key)
    names = NAMES.get(key, (key,)) if base is None else (key, base)
    layers = (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, ConfigSource.STATIC_BROKER),
    )
    found = [
        Synonym(name, None if _sensitive(name) else layer[name], source)
        for layer, source in layers
        for name in names
        if name in layer
    ]
    for name in names:
        setting = _setting(name)
        if setting is not None and setting.default is not None:
            default = None if setting.type.sensitive else setting.type.format(setting.default)
            found.append(Synonym(name, default, ConfigSource.DEFAULT))
    first = next((index for index, synonym in enumerate(found) if synonym.name == key), len(found))
    return tuple(found[first:])


def _setting(name: str) -> Setting | None:
    """The setting of exactly this key."""
    return BrokerConfig.SETTINGS.get(name) or KNOWN.get(name)


def _sensitive(name: str) -> bool:
    setting = broker_setting(name)
    return setting is None or setting.type.sensitive
