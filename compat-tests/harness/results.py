"""What a run proved: for each client and feature how many tests passed, failed, differ as known, or cannot be made.

A run writes one JSON file for its broker. Clients that it did not run keep what an earlier run of the file says, so
that a single client can be run anew. `report_card.py` makes the card of all the files.

The tests may run in several worker processes, whose reports come to one: what a cell needs to know of its test
(`tell_places`) is on the report.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from harness.features import client_of_test, feature_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PASSED: Final = "passed"
FAILED: Final = "failed"
MISSING: Final = "missing"
DIFFERS: Final = "differs"

_CLIENT: Final = "client"
_FEATURE: Final = "feature"
_MISSING: Final = "missing"


def tell_places(items: Iterable[pytest.Item]) -> None:
    """Have the reports of clients' tests tell the cell of the card, and why the client cannot do what is skipped."""
    for item in items:
        if isinstance(item, pytest.Function) and (client := client_of_test(item)):
            item.user_properties += [(_CLIENT, client), (_FEATURE, feature_of(item))]
            if skip := item.get_closest_marker("skip"):
                item.user_properties.append((_MISSING, skip.kwargs["reason"]))


@dataclass(slots=True)
class Cell:
    """The tests of one feature of one client: how many ended how, and the reasons of those that did not pass."""

    counts: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def add(self, outcome: str, reason: str) -> None:
        """Count a test; reasons are kept once."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if reason and reason not in self.reasons:
            self.reasons.append(reason)


class Results:
    """A pytest plugin that collects the outcomes of the clients' tests."""

    def __init__(self, broker: str, file: Path) -> None:
        self._broker = broker
        self._file = file
        self._clients: dict[str, dict[str, Cell]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        place = dict(report.user_properties)
        if _CLIENT in place and (found := _outcome(report, place.get(_MISSING))):
            rows = self._clients.setdefault(place[_CLIENT], {})
            rows.setdefault(place[_FEATURE], Cell()).add(*found)

    def pytest_sessionfinish(self) -> None:
        earlier = json.loads(self._file.read_text())["clients"] if self._file.exists() else {}
        clients = {name: {row: asdict(cell) for row, cell in rows.items()} for name, rows in self._clients.items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        merged = {"broker": self._broker, "clients": dict(sorted((earlier | clients).items()))}
        self._file.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")


def _outcome(report: pytest.TestReport, missing: str | None) -> tuple[str, str] | None:
    """Return how a test ended and why; None for a phase that says nothing, and where the machine lacks a tool."""
    if hasattr(report, "wasxfail"):
        return DIFFERS, report.wasxfail
    if report.failed:
        return FAILED, f"{report.nodeid.rpartition('::')[2]} ({report.when})"
    if report.skipped:
        return (MISSING, missing) if missing else None
    return (PASSED, "") if report.when == "call" else None
