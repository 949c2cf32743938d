"""The report of a run: one HTML file that needs nothing beside it, with the charts as SVG in it."""

import html
import io
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.landed import Check, Landed, read_lake
from pipeline.progress import Batch
from pipeline.settings import Settings
from pipeline.truth import Truth

__all__ = ["PERCENTILES", "Landing", "Report", "landings", "write_report"]

PERCENTILES = (0.5, 0.9, 0.99, 1.0)

_WIDTH, _HEIGHT = 6.2, 2.9
_BLUE, _ORANGE, _GREY = "#2f6690", "#d9822b", "#9aa5b1"

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1f2933; max-width: 1240px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin: 0; } h2 { font-size: 1.1em; margin: 1.8em 0 .5em; }
.charts { display: flex; flex-wrap: wrap; gap: 12px; }
figure { margin: 0; border: 1px solid #d8dee4; border-radius: 6px; padding: 8px; flex: 1 1 560px; }
figcaption { color: #52606d; font-size: .9em; } svg { width: 100%; height: auto; }
table { border-collapse: collapse; }
th, td { padding: .25em .9em .25em 0; border-bottom: 1px solid #e4e7eb; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: #1b7f4b; font-weight: 600; } .bad { color: #b42318; font-weight: 600; } .about { color: #52606d; }
"""


@dataclass(frozen=True, order=True)
class Landing:
    """When an event arrived at the broker, and when the file of the lake that holds it was written."""

    arrived_ms: int
    landed_ms: int


@dataclass(frozen=True)
class Report:
    """What is told of a run."""

    started: datetime
    seconds: float
    rate: float
    truth: Truth
    landed: Landed
    checks: Sequence[Check]
    batches: Sequence[Batch]
    landings: Sequence[Landing]
    """What the files of the lake hold, in order of time."""


def landings(spark: SparkSession, settings: Settings) -> list[Landing]:
    """When events arrived, and when the files that hold them were written."""
    written = F.unix_millis(F.col("_metadata.file_modification_time"))
    times = read_lake(spark, settings).select(F.unix_millis("arrived").alias("arrived_ms"), written.alias("landed_ms"))
    return sorted(Landing(row.arrived_ms, row.landed_ms) for row in times.collect())


def write_report(path: Path, report: Report) -> None:
    """Write the report to `path`."""
    good = all(check.holds for check in report.checks)
    verdict = "good" if good else "bad"
    said = "Every promise holds." if good else "Some promises do not hold."
    about = (
        f"{report.started:%Y-%m-%d %H:%M} UTC, {report.seconds:.0f} s at {report.rate:,.0f} events/s. "
        f"{sum(report.truth.fates.values()):,} records produced: {len(report.truth.landed):,} valid and new events, "
        f"{len(report.truth.aborted):,} in transactions that were aborted."
    )
    charts = (
        (_traffic, "Page views by window, as the table of counts has them, and as they were produced"),
        (_sessions, "Sessions that are closed, by length"),
        (_unwanted, "What was kept out of the lake"),
        (_delays, "From arrival at the broker to a file in the lake"),
        (_batch_times, "Time that each micro-batch took"),
        (_progress, "Events that had arrived at the broker, and those that had landed in the lake"),
    )
    body = [
        f"<h1>Website activity</h1><p class=about>{about}</p>",
        f'<h2>Reconciliation: <span class="{verdict}">{said}</span></h2>',
        _checks_table(report.checks),
        "<h2>What happened</h2><div class=charts>",
        *(f"<figure>{_draw(draw, report)}<figcaption>{caption}</figcaption></figure>" for draw, caption in charts),
        "</div><h2>Queries</h2>",
        _queries_table(report.batches),
    ]
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>Website activity</title><style>{_STYLE}</style>"
    path.write_text(page + "\n".join(body) + "</html>\n")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and the others are numbers."""

    def row(cells: Sequence[str], tag: str) -> str:
        first, *others = cells
        return f"<tr><{tag}>{first}</{tag}>" + "".join(f"<{tag} class=number>{one}</{tag}>" for one in others) + "</tr>"

    return "<table>" + row(heads, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"


def _checks_table(checks: Iterable[Check]) -> str:
    rows = []
    for check in checks:
        mark = (
            '<span class="good">holds</span>'
            if check.holds
            else f'<span class="bad">{check.differences:,} differ</span>'
        )
        rows.append((html.escape(check.name), f"{check.expected:,}", f"{check.found:,}", mark))
    return _table(("promise", "produced", "found", ""), rows)


def _queries_table(batches: Sequence[Batch]) -> str:
    rows = []
    for job, own in _by_job(batches).items():
        spent_s = sum(batch.duration_ms for batch in own) / 1000
        read = sum(batch.rows for batch in own)
        most_ms = max(batch.duration_ms for batch in own)
        dropped = sum(batch.dropped for batch in own)
        state = max(batch.state_rows for batch in own)
        rate = read / spent_s if spent_s else 0.0
        rows.append(
            (job, f"{len(own)}", f"{read:,}", f"{rate:,.0f}", f"{most_ms / 1000:.1f}", f"{state:,}", f"{dropped:,}")
        )
    heads = (
        "query",
        "micro-batches",
        "records read",
        "records/s while busy",
        "longest, s",
        "most state rows",
        "dropped",
    )
    return _table(heads, rows)


def _by_job(batches: Iterable[Batch]) -> dict[str, list[Batch]]:
    by_job: dict[str, list[Batch]] = {}
    for batch in batches:
        by_job.setdefault(batch.job, []).append(batch)
    return by_job


def _draw(draw: Callable[[Axes, Report], None], report: Report) -> str:
    """A chart as SVG, with its letters as text."""
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        draw(figure.add_subplot(), report)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def _traffic(axes: Axes, report: Report) -> None:
    found, produced = (Counter[int]() for _ in range(2))
    for counts, views in ((found, report.landed.views), (produced, report.truth.views)):
        for (start_ms, dimension, _), count in views.items():
            if dimension == "country":
                counts[start_ms] += count
    starts = sorted(produced)
    width_s = min((after - before for before, after in itertools.pairwise(starts)), default=1000) / 1000
    since_s = [(start - starts[0]) / 1000 for start in starts]
    axes.bar(since_s, [found[start] for start in starts], 0.9 * width_s, align="edge", color=_BLUE, label="counted")
    axes.hlines(
        [produced[start] for start in starts],
        since_s,
        [second + width_s for second in since_s],
        color=_ORANGE,
        label="produced",
    )
    axes.set(xlabel="start of the window, s", ylabel="views")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _sessions(axes: Axes, report: Report) -> None:
    lengths_s = [(one.end_ms - one.start_ms) / 1000 for one in report.landed.sessions]
    axes.hist(lengths_s, bins=30, color=_BLUE)
    axes.set(xlabel="length, s", ylabel="sessions", title=f"{len(lengths_s):,} sessions")


def _unwanted(axes: Axes, report: Report) -> None:
    duplicates = sum(batch.duplicates for batch in report.batches if batch.job == "landing")
    kept_out = {"duplicate": duplicates, **dict(report.landed.dead.most_common())}
    names = list(kept_out)[::-1]
    bars = axes.barh([name.replace("_", " ") for name in names], [kept_out[name] for name in names], color=_BLUE)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.set(xlabel="records")
    axes.margins(x=0.12)


def _delays(axes: Axes, report: Report) -> None:
    waits_s = sorted((one.landed_ms - one.arrived_ms) / 1000 for one in report.landings)
    names = ["longest" if share == 1 else f"p{share * 100:.0f}" for share in PERCENTILES]
    found = [waits_s[min(int(share * len(waits_s)), len(waits_s) - 1)] if waits_s else 0.0 for share in PERCENTILES]
    bars = axes.barh(names[::-1], found[::-1], color=[_GREY, _BLUE, _BLUE, _BLUE])
    axes.bar_label(bars, fmt="{:.1f} s", padding=3)
    axes.set(xlabel="s")
    axes.margins(x=0.12)


def _batch_times(axes: Axes, report: Report) -> None:
    by_job = {
        job: [batch.duration_ms / 1000 for batch in own if batch.rows] for job, own in _by_job(report.batches).items()
    }
    shown = {job: times for job, times in by_job.items() if times}
    if shown:
        axes.boxplot(
            list(shown.values()), orientation="horizontal", tick_labels=list(shown), flierprops={"markersize": 3}
        )
    axes.set(xlabel="s", xlim=(0, None))


def _progress(axes: Axes, report: Report) -> None:
    arrived = sorted(one.arrived_ms for one in report.landings)
    landed = sorted(one.landed_ms for one in report.landings)
    started_ms = report.started.timestamp() * 1000
    for times, name, colour in ((arrived, "arrived", _ORANGE), (landed, "landed", _BLUE)):
        since_s = [(time_ms - started_ms) / 1000 for time_ms in times]
        axes.step(since_s, range(1, len(since_s) + 1), where="post", color=colour, label=name)
    axes.set(xlabel="s", ylabel="events", ylim=(0, None))
    axes.legend(frameon=False, loc="lower right")
