"""What the queries say of themselves while they run: for each micro-batch a line on the terminal, and one in a file.

    counts  batch 7  1,204 rows  412 rows/s  2.9 s  behind 15 (page-views/1 12, searches/0 3)  state 3,310  dropped 0

"Behind" is the sum of what the partitions have more than was read, and which of them have how much. "Dropped" counts
rows that came behind the watermark: more than 0 says that `watermark_s` is too small.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

__all__ = ["Batch", "Progress", "describe", "read_progress"]

_NONE: Final = "{}"


@dataclass(frozen=True)
class Batch:
    """One micro-batch, as its query told of it."""

    job: str
    batch_id: int
    timestamp: str
    rows: int
    rows_per_s: float
    duration_ms: int
    behind: dict[str, int]
    """Records not read yet, by `TOPIC/PARTITION`."""

    state_rows: int
    dropped: int
    """Rows that came behind the watermark."""

    duplicates: int
    """Events that had come before."""

    watermark: str | None


class Progress(StreamingQueryListener):
    """Tells of each micro-batch that read something, and appends all to a file."""

    def __init__(self, path: Path, *, live: bool) -> None:
        self._path = path
        self._live = live

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing: the first micro-batch tells."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Take a micro-batch down."""
        batch = describe(json.loads(event.progress.json))
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(batch)) + "\n")
        if self._live and batch.rows:
            print(_line(batch), flush=True)  # noqa: T201 - what the command is for

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing: there is no news."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Tell of a failure at once."""
        if event.exception:
            print(f"query {event.id} failed: {event.exception.splitlines()[0]}", flush=True)  # noqa: T201 - likewise


def describe(progress: dict[str, Any]) -> Batch:
    """What Spark's progress of a query (its JSON) says, in short."""
    operators = progress["stateOperators"]
    return Batch(
        job=progress["name"],
        batch_id=progress["batchId"],
        timestamp=progress["timestamp"],
        rows=progress["numInputRows"],
        rows_per_s=progress.get("processedRowsPerSecond", 0.0),
        duration_ms=progress["durationMs"].get("triggerExecution", 0),
        behind=_behind(progress["sources"]),
        state_rows=sum(operator["numRowsTotal"] for operator in operators),
        dropped=sum(operator["numRowsDroppedByWatermark"] for operator in operators),
        duplicates=sum(operator["customMetrics"].get("numDroppedDuplicateRows", 0) for operator in operators),
        watermark=progress.get("eventTime", {}).get("watermark"),
    )


def _behind(sources: list[dict[str, Any]]) -> dict[str, int]:
    behind = {}
    for source in sources:
        read, latest = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
        for topic, partitions in latest.items():
            for partition, offset in partitions.items():
                behind[f"{topic}/{partition}"] = offset - read.get(topic, {}).get(partition, 0)
    return behind


def _offsets(value: Any) -> dict[str, dict[str, int]]:
    """Offsets in a progress: an object, or one in a string."""
    offsets: dict[str, dict[str, int]] = json.loads(value or _NONE) if isinstance(value, str | None) else value
    return offsets


def _line(batch: Batch) -> str:
    return (
        f"{batch.job:13} batch {batch.batch_id:4} {batch.rows:8,} rows {batch.rows_per_s:8,.0f} rows/s"
        f" {batch.duration_ms / 1000:6.1f} s   behind {_lag(batch.behind)}"
        f"   state {batch.state_rows:,}   dropped {batch.dropped:,}"
    )


def _lag(behind: dict[str, int]) -> str:
    """The sum, and of what it is made; a partition that is read to its end is not named."""
    parts = ", ".join(f"{name} {count:,}" for name, count in sorted(behind.items()) if count)
    return f"{sum(behind.values()):,}" + (f" ({parts})" if parts else "")


def read_progress(path: Path) -> list[Batch]:
    """The micro-batches in a file that `Progress` wrote; the last line may be cut off by a kill."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [Batch(**json.loads(line)) for line in lines if line.endswith("\n")]
