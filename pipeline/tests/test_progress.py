"""What a query's progress, in Spark's words, becomes on the terminal and in the file."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from pipeline.progress import Progress, read_progress

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def progress_of(end: dict[str, int], latest: dict[str, int]) -> Any:
    told = {
        "name": "counts",
        "batchId": 7,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": 1204,
        "processedRowsPerSecond": 412.0,
        "durationMs": {"triggerExecution": 2900},
        "sources": [{"endOffset": json.dumps({"page-views": end}), "latestOffset": json.dumps({"page-views": latest})}],
        "stateOperators": [],
    }
    return cast(Any, SimpleNamespace(progress=SimpleNamespace(json=json.dumps(told))))


def test_the_lag_of_each_partition_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "progress.jsonl"
    Progress(path, live=True).onQueryProgress(progress_of({"0": 10, "1": 8}, {"0": 10, "1": 20, "2": 1234}))
    assert "behind 1,246 (page-views/1 12, page-views/2 1,234)   state" in capsys.readouterr().out
    [batch] = read_progress(path)
    assert batch.behind == {"page-views/0": 0, "page-views/1": 12, "page-views/2": 1234}


def test_nothing_is_named_where_all_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Progress(tmp_path / "progress.jsonl", live=True).onQueryProgress(progress_of({"0": 10}, {"0": 10}))
    assert "behind 0   state" in capsys.readouterr().out
