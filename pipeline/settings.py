"""What a run of the pipeline can be told; every job takes its share from one `Settings`."""

from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = ["LakeFormat", "Settings"]


class LakeFormat(StrEnum):
    """How the lake's files are kept."""

    PARQUET = "parquet"
    """Exactly once for readers that go through Spark, which knows the files of a killed job by `_spark_metadata`."""

    DELTA = "delta"
    """Exactly once for every reader, by a transaction log; takes the package of `session.DELTA_PACKAGE`."""


@dataclass(frozen=True)
class Settings:
    """Where the pipeline reads and writes, and by which rules."""

    bootstrap_servers: str
    folder: str
    """A folder, or its URL on a file system that Spark knows: the lake and the checkpoints lie below it."""

    database_url: str
    """JDBC: `jdbc:sqlite:PATH` or `jdbc:postgresql://HOST/DATABASE?user=...`."""

    trigger_s: float | None = 5.0
    """The time from one micro-batch to the next; None: take what is there and stop. Never as fast as it goes: an idle
    query without a trigger asks the broker for its latest offsets 65 times a second."""

    max_offsets_per_trigger: int = 50_000
    """What bounds a micro-batch after a pause: state and memory grow with its size."""

    min_partitions: int | None = None
    """More tasks than the topics have partitions, where cores are idle."""

    fail_on_data_loss: bool = True
    """Stop a query whose next records are gone (retention, DeleteRecords), instead of going on behind them."""

    late_after_s: int = 10
    """An event that arrives this long after it happened goes to the dead letters."""

    watermark_s: int = 20
    """How long state is kept for events behind the newest. More than `late_after_s`, by as much as one partition may be
    read behind another: then the watermark drops nothing, and the event alone decides whether it is late. Partitions
    drift apart while a backlog is read in several micro-batches, and records of a transaction wait for its end."""

    window_s: int = 10
    session_gap_s: int = 15
    attribution_s: int = 60
    """How long after a view a click counts as caused by it."""

    top: int = 5
    lake_format: LakeFormat = LakeFormat.PARQUET

    def __post_init__(self) -> None:
        if self.watermark_s <= self.late_after_s:
            raise ValueError(f"the watermark ({self.watermark_s} s) must be behind late events ({self.late_after_s} s)")

    def at(self, bootstrap_servers: str) -> "Settings":
        """These settings with another broker."""
        return replace(self, bootstrap_servers=bootstrap_servers)

    @property
    def lake(self) -> str:
        """The landed events, partitioned by date and hour."""
        return f"{self.folder}/lake"

    def checkpoint(self, job: str) -> str:
        """Where the query of `job` keeps its offsets and state."""
        return f"{self.folder}/checkpoints/{job}"
