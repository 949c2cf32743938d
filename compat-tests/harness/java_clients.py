"""Programs in Java on top of one release of Kafka's jars."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness.agent import Driver
from harness.cache import require_program
from harness.classes import classes
from harness.features import CLIENTS
from harness.jars import jars

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# By the first release that has the API; what a release adds to the driver lies in folders named after it.
_API_FOLDERS: tuple[tuple[tuple[int, int], tuple[str, ...]], ...] = (
    ((4, 0), ("since-2.5", "release-4.0")),
    ((3, 1), ("since-2.5", "release-3.1")),
    ((2, 5), ("since-2.5", "release-2.5")),
    ((0, 11), ("release-0.11",)),
)
_SHARE_API_FOLDERS: tuple[tuple[tuple[int, int], tuple[str, ...]], ...] = (
    ((4, 2), ("sharing", "sharing-4.2")),
    ((4, 1), ("sharing", "sharing-4.1")),
)


def java_driver(name: str) -> Driver:
    """Return `clients/java` with the jar set `name` of `versions.JARS`, which ends in a release."""
    return java_program(name, _driver_sources(name), "Driver")


def streams_driver(name: str) -> Driver:
    """Return `clients/kafka-streams` with a jar set; it does what `clients/java` does, too."""
    return java_program(name, _streams_sources(name), "StreamsDriver")


def streams_loop(name: str) -> Driver:
    """Return the application of `clients/kafka-streams` with a jar set, as a program that nobody drives."""
    return java_program(name, _streams_sources(name), "StreamsLoop")


def _streams_sources(name: str) -> list[Path]:
    return [*_driver_sources(name), *sorted((CLIENTS / "kafka-streams").glob("*.java"))]


def share_driver(name: str) -> Driver:
    """Return `clients/java` with a jar set of 4.1 or later; it has share consumers, too."""
    return java_program(name, [*_driver_sources(name), *_sources(_folders(name, _SHARE_API_FOLDERS))], "ShareDriver")


def _driver_sources(name: str) -> list[Path]:
    return _sources(("driver", *_folders(name, _API_FOLDERS)))


def _folders(name: str, by_release: tuple[tuple[tuple[int, int], tuple[str, ...]], ...]) -> tuple[str, ...]:
    major, minor, *_ = map(int, name.rpartition("-")[2].split("."))
    return next(folders for since, folders in by_release if (major, minor) >= since)


def _sources(folders: Iterable[str]) -> list[Path]:
    return [source for folder in folders for source in sorted((CLIENTS / "java" / folder).glob("*.java"))]


def java_program(jar_set: str, sources: Sequence[Path], main: str) -> Driver:
    """Return what runs the class `main` of `sources` with a jar set of `versions.JARS`."""
    class_path = os.pathsep.join((str(classes(jar_set, sources)), f"{jars(jar_set)}/*"))
    return Driver([require_program("java"), *_JVM, "-cp", class_path, main])
