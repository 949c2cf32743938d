"""The report card: which client can do what, against which broker.

A cell has one sign for each broker that was asked, in the order of `Card.brokers`; where all say the same it has one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.results import DIFFERS, FAILED, MISSING, PASSED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The worst of a cell's outcomes is the cell's. Missing is the best but one: it is the client's own limit.
_WORST_FIRST: Final = (FAILED, DIFFERS, PASSED, MISSING)
UNASKED: Final = "unasked"
SIGNS: Final = {PASSED: "✓", MISSING: "·", DIFFERS: "≠", FAILED: "✗", UNASKED: "?"}
LEGEND: Final = {
    PASSED: "all its tests pass",
    MISSING: "the client cannot do it",
    DIFFERS: "fails as is known, for the reason below",
    FAILED: "fails",
    UNASKED: "was not run against this broker",
}
TITLES: Final = {FAILED: "What fails", DIFFERS: "Where the brokers differ", MISSING: "What the clients cannot do"}


@dataclass(frozen=True, slots=True)
class Note:
    """Why a cell is not simply passed: the clients and brokers that the same reason holds for."""

    outcome: str
    client: str
    brokers: tuple[str, ...]
    feature: str
    reason: str


class Card:
    """The results of all brokers, by client and feature."""

    def __init__(self, results: dict[str, dict[str, dict[str, dict[str, Any]]]]) -> None:
        self._results = results
        kafkas = sorted((broker for broker in results if broker.startswith("kafka-")), reverse=True)
        self.brokers = [*sorted(set(results) - set(kafkas)), *kafkas]
        self.clients = sorted({client for clients in results.values() for client in clients})
        self.features = sorted({row for clients in results.values() for rows in clients.values() for row in rows})

    @classmethod
    def read(cls, files: Iterable[Path], folder: str | None = None) -> Card:
        """Read the files of several brokers; only the clients of one folder, if it is given."""
        results = {}
        for file in files:
            run = json.loads(file.read_text())
            results[run["broker"]] = {
                client: rows
                for client, rows in run["clients"].items()
                if folder is None or client == folder or client.startswith(f"{folder}-")
            }
        return cls(results)

    def outcomes(self, client: str, feature: str) -> dict[str, str]:
        """Return the outcome of a cell for each broker that was asked."""
        found = {}
        for broker in self.brokers:
            if cell := self._results[broker].get(client, {}).get(feature):
                found[broker] = next(outcome for outcome in _WORST_FIRST if outcome in cell["counts"])
        return found

    def shown(self, client: str, feature: str) -> list[str]:
        """Return the outcomes that a cell shows: one where all agree, else one for each broker."""
        outcomes = self.outcomes(client, feature)
        if len(set(outcomes.values())) <= 1:
            return list(outcomes.values())[:1]
        return [outcomes.get(broker, UNASKED) for broker in self.brokers]

    def signs(self, client: str, feature: str) -> str:
        """Return the signs of a cell, "" where nothing was asked."""
        return " ".join(SIGNS[outcome] for outcome in self.shown(client, feature))

    def counts(self, client: str, broker: str) -> dict[str, int]:
        """Return how many tests of a client ended how against a broker; empty when it was not asked."""
        sums: dict[str, int] = {}
        for cell in self._results[broker].get(client, {}).values():
            for outcome, count in cell["counts"].items():
                sums[outcome] = sums.get(outcome, 0) + count
        return sums

    def passed(self, client: str, broker: str) -> str:
        """Return how many of the tests that the client can do passed, as "5 of 6"; "" when the broker was not asked."""
        counts = self.counts(client, broker)
        asked = sum(counts.values()) - counts.get(MISSING, 0)
        return f"{counts.get(PASSED, 0)} of {asked}" if counts else ""

    def notes(self) -> list[Note]:
        """Return every reason once for each client and feature, with the brokers that it was seen against."""
        seen: dict[tuple[str, str, str, str], list[str]] = {}
        for broker in self.brokers:
            for client, rows in self._results[broker].items():
                for feature, cell in rows.items():
                    outcome = self.outcomes(client, feature)[broker]
                    if outcome == PASSED and MISSING in cell["counts"]:
                        outcome = MISSING
                    for reason in cell["reasons"]:
                        seen.setdefault((outcome, client, feature, reason), []).append(broker)
        order = {outcome: place for place, outcome in enumerate(_WORST_FIRST)}
        notes = [
            Note(outcome, client, tuple(brokers), feature, reason)
            for (outcome, client, feature, reason), brokers in seen.items()
        ]
        return sorted(notes, key=lambda note: (order[note.outcome], note.client, note.feature, note.reason))
