"""What a run tells: progress from the queries' own words, the reconciliation, and the report."""

from __future__ import annotations

import dataclasses
import itertools
import json
import tomllib
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from pipeline.generator import Fate, Plan, generate
from pipeline.landed import Landed, reconcile
from pipeline.progress import describe, read_progress
from pipeline.report import Landing, Report, write_report
from pipeline.session import defaults
from pipeline.settings import Settings
from pipeline.truth import Truth, derive

SETTINGS = Settings("", "", "")
PLAN = Plan(seed=3, start_ms=1_790_000_000_000, rate=50)
TRUTH = derive(itertools.islice(generate(PLAN), 6000), SETTINGS)
ROOT = Path(__file__).parents[2]

PROGRESS = {
    "name": "landing",
    "batchId": 4,
    "timestamp": "2026-09-21T14:13:21.000Z",
    "numInputRows": 30,
    "processedRowsPerSecond": 12.5,
    "durationMs": {"triggerExecution": 2400},
    "eventTime": {"watermark": "2026-09-21T14:12:40.000Z"},
    "stateOperators": [
        {"numRowsTotal": 100, "numRowsDroppedByWatermark": 1, "customMetrics": {"numDroppedDuplicateRows": 2}},
        {"numRowsTotal": 10, "numRowsDroppedByWatermark": 0, "customMetrics": {}},
    ],
    "sources": [
        {
            "endOffset": {"page-views": {"0": 7, "1": 3}},
            "latestOffset": {"page-views": {"0": 9, "1": 3}, "page-views-new": {"0": 4}},
        }
    ],
}


def faithful(truth: Truth) -> Landed:
    """Outputs with nothing wrong."""
    return Landed(
        ids=Counter(dict.fromkeys(truth.landed, 1)),
        dead=Counter(truth.dead),
        views=Counter(truth.views),
        sessions=sorted(truth.closed_sessions(SETTINGS)),
        conversions=dict(truth.conversions),
        cost_cents=truth.cost_cents,
    )


def failing(landed: Landed) -> list[str]:
    return [check.name for check in reconcile(TRUTH, landed, SETTINGS) if not check.holds]


def test_a_micro_batch_is_told_in_short() -> None:
    batch = describe(PROGRESS)
    assert (batch.job, batch.batch_id, batch.rows, batch.duration_ms) == ("landing", 4, 30, 2400)
    assert batch.behind == {"page-views/0": 2, "page-views/1": 0, "page-views-new/0": 4}
    assert (batch.state_rows, batch.dropped, batch.duplicates) == (110, 1, 2)


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    assert read_progress(path) == []
    batch = describe(PROGRESS)
    line = json.dumps(asdict(batch))
    path.write_text(f"{line}\n{line[:40]}")
    assert read_progress(path) == [batch]


def test_what_is_as_it_should_be_reconciles() -> None:
    assert failing(faithful(TRUTH)) == []


def test_each_thing_that_is_wrong_is_found() -> None:
    good = faithful(TRUTH)
    event_id = next(iter(TRUTH.landed))
    aborted = next(iter(TRUTH.aborted))
    place = next(iter(TRUTH.views))
    lake = "valid events in the lake, each once"
    wrong = {
        "missing": (dataclasses.replace(good, ids=good.ids - Counter([event_id])), [lake]),
        "twice": (dataclasses.replace(good, ids=good.ids + Counter([event_id])), [lake]),
        "aborted": (
            dataclasses.replace(good, ids=good.ids + Counter([aborted])),
            [lake, "aborted events seen anywhere"],
        ),
        "letter": (dataclasses.replace(good, dead=good.dead - Counter(["late"])), ["dead letters, by fault"]),
        "view": (
            dataclasses.replace(good, views=good.views + Counter([place])),
            ["views counted, by window, page and country"],
        ),
        "session": (dataclasses.replace(good, sessions=good.sessions[1:]), ["sessions that the watermark closed"]),
        "click": (dataclasses.replace(good, conversions={}), ["clicks with their view"]),
        "cent": (dataclasses.replace(good, cost_cents=good.cost_cents + 1), ["cents spent on clicks"]),
    }
    assert {name: failing(landed) for name, (landed, _) in wrong.items()} == {
        name: said for name, (_, said) in wrong.items()
    }


def test_the_report_stands_alone(tmp_path: Path) -> None:
    landed = faithful(TRUTH)
    report = Report(
        started=datetime.fromtimestamp(PLAN.start_ms / 1000, UTC),
        seconds=120,
        rate=PLAN.rate,
        truth=TRUTH,
        landed=landed,
        checks=reconcile(TRUTH, landed, SETTINGS),
        batches=[describe(PROGRESS)],
        landings=[Landing(PLAN.start_ms + n, PLAN.start_ms + 2 * n) for n in range(100)],
    )
    path = tmp_path / "report.html"
    write_report(path, report)
    page = path.read_text()
    assert "Every promise holds." in page
    assert page.count("<svg") == 6
    assert "<script" not in page
    assert f"{TRUTH.fates[Fate.LATE]:,}" in page
    bad = dataclasses.replace(landed, cost_cents=0)
    write_report(path, dataclasses.replace(report, landed=bad, checks=reconcile(TRUTH, bad, SETTINGS)))
    assert "Some promises do not hold." in path.read_text()


def test_a_report_of_nothing_is_one_too(tmp_path: Path) -> None:
    empty = Landed(Counter(), Counter(), Counter(), [], {}, 0)
    report = Report(datetime.now(UTC), 0, 5, Truth(), empty, reconcile(Truth(), empty, SETTINGS), [], [])
    write_report(tmp_path / "report.html", report)


def test_all_say_the_same_release_of_spark() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    (package,) = (one for one in groups["pipeline"] if "pyspark" in one)
    release = package.removeprefix("pyspark==")
    assert f"org.apache.spark:spark-sql-kafka-0-10_2.13:{release}" in defaults()["spark.jars.packages"]
    assert f'SPARK: Final = "{release}"' in (ROOT / "compat-tests/harness/versions.py").read_text()
