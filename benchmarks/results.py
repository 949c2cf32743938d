"""What came of a run: a figure for each round, medians, spread and ratios; kept as JSON.

    {"date": ..., "machine": ..., ...,
     "rows": [{"row": NAME,
               "brokers": {BROKER: {"date": ..., "others": [share, ...],
                                    "figures": {METRIC: {"median": ..., "min": ..., "max": ..., "samples": [...]}}}}}],
     "failures": [[row, broker, text], ...]}

`others` is the share of the machine that other processes used while the row ran, one for each round.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import truediv
from pathlib import Path
from typing import Any, Self

OURS = "odradek"
THEIRS = "kafka"
OTHER_TREE = "other"
"""Odradek from other sources (`--against`)."""

BUSY = 0.1
"""The share of the machine from which on others disturb: figures of the same row then differ by more than a tenth."""


@dataclass(frozen=True)
class Metric:
    """A kind of figure, and what Odradek's is to be at most (or at least) as a share of Kafka's."""

    title: str
    target: float
    higher_is_better: bool = False

    def met(self, ratio: float) -> bool:
        """Whether a ratio ours / theirs is as good as wanted."""
        return ratio >= self.target if self.higher_is_better else ratio <= self.target


METRICS = {
    "cpu_us_per_record": Metric("CPU, us/record", 0.7),
    "cpu_us_per_request": Metric("CPU, us/request", 0.7),
    "cpu_us_per_transaction": Metric("CPU, us/transaction", 0.7),
    "cpu_us_per_message": Metric("CPU, us/message", 0.7),
    "cpu_us_per_connection": Metric("CPU, us/connection", 0.7),
    "cpu_us_per_consumer": Metric("CPU, us/consumer", 0.7),
    "cpu_ms_per_s": Metric("CPU, ms/s", 0.7),
    "cpu_ms_per_rebalance": Metric("CPU, ms/rebalance", 0.7),
    "records_per_s": Metric("records/s", 1.0, higher_is_better=True),
    "transactions_per_s": Metric("transactions/s", 1.0, higher_is_better=True),
    "requests_per_s": Metric("requests/s", 1.0, higher_is_better=True),
    "mb_per_s": Metric("MB/s", 1.0, higher_is_better=True),
    "rebalance_ms": Metric("rebalance, ms", 1.0),
    "average_ms": Metric("average, ms", 1.0),
    "p50_ms": Metric("p50, ms", 1.0),
    "p99_ms": Metric("p99, ms", 1.0),
    "p99.9_ms": Metric("p99.9, ms", 1.0),
    "start_s": Metric("start, s", 0.1),
    "create_s": Metric("creating the topics, s", 1.0),
    "stop_s": Metric("clean stop, s", 1.0),
    "clean_start_s": Metric("start after it, s", 1.0),
    "crash_start_s": Metric("start after a kill, s", 1.0),
    "memory_mb": Metric("memory, MB", 0.15),
    "memory_connections_mb": Metric("memory with 1,000 idle connections, MB", 0.15),
    "memory_kb_per_connection": Metric("memory, KB/connection", 1.0),
    "memory_kb_per_consumer": Metric("memory, KB/consumer", 1.0),
}


@dataclass
class Measured:
    """One row against one broker: for each metric one figure a round."""

    date: str
    figures: dict[str, list[float]] = field(default_factory=dict)
    others: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    """One metric of one row: what each broker had."""

    row: str
    metric: str
    samples: dict[str, list[float]]

    @property
    def medians(self) -> dict[str, float]:
        return {broker: statistics.median(values) for broker, values in self.samples.items()}

    def ratio(self, reference: str = THEIRS) -> float | None:
        """Ours / the reference's: the median of the rounds' ratios, as in one round both had the same machine.

        That of the medians, where they had not as many rounds. None when one of them is missing, or too small for the
        clock.
        """
        ours, theirs = self.samples.get(OURS), self.samples.get(reference)
        if not ours or not theirs or not all(theirs):
            return None
        if len(ours) != len(theirs):
            return statistics.median(ours) / statistics.median(theirs)
        return statistics.median(map(truediv, ours, theirs))


@dataclass
class Results:
    """Rows in the order in which they were first measured."""

    about: dict[str, str]
    rows: dict[str, dict[str, Measured]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, row: str, broker: str, figures: dict[str, float], others: float) -> None:
        """Note what one run gave."""
        measured = self.rows.setdefault(row, {}).setdefault(broker, Measured(self.about["date"]))
        measured.others.append(others)
        for metric, value in figures.items():
            measured.figures.setdefault(metric, []).append(value)

    def replace(self, newer: "Results", order: Sequence[str]) -> None:
        """Put what was measured again in the place of what was there; the rows get the `order` of these names."""
        self.about = newer.about
        for row, brokers in newer.rows.items():
            self.rows.setdefault(row, {}).update(brokers)
            for broker in brokers:
                self.failures.pop((row, broker), None)
        self.failures |= newer.failures
        place = {row: at for at, row in enumerate(order)}
        self.rows = dict(sorted(self.rows.items(), key=lambda item: place.get(item[0], len(place))))

    def lines(self) -> list[Line]:
        """The lines of the table."""
        found = []
        for row, brokers in self.rows.items():
            metrics = {metric: None for measured in brokers.values() for metric in measured.figures}
            for metric in metrics:
                samples = {
                    name: measured.figures[metric] for name, measured in brokers.items() if metric in measured.figures
                }
                found.append(Line(row, metric, samples))
        return found

    def disturbed(self) -> dict[str, float]:
        """The rows during which others used more than `BUSY` of the machine, in the median of a broker's rounds."""
        shares = {
            row: max(statistics.median(measured.others) for measured in brokers.values())
            for row, brokers in self.rows.items()
        }
        return {row: share for row, share in shares.items() if share > BUSY}

    def save(self, path: Path) -> None:
        """Write all figures of all rounds, with what they were measured on."""
        rows = [
            {"row": row, "brokers": {name: _described(measured) for name, measured in brokers.items()}}
            for row, brokers in self.rows.items()
        ]
        failures = [[row, broker, text] for (row, broker), text in self.failures.items()]
        path.write_text(json.dumps({**self.about, "rows": rows, "failures": failures}, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        told: dict[str, Any] = json.loads(path.read_text())
        rows = {
            one["row"]: {name: _measured(described) for name, described in one["brokers"].items()}
            for one in told.pop("rows")
        }
        failures = {(row, broker): text for row, broker, text in told.pop("failures")}
        return cls(told, rows, failures)


def _described(measured: Measured) -> dict[str, Any]:
    figures = {
        metric: {"median": statistics.median(values), "min": min(values), "max": max(values), "samples": values}
        for metric, values in measured.figures.items()
    }
    return {"date": measured.date, "others": measured.others, "figures": figures}


def _measured(described: dict[str, Any]) -> Measured:
    figures = {metric: one["samples"] for metric, one in described["figures"].items()}
    return Measured(described["date"], figures, described["others"])
