"""Checks of a parsed value: each is a function `(key, value) -> None` that raises ConfigError.

A null passes every check: it is what a setting that was not given may be.
"""

import re
from collections.abc import Callable
from typing import Any

from odradek.config.errors import ConfigError

__all__ = [
    "Validator",
    "at_least",
    "between",
    "each_one_of",
    "gzip_level",
    "non_empty",
    "one_of",
    "one_of_ignoring_case",
    "one_of_numbers",
    "throttled_replicas",
]

Validator = Callable[[str, Any], None]


def at_least(lowest: float) -> Validator:
    """A number that is `lowest` or more."""

    def check(key: str, value: Any) -> None:
        if value is not None and value < lowest:
            raise ConfigError(key, value, f"Value must be at least {lowest}")

    return check


def between(lowest: float, highest: float) -> Validator:
    """A number from `lowest` to `highest`, both allowed."""
    check_lowest = at_least(lowest)

    def check(key: str, value: Any) -> None:
        check_lowest(key, value)
        if value is not None and value > highest:
            raise ConfigError(key, value, f"Value must be no more than {highest}")

    return check


def one_of(*allowed: str) -> Validator:
    """One of these words."""

    def check(key: str, value: Any) -> None:
        if value is not None and value not in allowed:
            raise ConfigError(key, value, f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_ignoring_case(*allowed: str) -> Validator:
    """One of these words, in any case."""

    def check(key: str, value: Any) -> None:
        if value is not None and value.lower() not in allowed:
            raise ConfigError(
                key, value, f"String must be one of (case insensitive): {', '.join(map(str.upper, allowed))}"
            )

    return check


def one_of_numbers(*allowed: int) -> Validator:
    """One of these numbers."""

    def check(key: str, value: Any) -> None:
        if value is not None and value not in allowed:
            raise ConfigError(key, value, f"Value must be one of: {', '.join(map(str, allowed))}")

    return check


def non_empty(key: str, value: Any) -> None:
    """A list without empty elements."""
    if value is not None and "" in value:
        text = f"Configuration '{key}' values must not be empty."
        raise ConfigError(key, ",".join(value), "a list without empty elements", text=text)


def each_one_of(*allowed: str) -> Validator:
    """A list of these words."""
    check_element = one_of(*allowed)

    def check(key: str, value: Any) -> None:
        non_empty(key, value)
        for element in value or ():
            check_element(key, element)

    return check


def gzip_level(key: str, value: Any) -> None:
    """A level that zlib knows: 1 to 9, or -1 for its own choice."""
    if not 1 <= value <= 9 and value != -1:
        raise ConfigError(key, value, "Value must be between 1 and 9 or equal to -1")


REPLICA = re.compile(r"\s*[0-9]+\s*:\s*[0-9]+\s*", re.ASCII)


def throttled_replicas(key: str, value: Any) -> None:
    """`*`, or a list of partition:broker."""
    if value != ["*"] and not all(map(REPLICA.fullmatch, value)):
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        expected = f"{key} must be the literal '*' or a list of replicas in the following format: {form}"
        raise ConfigError(key, f"[{', '.join(value)}]", expected)
