"""What a run proved: for each client and feature how many tests passed, failed, differ as known, or cannot be made.

A run writes one JSON file for its broker. Clients that it did not run keep what an earlier run of the file says, so
that a single client can be run anew. `report_card.py` makes the card of all the files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from harness.features import client_of_test, feature_of

if TYPE_CHECKING:
    from pathlib import Path

PASSED: Final = "passed"
FAILED: Final = "failed"
MISSING: Final = "missing"
DIFFERS: Final = "differs"


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
        self._places: dict[str, tuple[str, str]] = {}
        self._missing: dict[str, str] = {}
        self._clients: dict[str, dict[str, Cell]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            if isinstance(item, pytest.Function) and (client := client_of_test(item)):
                self._places[item.nodeid] = client, feature_of(item)
                if skip := item.get_closest_marker("skip"):
                    self._missing[item.nodeid] = skip.kwargs["reason"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid in self._places and (found := self._outcome(report)):
            client, feature = self._places[report.nodeid]
            self._clients.setdefault(client, {}).setdefault(feature, Cell()).add(*found)

    def _outcome(self, report: pytest.TestReport) -> tuple[str, str] | None:
        """Return how a test ended and why; None for a phase that says nothing, and where the machine lacks a tool."""
        if hasattr(report, "wasxfail"):
            return DIFFERS, report.wasxfail
        if report.failed:
            return FAILED, f"{report.nodeid.rpartition('::')[2]} ({report.when})"
        if report.skipped:
            return (MISSING, reason) if (reason := self._missing.get(report.nodeid)) else None
        return (PASSED, "") if report.when == "call" else None

    def pytest_sessionfinish(self) -> None:
        earlier = json.loads(self._file.read_text())["clients"] if self._file.exists() else {}
        clients = {name: {row: asdict(cell) for row, cell in rows.items()} for name, rows in self._clients.items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        merged = {"broker": self._broker, "clients": dict(sorted((earlier | clients).items()))}
        self._file.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")
