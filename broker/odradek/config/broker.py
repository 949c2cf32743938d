"""The broker's settings in force, resolved from their layers.

    dynamic, of this broker > dynamic, of all brokers > static (server.properties and --override) > default

A layer is text by key. `BrokerConfig` holds the layers and, as attributes, the values in force; altering a dynamic
layer changes the attributes in place, all or none. A key may also be `listener.name.NAME.KEY`, which is checked as
KEY is.
"""

import re
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from odradek.config.consumer_group_settings import ConsumerGroupSettings
from odradek.config.coordinator_settings import CoordinatorSettings
from odradek.config.errors import ConfigError, unknown_key
from odradek.config.known import KNOWN
from odradek.config.log_settings import LogSettings
from odradek.config.network_settings import NetworkSettings
from odradek.config.setting import Setting
from odradek.config.share_group_settings import ShareGroupSettings
from odradek.config.streams_group_settings import StreamsGroupSettings
from odradek.config.topic import TopicConfig

__all__ = ["BrokerConfig", "all_settings", "broker_setting", "listener_base"]

LISTENER_KEY = re.compile(r"listener\.name\.[^.]+\.(?P<base>.+)")
PLUGIN_PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.")
"""Keys that begin so are the parameters of plugins, which have names of their own."""

FIXED_WHILE_RUNNING = ("listeners", "listener.security.protocol.map")
"""Settings that Kafka lets an administrator alter, and that Odradek reads once: its sockets stay as they are."""


WITHOUT_EFFECT = frozenset(
    {
        "inter.broker.listener.name",
        "log.preallocate",
        "max.connection.creation.rate",
        "replica.high.watermark.checkpoint.interval.ms",
        "unclean.leader.election.enable",
    }
)
"""Settings that are checked in full, as topics inherit them or others are compared with them, but change nothing."""


class BrokerConfig(
    NetworkSettings,
    LogSettings,
    CoordinatorSettings,
    ConsumerGroupSettings,
    ShareGroupSettings,
    StreamsGroupSettings,
):
    """All settings of one broker; one attribute for each that Odradek uses. See the module for the layers.

    `static` is text by key. ConfigError on an unknown key, a bad value, or values that contradict each other.
    """

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.static: dict[str, str] = with_node_id(static or {})
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self._topics: weakref.WeakSet[TopicConfig] = weakref.WeakSet()
        for key, text in self.static.items():
            if broker_setting(key) is None and not key.startswith(PLUGIN_PREFIXES):
                raise unknown_key(key, text, [*self.SETTINGS, *KNOWN])
        self.values: dict[str, Any] = self._parse(self.static)
        """The parsed value of every setting, before fallbacks: what DescribeConfigs tells."""
        self._publish(self.values)

    @property
    def unused(self) -> list[str]:
        """The keys of the static layer that have no effect."""
        return [key for key in self.static if key not in self.SETTINGS or key in WITHOUT_EFFECT]

    def value_of(self, key: str) -> Any:
        """The value in force of any setting of Kafka's. KeyError when there is none of that key."""
        return super().value_of(key) if key in self.SETTINGS else self.values[key]

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic with these overrides, kept up to date while it is referenced. ConfigError."""
        topic = TopicConfig(self, overrides)
        self._topics.add(topic)
        return topic

    def check_dynamic(
        self, *, default: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None
    ) -> None:
        """Raise ConfigError if `alter_dynamic` would."""
        values = self._dynamic_values(default, broker)
        for entry in self.SETTINGS.values():
            if entry.resolve is not None:
                entry.resolve(values)

    def alter_dynamic(
        self, *, default: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None
    ) -> None:
        """Replace a dynamic layer, or both, and every value that comes of it. ConfigError, and no change.

        None keeps the layer that there is. Keys that nobody knows are kept and have no effect, as in Kafka.
        """
        values = self._dynamic_values(default, broker)
        self._publish(values)
        self.values = values
        if default is not None:
            self.dynamic_default = dict(default)
        if broker is not None:
            self.dynamic_broker = dict(broker)
        for topic in self._topics:
            topic.refresh()

    def _dynamic_values(self, default: Mapping[str, str] | None, broker: Mapping[str, str] | None) -> dict[str, Any]:
        default = self.dynamic_default if default is None else default
        broker = self.dynamic_broker if broker is None else broker
        values = self._parse({**self.static, **default, **broker})
        for key in FIXED_WHILE_RUNNING:
            if values[key] != self.values[key]:
                text = {**default, **broker}[key]
                raise ConfigError(key, text, "Odradek cannot change its listeners while it runs")
        return values

    def _parse(self, texts: Mapping[str, str]) -> dict[str, Any]:
        values = {entry.key: entry.default for entry in all_settings()}
        for key, text in texts.items():
            entry = broker_setting(key)
            if entry is not None:
                value = entry.parse(text)
                if entry.key == key:
                    values[key] = value
        return values


def all_settings() -> Iterable[Setting]:
    """Every broker setting of Kafka's, used or not."""
    yield from BrokerConfig.SETTINGS.values()
    yield from KNOWN.values()


def broker_setting(key: str) -> Setting | None:
    """The setting that `key` names, directly or for one listener; None when nobody knows it."""
    entry = BrokerConfig.SETTINGS.get(key) or KNOWN.get(key)
    if entry is None and (base := listener_base(key)):
        return BrokerConfig.SETTINGS.get(base) or KNOWN.get(base)
    return entry


def listener_base(key: str) -> str | None:
    """The setting's key in `listener.name.NAME.KEY`; None where `key` has no such form, or names no setting."""
    match = LISTENER_KEY.fullmatch(key)
    if match is None:
        return None
    base = match["base"]
    # A SASL mechanism's name may stand between: listener.name.internal.plain.sasl.jaas.config.
    candidates = (base, base.partition(".")[2])
    return next((each for each in candidates if each in BrokerConfig.SETTINGS or each in KNOWN), None)


def with_node_id(static: Mapping[str, str]) -> dict[str, str]:
    """`static`, in which node.id and broker.id are both given when one of them is."""
    settings = dict(static)
    for given, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if given in settings and int_or_none(settings[given]) != -1:
            settings.setdefault(other, settings[given])
    return settings


def int_or_none(text: str) -> int | None:
    """The number of an id; None for text that the setting's own check will refuse."""
    try:
        return int(text)
    except ValueError:
        return None
