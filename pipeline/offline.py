"""Offline loading: from topics into Parquet, a step at a time, with a manifest of which file holds which offsets.

    TARGET/manifest.json                                     what counts; replaced as a whole by a rename
    TARGET/000001/date=2026-11-21/hour=7/part-....parquet    the files of one step, as Spark wrote them

    {"steps": 1,
     "next": {"page-views": {"0": 1200}},                    the first offset that is not loaded, of each partition
     "files": [{"path": "000001/date=.../part-....parquet", "rows": 1200, "offsets": {"page-views/0": [0, 1199]}}]}

A step reads from `next` to an end that is fixed before it starts, writes its files, reads them again for the manifest,
and then replaces the manifest. Files that the manifest does not name are left from a step that was cut off: nobody
reads them, and the step of the same number replaces them. So each record is loaded exactly once, for every reader that
goes by the manifest. `compact` writes the small files anew as few large ones and replaces them in the manifest in the
same way.

Records are kept as they came (key, value, headers, timestamp), by the date and the hour of their arrival, so that they
can be replayed.
"""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pipeline.admin import beginnings, ends, offsets_at
from pipeline.settings import Settings
from pipeline.sources import read_between

__all__ = ["SMALL_FILE_BYTES", "LoadedFile", "Manifest", "RecordsGoneError", "compact", "load", "read_loaded"]

SMALL_FILE_BYTES: Final = 64 * 1024 * 1024
"""Files below half of what HDFS and object stores are made for are worth joining."""

STEP_OFFSETS: Final = 1_000_000
"""What one step loads at most from each partition: what a kill costs."""

_MANIFEST: Final = "manifest.json"


class RecordsGoneError(Exception):
    """Records that a load has not read yet were deleted from the topic."""


@dataclass(frozen=True)
class LoadedFile:
    """A file, by its path below the target, and the first and last offset in it for each `TOPIC/PARTITION`."""

    path: str
    rows: int
    offsets: dict[str, tuple[int, int]]


@dataclass
class Manifest:
    """What is loaded."""

    steps: int = 0
    next: dict[str, dict[int, int]] = field(default_factory=dict)
    files: list[LoadedFile] = field(default_factory=list)

    @classmethod
    def read(cls, target: Path) -> "Manifest":
        """The manifest of `target`; an empty one where nothing was loaded."""
        path = target / _MANIFEST
        if not path.exists():
            return cls()
        found = json.loads(path.read_text())
        return cls(
            steps=found["steps"],
            next={
                topic: {int(partition): offset for partition, offset in partitions.items()}
                for topic, partitions in found["next"].items()
            },
            files=[
                LoadedFile(
                    one["path"], one["rows"], {place: (first, last) for place, (first, last) in one["offsets"].items()}
                )
                for one in found["files"]
            ],
        )

    def write(self, target: Path) -> None:
        """Replace the manifest of `target`, durably."""
        path = target / f"{_MANIFEST}.new"
        with path.open("w") as file:
            json.dump(asdict(self), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        path.replace(target / _MANIFEST)

    @property
    def rows(self) -> int:
        """How many records are loaded."""
        return sum(file.rows for file in self.files)


def load(
    spark: SparkSession,
    settings: Settings,
    topics: Iterable[str],
    target: Path,
    *,
    since_ms: int | None = None,
    step_offsets: int = STEP_OFFSETS,
) -> Manifest:
    """Load what `topics` have by now and `target` has not.

    A partition that was never loaded begins with its first record, or with the first one that arrived at `since_ms` or
    later. Raises `RecordsGoneError` when records were deleted before they were loaded and `fail_on_data_loss` is set.
    """
    target.mkdir(parents=True, exist_ok=True)
    manifest = Manifest.read(target)
    names = list(topics)
    end = ends(settings.bootstrap_servers, names)
    earliest = beginnings(settings.bootstrap_servers, names)
    fresh = earliest if since_ms is None else offsets_at(settings.bootstrap_servers, names, since_ms)
    while True:
        starts: dict[str, dict[int, int]] = {}
        stops: dict[str, dict[int, int]] = {}
        for topic, partitions in end.items():
            for partition, stop in partitions.items():
                first = manifest.next.get(topic, {}).get(partition, fresh[topic][partition])
                start = _existing(settings, topic, partition, first, earliest[topic][partition])
                if start < stop:
                    starts.setdefault(topic, {})[partition] = start
                    stops.setdefault(topic, {})[partition] = min(start + step_offsets, stop)
        if not starts:
            return manifest
        _load_step(read_between(spark, settings, starts, stops), manifest, target)
        for topic, partitions in stops.items():
            manifest.next.setdefault(topic, {}).update(partitions)
        manifest.write(target)


def _existing(settings: Settings, topic: str, partition: int, wanted: int, earliest: int) -> int:
    if wanted < earliest and settings.fail_on_data_loss:
        raise RecordsGoneError(
            f"{topic}/{partition}: the next offset to load is {wanted}, the first that is left {earliest}"
        )
    return max(wanted, earliest)


def _load_step(records: DataFrame, manifest: Manifest, target: Path) -> None:
    manifest.steps += 1
    folder = target / f"{manifest.steps:06}"
    dated = records.select(
        *("topic", "partition", "offset", "timestamp", "key", "value", "headers"),
        F.to_date("timestamp").alias("date"),
        F.hour("timestamp").alias("hour"),
    )
    dated.write.mode("overwrite").partitionBy("date", "hour").parquet(str(folder))
    manifest.files += _describe(records.sparkSession, folder, target)


def _describe(spark: SparkSession, folder: Path, target: Path) -> list[LoadedFile]:
    """What is in the files of a step, by reading them."""
    if not any(folder.rglob("*.parquet")):  # a range of nothing but transaction markers and aborted records
        return []
    rows = (
        spark.read.parquet(str(folder))
        .groupBy(F.col("_metadata.file_path").alias("path"), "topic", "partition")
        .agg(F.count("*").alias("rows"), F.min("offset").alias("first"), F.max("offset").alias("last"))
        .orderBy("path", "topic", "partition")
        .collect()
    )
    by_path: dict[str, list[Row]] = {}
    for row in rows:
        path = Path(unquote(urlsplit(row.path).path)).relative_to(target.resolve())
        by_path.setdefault(str(path), []).append(row)
    return [
        LoadedFile(
            path,
            sum(row.rows for row in parts),
            {f"{row.topic}/{row.partition}": (row["first"], row["last"]) for row in parts},
        )
        for path, parts in by_path.items()
    ]


def read_loaded(spark: SparkSession, target: Path, files: Iterable[LoadedFile] | None = None) -> DataFrame:
    """The records of those files that the manifest names, or of some of them."""
    chosen = Manifest.read(target).files if files is None else files
    paths = [str(target / file.path) for file in chosen]
    if not paths:
        raise ValueError(f"nothing is loaded in {target}")
    return spark.read.parquet(*paths)


def compact(spark: SparkSession, target: Path, small_bytes: int = SMALL_FILE_BYTES) -> Manifest:
    """Join the files below `small_bytes`: one for each date and hour takes their place, in order of offsets."""
    manifest = Manifest.read(target)
    small = [file for file in manifest.files if (target / file.path).stat().st_size < small_bytes]
    if len(small) < 2:
        return manifest
    manifest.steps += 1
    folder = target / f"{manifest.steps:06}"
    records = read_loaded(spark, target, small).select(
        "*", F.to_date("timestamp").alias("date"), F.hour("timestamp").alias("hour")
    )
    ordered = records.repartition("date", "hour").sortWithinPartitions("date", "hour", "topic", "partition", "offset")
    ordered.write.mode("overwrite").partitionBy("date", "hour").parquet(str(folder))
    joined = _describe(spark, folder, target)
    if sum(file.rows for file in joined) != sum(file.rows for file in small):
        raise RuntimeError(f"{folder} does not have the rows of the files that it should replace")
    manifest.files = [file for file in manifest.files if file not in small] + joined
    manifest.write(target)
    _remove(target, small)
    return manifest


def _remove(target: Path, files: Iterable[LoadedFile]) -> None:
    for file in files:
        (target / file.path).unlink()
    named = {file.path.split("/")[0] for file in Manifest.read(target).files}
    for folder in target.iterdir():
        if folder.is_dir() and folder.name not in named:
            shutil.rmtree(folder)
