"""What came of a run: medians, ratios, the table, and JSON."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from harness.versions import KAFKA_4

OURS = "odradek"
THEIRS = "kafka"


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
    "records_per_s": Metric("records/s", 1.0, higher_is_better=True),
    "transactions_per_s": Metric("transactions/s", 1.0, higher_is_better=True),
    "requests_per_s": Metric("requests/s", 1.0, higher_is_better=True),
    "mb_per_s": Metric("MB/s", 0.2, higher_is_better=True),
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
}


@dataclass
class Results:
    """The figures of all rounds: row -> metric -> broker -> one figure for each round."""

    samples: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, row: str, broker: str, figures: dict[str, float]) -> None:
        """Note what one run gave."""
        metrics = self.samples.setdefault(row, {})
        for metric, value in figures.items():
            metrics.setdefault(metric, {}).setdefault(broker, []).append(value)

    def lines(self) -> list["Line"]:
        """The lines of the table."""
        return [
            Line(row, metric, {broker: statistics.median(values) for broker, values in brokers.items()})
            for row, metrics in self.samples.items()
            for metric, brokers in metrics.items()
        ]


@dataclass(frozen=True)
class Line:
    """The medians of one metric in one row, by broker."""

    row: str
    metric: str
    medians: dict[str, float]

    @property
    def ratio(self) -> float | None:
        """Ours / theirs; None when one of them is missing or too small for the clock."""
        ours, theirs = self.medians.get(OURS), self.medians.get(THEIRS)
        return ours / theirs if ours is not None and theirs else None


def table(results: Results, brokers: Sequence[str]) -> str:
    """The results as text, for a terminal and for Markdown alike. `!` marks a ratio that misses its target."""
    rows = [["row", "figure", *brokers, "ratio", "target", ""]]
    rows.append(["-" * len(cell) for cell in rows[0]])
    before = ""
    for line in results.lines():
        metric = METRICS[line.metric]
        ratio = line.ratio
        rows.append(
            [
                line.row if line.row != before else "",
                metric.title,
                *(_number(line.medians.get(name)) for name in brokers),
                "-" if ratio is None else f"{ratio:.2f}",
                f"{'>=' if metric.higher_is_better else '<='} {metric.target:g}",
                "!" if ratio is not None and not metric.met(ratio) else "",
            ]
        )
        before = line.row
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = [
        "| "
        + " | ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in rows
    ]
    return "\n".join(texts + [f"failed: {failure}" for failure in results.failures])


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def write_json(path: Path, results: Results, about: dict[str, str]) -> None:
    """All figures of all rounds, with what they were measured on."""
    rows = [
        {
            "row": line.row,
            "metric": line.metric,
            "medians": line.medians,
            "ratio": line.ratio,
            "samples": results.samples[line.row][line.metric],
        }
        for line in results.lines()
    ]
    path.write_text(json.dumps({**about, "rows": rows, "failures": results.failures}, indent=1) + "\n")


def describe_machine() -> dict[str, str]:
    """What a reader has to know of where the figures come from."""
    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    return {
        "machine": f"{os.cpu_count()} x {cpu[0] if cpu else platform.machine()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "trio": version("trio"),
        "odradek": version("odradek"),
        "kafka": KAFKA_4,
    }
