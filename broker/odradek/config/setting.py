"""How a setting is written down: a class attribute is the entry.

    class LogSettings(Settings):
        num_partitions: int = setting("num.partitions", INT, default=1, valid=at_least(1), doc="...")

An instance's attribute is the value in force: the class attribute is only the entry. `resolve` is given where the
value in force is not just the parsed one: it has a fallback (log.retention.ms), or a richer form (listeners).
"""

import enum
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from odradek.config.config_types import ConfigType
from odradek.config.validators import Validator

__all__ = ["CLUSTER_WIDE", "PER_BROKER", "READ_ONLY", "Setting", "Settings", "UpdateMode", "Values", "setting"]

Values = Mapping[str, Any]
"""Parsed values by key, one for each setting."""


class UpdateMode(enum.Enum):
    """Where a broker's setting may be altered while it runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


READ_ONLY = UpdateMode.READ_ONLY
PER_BROKER = UpdateMode.PER_BROKER
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE


class Setting:
    """One setting: its name in Kafka, type, default, check, and where it may be altered.

    `attribute` is the name of the Python attribute, "" for a setting that Kafka has and Odradek does not use.
    A `hidden` setting is described only where it was given. `server` is the broker setting that a topic or group
    setting takes its value from.
    """

    __slots__ = ("attribute", "default", "doc", "hidden", "key", "resolve", "server", "type", "update", "valid")

    def __init__(
        self,
        key: str,
        type_: ConfigType,
        *,
        default: Any,
        valid: Validator | None = None,
        update: UpdateMode = READ_ONLY,
        doc: str = "",
        resolve: Callable[[Values], Any] | None = None,
        hidden: bool = False,
        server: str = "",
    ) -> None:
        self.attribute = ""
        self.key = key
        self.type = type_
        self.default = default
        self.valid = valid
        self.update = update
        self.doc = doc
        self.resolve = resolve
        self.hidden = hidden
        self.server = server

    def parse(self, text: str) -> Any:
        """The checked value of `text`. ConfigError when it is none."""
        value = self.type.parse(self.key, text)
        if self.valid is not None:
            self.valid(self.key, value)
        return value


def setting(
    key: str,
    type_: ConfigType,
    *,
    default: Any,
    valid: Validator | None = None,
    update: UpdateMode = READ_ONLY,
    doc: str,
    resolve: Callable[[Values], Any] | None = None,
    hidden: bool = False,
    server: str = "",
) -> Any:
    """A setting that Odradek uses; see `Setting`. `default` is a value, not text, and None is null."""
    return Setting(
        key, type_, default=default, valid=valid, update=update, doc=doc, resolve=resolve, hidden=hidden, server=server
    )


class Settings:
    """A class whose attributes are settings; subclasses have those of their bases too."""

    SETTINGS: ClassVar[Mapping[str, Setting]] = {}
    """The settings with an attribute, by key."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        entries: dict[str, Setting] = {}
        for base in reversed(cls.__mro__):
            for name, entry in vars(base).items():
                if isinstance(entry, Setting):
                    entry.attribute = name
                    entries[entry.key] = entry
        cls.SETTINGS = entries

    def _publish(self, values: Values) -> None:
        """Make `values` the ones in force. Nothing changes when one of them cannot be resolved."""
        resolved = {
            entry.attribute: values[key] if entry.resolve is None else entry.resolve(values)
            for key, entry in self.SETTINGS.items()
        }
        self.__dict__.update(resolved)

    def value_of(self, key: str) -> Any:
        """The value in force of a setting that has an attribute. KeyError when there is none of that key."""
        return getattr(self, self.SETTINGS[key].attribute)
