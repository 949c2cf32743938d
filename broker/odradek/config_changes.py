"""Changing the settings of a topic, a broker or a logger for a client: what AlterConfigs and IncrementalAlterConfigs
share.

Every function raises BrokerError, worded as Kafka words it. A change is a function of the settings there are; it is
called with no other change between its reading and the writing of what it makes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.cluster.topics import check_name
from odradek.config import ConfigError
from odradek.config.dynamic import Alteration, AlterationKind, check_alterable
from odradek.config.group import check_group
from odradek.config.loggers import LEVELS, ROOT, logger_levels, set_level
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.node import Node

__all__ = [
    "Change",
    "alter_broker",
    "alter_group",
    "alter_loggers",
    "alter_topic",
    "broker_id",
    "check_row",
    "repeated_resources",
]

Change = Callable[[Mapping[str, str]], Mapping[str, str]]


def repeated_resources(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """The resources that a request names more than once; none of their changes is made."""
    return {resource for resource, times in Counter(resources).items() if times > 1}


def check_row(
    resource: tuple[int, str], repeated: set[tuple[int, str]], keys: Sequence[str], nulls: Sequence[str]
) -> None:
    """INVALID_REQUEST when a resource is there twice, or names a setting twice, or gives null to those in `nulls`."""
    if resource in repeated:
        raise BrokerError(Error.INVALID_REQUEST, "Each resource must appear at most once.")
    if len(set(keys)) < len(keys):
        raise BrokerError(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise BrokerError(Error.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


async def alter_topic(node: "Node", name: str, change: Change, *, validate_only: bool) -> None:
    """Change a topic's overrides. INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG.

    What the change leaves must make sense as a whole, also where it is not what was changed.
    """
    if not name:
        raise BrokerError(Error.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_name(name)
    if name not in node.view.topics:
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    await node.controller.alter_topic_configs(name, lambda old: _make(change, old), validate_only=validate_only)


async def alter_broker(node: "Node", name: str, change: Change, *, validate_only: bool) -> None:
    """Change the dynamic settings of this broker, or (no name) of all brokers. INVALID_REQUEST, INVALID_CONFIG."""
    node_id = None
    if name:
        node_id = broker_id(name, "Node")
        if node_id != node.node_id:
            text = f"Unexpected broker id, expected {node.node_id}, but received {name}"
            raise BrokerError(Error.INVALID_REQUEST, text)

    def checked(layer: Mapping[str, str]) -> Mapping[str, str]:
        altered = _make(change, layer)
        try:
            check_alterable(node.config, altered, per_broker=node_id is not None)
        except ConfigError as error:
            # Kafka tells a bad broker setting by another code than a bad topic setting (KAFKA-13609).
            raise BrokerError(Error.INVALID_REQUEST, str(error)) from error
        return altered

    await node.controller.alter_broker_configs(node_id, checked, validate_only=validate_only)


async def alter_group(node: "Node", name: str, change: Change, *, validate_only: bool) -> None:
    """Change the settings that a group, which need not be there, has of its own. INVALID_REQUEST, INVALID_CONFIG."""
    if not name:
        raise BrokerError(Error.INVALID_REQUEST, "Default group resources are not allowed.")

    def checked(overrides: Mapping[str, str]) -> Mapping[str, str]:
        altered = _make(change, overrides)
        try:
            check_group(node.config, altered)
        except ConfigError as error:
            raise BrokerError(Error.INVALID_CONFIG, str(error)) from error
        return altered

    await node.controller.alter_group_configs(name, checked, validate_only=validate_only)


def alter_loggers(node: "Node", name: str, alterations: Sequence[Alteration], *, validate_only: bool) -> None:
    """Change the levels of this broker's loggers, all or none. INVALID_REQUEST, INVALID_CONFIG."""
    if broker_id(name, "Node") != node.node_id:
        text = f"Unexpected node id. Expected {node.node_id}, but received {name}"
        raise BrokerError(Error.INVALID_REQUEST, text)
    loggers = logger_levels()
    for key, kind, level in alterations:
        if kind not in (AlterationKind.SET, AlterationKind.DELETE):
            text = f"{kind.name} operation is not allowed for the BROKER_LOGGER resource"
            raise BrokerError(Error.INVALID_REQUEST, text)
        if key not in loggers:
            raise BrokerError(Error.INVALID_CONFIG, f"Logger {key} does not exist!")
        if kind is AlterationKind.DELETE and key == ROOT:
            text = f"Removing the log level of the {ROOT} logger is not allowed"
            raise BrokerError(Error.INVALID_REQUEST, text)
        if kind is AlterationKind.SET and level not in LEVELS:
            text = (
                f"Cannot set the log level of {key} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}"
            )
            raise BrokerError(Error.INVALID_CONFIG, text)
    if not validate_only:
        for key, kind, level in alterations:
            set_level(key, level if kind is AlterationKind.SET else None)


def broker_id(name: str, what: str = "Broker") -> int:
    """The number that names a broker. INVALID_REQUEST when it is none."""
    try:
        return int(name)
    except ValueError as error:
        raise BrokerError(Error.INVALID_REQUEST, f"{what} id must be an integer, but it is: {name}") from error


def _make(change: Change, settings: Mapping[str, str]) -> Mapping[str, str]:
    try:
        return change(settings)
    except ConfigError as error:
        raise BrokerError(Error.INVALID_CONFIG, str(error)) from error
