"""Listeners: the addresses a broker is reached at.

    NAME://host:port      PLAINTEXT://127.0.0.1:9092, INTERNAL://[::1]:0, PLAINTEXT://:9092

A name stands for a security protocol (listener.security.protocol.map). No host means every interface; port 0 means
any free one. Names are told in capitals, whichever way they are written. Listeners that controller.listener.names
names belong to a KRaft quorum, which Odradek has none of: they are left out.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from odradek.config.errors import ConfigError
from odradek.config.setting import Values

__all__ = [
    "Listener",
    "connection_overrides",
    "resolve_advertised",
    "resolve_inter_broker",
    "resolve_listeners",
    "security_protocols",
]

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SERVED = ("PLAINTEXT",)
FORM = re.compile(
    r"(?P<name>[^/:\s]+)://"
    r"(?:\[(?P<v6>[0-9a-fA-F:.]+(?:%[0-9a-zA-Z\-._]+)?)\]|(?P<host>[0-9a-zA-Z\-._]*))"
    r":(?P<port>[0-9]{1,5})"
)
V4 = re.compile(r"[0-9]+(?:\.[0-9]+){3}", re.ASCII)
LAST_PORT = 65535


class Listener(NamedTuple):
    """One named address. `host` is "" for every interface; a v6 address has no brackets."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def security_protocols(values: Values) -> dict[str, str]:
    """listener.security.protocol.map as a dict: the security protocol of each listener name."""
    key = "listener.security.protocol.map"
    text = values[key]
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in pair.rpartition(":"))
        if not name or not colon:
            raise ConfigError(key, text, "Expected NAME:PROTOCOL pairs, parted by commas")
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(key, text, f"{protocol} is no security protocol: {', '.join(SECURITY_PROTOCOLS)}")
        protocols[name.upper()] = protocol.upper()
    return protocols


def resolve_listeners(values: Values) -> list[Listener]:
    """The listeners to serve. ConfigError on a bad one, on a name or port that appears twice, or when none is left."""
    key = "listeners"
    listeners = _parse(key, values[key], values)
    if not listeners:
        raise ConfigError(key, ",".join(values[key]), "Expected at least one listener for clients: NAME://host:port")
    for listener in listeners:
        if listener.security_protocol not in SERVED:
            served = f"Odradek serves {', '.join(SERVED)} only"
            raise ConfigError(key, listener, f"{served}, and listener {listener.name} is {listener.security_protocol}")
    _check_ports(listeners, ",".join(values[key]))
    return listeners


def resolve_advertised(values: Values) -> list[Listener] | None:
    """The addresses to tell clients, or None: each is told the address that it dialled.

    ConfigError on an address nobody can dial, or a name that is not among the listeners.
    """
    key = "advertised.listeners"
    if values[key] is None:
        return None
    advertised = _parse(key, values[key], values)
    names = [listener.name for listener in resolve_listeners(values)]
    for listener in advertised:
        if listener.host == "0.0.0.0":  # noqa: S104 - refused, not bound
            raise ConfigError(key, listener, "The nonroutable meta-address 0.0.0.0 cannot be advertised")
        if not listener.host or not listener.port:
            raise ConfigError(key, listener, "Expected a host and a port that clients can dial")
        if listener.name not in names:
            raise ConfigError(key, listener, f"Expected the name of one of the listeners: {', '.join(names)}")
    return advertised


def resolve_inter_broker(values: Values) -> str:
    """The name of the listener that other brokers use."""
    key = "inter.broker.listener.name"
    listeners = resolve_listeners(values)
    protocol = values["security.inter.broker.protocol"]
    if values[key] is None:
        return next((each.name for each in listeners if each.security_protocol == protocol), listeners[0].name)
    name: str = values[key].upper()
    if name not in [listener.name for listener in listeners]:
        raise ConfigError(key, values[key], f"Expected the name of a listener: {', '.join(map(str, listeners))}")
    return name


def connection_overrides(values: Values) -> dict[str, int]:
    """max.connections.per.ip.overrides as a dict: the most connections of each host or address."""
    key = "max.connections.per.ip.overrides"
    text = values[key]
    overrides = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = (part.strip() for part in pair.rpartition(":"))
        if not host or not count.isascii() or not count.isdigit():
            raise ConfigError(key, text, "Expected host:count pairs, parted by commas")
        overrides[host.strip("[]")] = int(count)
    return overrides


def _parse(key: str, texts: Iterable[str], values: Values) -> list[Listener]:
    protocols = security_protocols(values)
    controllers = {name.upper() for name in values["controller.listener.names"] or ()}
    listeners: dict[str, Listener] = {}
    for text in texts:
        match = FORM.fullmatch(text)
        if match is None or int(match["port"]) > LAST_PORT:
            raise ConfigError(key, text, f"Expected NAME://host:port, with a port from 0 to {LAST_PORT}")
        name = match["name"].upper()
        if name in controllers:
            continue
        if name in listeners:
            raise ConfigError(key, ",".join(texts), "Each listener must have a different name")
        if name not in protocols:
            expected = f"No security protocol defined for listener {name} in listener.security.protocol.map"
            raise ConfigError(key, text, expected)
        listeners[name] = Listener(name, match["v6"] or match["host"] or "", int(match["port"]), protocols[name])
    return list(listeners.values())


def _check_ports(listeners: list[Listener], text: str) -> None:
    """Two listeners share a port only when one is a v4 address and the other a v6 one."""
    taken: dict[int, list[int | None]] = {}
    for listener in listeners:
        if listener.port:
            taken.setdefault(listener.port, []).append(_ip_version(listener.host))
    for port, versions in taken.items():
        if len(versions) > 1 and sorted(version or 0 for version in versions) != [4, 6]:
            raise ConfigError("listeners", text, f"Each listener must have a different port, and {port} is there twice")


def _ip_version(host: str) -> int | None:
    if ":" in host:
        return 6
    return 4 if V4.fullmatch(host) else None
