"""A whole run on this machine: broker, generator, all jobs for some minutes, offline load, reconciliation, report.

FOLDER/broker/                   the broker's data
FOLDER/lake/  checkpoints/       what the jobs write, and where they are
FOLDER/warehouse.db              the tables, where no other database is given
FOLDER/offline/                  the topics, loaded
FOLDER/produced.json             which records the generator sent
FOLDER/progress.jsonl            each micro-batch
FOLDER/report.html
"""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.admin import create_topics
from pipeline.broker import Broker
from pipeline.database import create_tables
from pipeline.generator import Fate
from pipeline.landed import Check, collect, reconcile
from pipeline.offline import compact, load
from pipeline.produce import read_note
from pipeline.progress import Progress, read_progress
from pipeline.report import Report, landings, write_report
from pipeline.session import local_session
from pipeline.settings import Settings
from pipeline.streams import JOBS, start, supervise
from pipeline.topics import EVENTS
from pipeline.truth import Truth, derive

__all__ = ["run"]


def run(settings: Settings, folder: Path, *, minutes: float, rate: float, seed: int, master: str) -> bool:
    """Run all of it; tell whether every promise holds. Where `settings` name no broker, one is started."""
    with ExitStack() as stack:
        if not settings.bootstrap_servers:
            broker = stack.enter_context(Broker(folder))
            settings = settings.at(broker.bootstrap_servers)
            _say(f"broker on {broker.bootstrap_servers}, data in {folder / 'broker'}")
        create_topics(settings.bootstrap_servers)
        spark = local_session("website activity", master, settings.lake_format)
        stack.callback(spark.stop)
        create_tables(spark, settings.database_url)
        progress = folder / "progress.jsonl"
        spark.streams.addListener(Progress(progress, live=True))
        started = datetime.now(UTC)
        queries = start(spark, settings, JOBS)
        _say(f"{len(queries)} queries on {spark.sparkContext.master}; {rate:,.0f} events/s for {minutes:g} minutes")
        note = folder / "produced.json"
        _generate(settings, note, minutes * 60, rate, seed, queries)
        _say("the generator has ended; reading what is left")
        _drain(queries)
        records = read_note(note)
        truth, landed = derive(records, settings), collect(spark, settings)
        batches = read_progress(progress)
        dropped = sum(batch.dropped for batch in batches)
        checks = [
            *reconcile(truth, landed, settings),
            Check("rows that a watermark dropped", 0, dropped, dropped),
            _load_offline(spark, settings, truth, folder / "offline"),
        ]
        report = Report(
            started=started,
            seconds=minutes * 60,
            rate=rate,
            truth=truth,
            landed=landed,
            checks=checks,
            batches=batches,
            landings=landings(spark, settings),
        )
        write_report(folder / "report.html", report)
    for check in checks:
        verdict = "holds" if check.holds else f"{check.differences:,} DIFFER"
        _say(f"{check.name:45} produced {check.expected:8,} found {check.found:8,}  {verdict}")
    _say(f"report: {folder / 'report.html'}")
    return all(check.holds for check in checks)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what the command is for


def _generate(
    settings: Settings, note: Path, seconds: float, rate: float, seed: int, queries: Sequence[StreamingQuery]
) -> None:
    """Run the generator in a process of its own, for as long as all queries live."""
    command = [sys.executable, "-m", "pipeline", "generate", "--bootstrap-servers", settings.bootstrap_servers]
    command += ["--seconds", str(seconds), "--rate", str(rate), "--seed", str(seed), "--note", str(note)]
    with subprocess.Popen(command) as generator:  # noqa: S603 - ours
        try:
            supervise(queries, lambda: generator.poll() is not None)
        finally:
            generator.terminate()
    if generator.returncode:
        raise RuntimeError(f"the generator ended with status {generator.returncode}")


def _drain(queries: Sequence[StreamingQuery]) -> None:
    """Let the queries read all that is there, and stop them."""
    for query in queries:
        query.processAllAvailable()
        query.stop()


def _load_offline(spark: SparkSession, settings: Settings, truth: Truth, target: Path) -> Check:
    """Load the topics of events into Parquet, join the small files, and count."""
    loaded = load(spark, settings, EVENTS, target)
    joined = compact(spark, target)
    _say(f"offline: {loaded.rows:,} records in {len(loaded.files)} files, joined to {len(joined.files)}")
    committed = truth.fates.total() - truth.fates[Fate.ABORTED] - truth.fates[Fate.PROFILE]
    return Check("records loaded offline, without aborted ones", committed, joined.rows, abs(committed - joined.rows))
