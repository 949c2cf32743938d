"""The broker's loggers and their levels, by Kafka's names for them (KIP-412).

Levels last as long as the process. A logger without a level of its own has that of the nearest one above it.
"""

import logging

__all__ = ["LEVELS", "ROOT", "logger_levels", "set_level"]

ROOT = "root"

LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": 5,
    "WARN": logging.WARNING,
}


def logger_levels() -> dict[str, str]:
    """The level in force of the root logger and of each of Odradek's, by name."""
    ours = (name for name in logging.root.manager.loggerDict if name.partition(".")[0] in PACKAGES)
    return {name: _level_name(_logger(name).getEffectiveLevel()) for name in (ROOT, *sorted(ours))}


PACKAGES = ("odradek", "odradek_protocol")


def set_level(name: str, level: str | None) -> None:
    """Give a logger one of LEVELS, or (None) that of the one above it. KeyError for any other level."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_name(level: int) -> str:
    """The highest of LEVELS that is not above `level`: what is logged at that name's level is logged."""
    reached = [name for name, number in LEVELS.items() if number <= level]
    return max(reached, key=LEVELS.__getitem__, default="TRACE")
