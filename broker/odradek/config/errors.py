"""The one exception of configuration."""

from collections.abc import Iterable

__all__ = ["ConfigError", "unknown_key"]


class ConfigError(Exception):
    """A setting that cannot be used: `key`, the `value` that was given, and what was `expected`.

    The text is worded as Kafka words its ConfigException, since clients show it; `text` replaces it where Kafka's
    answer does not follow the pattern.
    """

    def __init__(self, key: str, value: object, expected: str, *, text: str = "") -> None:
        super().__init__(key, value, expected)
        self.key = key
        self.value = value
        self.expected = expected
        self.text = text

    def __str__(self) -> str:
        return self.text or f"Invalid value {self.value} for configuration {self.key}: {self.expected}"


def unknown_key(key: str, value: object, known: Iterable[str]) -> ConfigError:
    """The error for a key that is not among the `known` ones; it names the nearest of them."""
    import difflib  # noqa: PLC0415 - only a wrong key needs it, and every start would pay for it

    nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    expected = f"the nearest known one is {nearest[0]}" if nearest else "no setting is known"
    return ConfigError(key, value, expected, text=f"Unknown configuration {key} with value {value}: {expected}")
