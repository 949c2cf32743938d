"""The types of settings: how text becomes a value, and a value text.

Ranges and wording are those of Kafka's ConfigDef. Text is trimmed before it is read. A CLASS is a name: no class is
loaded. A PASSWORD's text is never shown. The numbers are those of DescribeConfigs' `config_type`.
"""

import enum
import re
from typing import Any

from odradek.config.errors import ConfigError

__all__ = ["BOOLEAN", "CLASS", "DOUBLE", "INT", "LIST", "LONG", "PASSWORD", "SHORT", "STRING", "ConfigType"]

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DOUBLE_MAX = 1.7976931348623157e308


class ConfigType(enum.IntEnum):
    """A setting's type, with the number that DescribeConfigs tells."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @property
    def sensitive(self) -> bool:
        """Whether values are told to nobody: passwords, and what is not known to be none."""
        return self in (ConfigType.PASSWORD, ConfigType.UNKNOWN)

    def parse(self, key: str, text: str) -> Any:
        """The value of `text`: bool, str, int, float, or list of str. ConfigError when it has none."""
        text = text.strip()
        if self in BITS:
            return self._parse_integer(key, text)
        if self is ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ConfigError(key, text, "Expected value to be either true or false")
            return text.lower() == "true"
        if self is ConfigType.DOUBLE:
            if not DECIMAL.fullmatch(text):
                raise ConfigError(key, text, f"Not a number of type {self.name}")
            return float(text.rstrip("dDfF"))
        if self is ConfigType.LIST:
            return [item.strip() for item in text.split(",")] if text else []
        return text

    def _parse_integer(self, key: str, text: str) -> int:
        limit = 1 << (BITS[self] - 1)
        # At most 19 digits fit into a LONG; leading zeros are worth no more than a limit on the work of int().
        if not INTEGER.fullmatch(text) or not -limit <= (value := int(text)) < limit:
            raise ConfigError(key, text, f"Not a number of type {self.name}")
        return value

    def format(self, value: Any) -> str | None:
        """The text of a value, as Kafka prints it; None for null."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return format_double(value)
        return ",".join(value) if isinstance(value, list) else str(value)


INTEGER = re.compile(r"[+-]?[0-9]{1,64}", re.ASCII)
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?", re.ASCII)
BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD


def format_double(value: float) -> str:
    """`value` as Java writes a double: with an exponent below 0.001 and from ten million on."""
    digits = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return digits
    mantissa, _, exponent = f"{value:e}".partition("e")
    if "e" in digits:
        mantissa, _, exponent = digits.partition("e")
    else:
        shortest = digits.lstrip("-").replace(".", "").strip("0")
        mantissa = f"{'-' * (value < 0)}{shortest[0]}.{shortest[1:] or '0'}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
