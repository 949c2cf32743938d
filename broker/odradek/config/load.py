"""From a properties file, or the development profile, and `key=value` overrides to a `BrokerConfig`."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from odradek.config.broker import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.properties import decode, parse

__all__ = ["data_folder", "development_profile", "load"]

log = logging.getLogger(__name__)


def load(path: str | None, overrides: Iterable[str] = ()) -> BrokerConfig:
    """The settings of the properties file at `path`, or of the development profile, with overrides on top.

    Each override is `key=value`; a later one wins. Settings that have no effect are named in one warning.
    ConfigError on a file that cannot be read, a malformed override, and whatever `BrokerConfig` refuses.
    """
    given = development_profile() if path is None else read_file(path)
    config = BrokerConfig(given | dict(map(parse_override, overrides)))
    if config.unused:
        log.warning("these settings have no effect in Odradek: %s", ", ".join(sorted(config.unused)))
    return config


def development_profile() -> dict[str, str]:
    """One broker for one machine: on loopback, nothing replicated, groups formed at once, data under the home."""
    return {
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": str(data_folder()),
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def data_folder() -> Path:
    """Where the development profile keeps its data: $XDG_DATA_HOME/odradek, or ~/.local/share/odradek."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "odradek"


def read_file(path: str) -> dict[str, str]:
    """The settings of a properties file. ConfigError when it cannot be read."""
    try:
        return parse(decode(Path(path).read_bytes()))
    except OSError as error:
        text = f"{path}: {error.strerror}"
        raise ConfigError("server.properties", path, "a file that can be read", text=text) from error


def parse_override(text: str) -> tuple[str, str]:
    """Key and value of `key=value`. ConfigError when there is no key or no equals sign."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError("--override", text, "Expected key=value")
    return key.strip(), value.strip()
