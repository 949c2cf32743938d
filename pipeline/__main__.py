"""`python -m pipeline COMMAND`, or `spark-submit pipeline/__main__.py COMMAND`: the whole of it, or one part."""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.admin import create_topics
from pipeline.cluster import Cluster
from pipeline.database import create_tables, sqlite_url
from pipeline.generator import Plan
from pipeline.offline import SMALL_FILE_BYTES, compact, load, read_loaded
from pipeline.produce import produce
from pipeline.progress import Progress
from pipeline.replay import arrived_between, replay
from pipeline.run import run
from pipeline.session import local_session
from pipeline.settings import LakeFormat, Settings
from pipeline.sources import read_between, read_topic
from pipeline.streams import JOBS, start, supervise
from pipeline.topics import EVENTS

FOLDER = "pipeline-run"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what `arguments` (those of the process unless given) say; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except ValueError as error:  # a setting that is wrong
        print(f"pipeline: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return 1


Command = Callable[[argparse.Namespace], int]


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="pipeline", description="Website activity on PySpark and Odradek.")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    place, activity = _place(), _activity()

    def command(name: str, function: Command, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text, parents=parents)
        one.set_defaults(command=function)
        return one

    one = command("run", _run, "broker, generator and all jobs on this machine, and a report", place, activity)
    one.add_argument("--minutes", type=float, default=2.0)

    one = command("generate", _generate, "send made-up activity until SIGTERM or SIGINT, or its end", place, activity)
    one.add_argument("--seconds", type=float, default=60.0, help="(%(default)s)")
    one.add_argument("--since", type=_time_ms, help="an ISO 8601 time before now: what happened since is sent at once")
    one.add_argument("--note", type=Path, default=Path("produced.json"), help="the file that says what was sent")

    one = command("stream", _stream, "run streaming jobs until SIGTERM or SIGINT, or to the end of the topics", place)
    one.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS))
    one.add_argument(
        "--progress", type=Path, default=Path("progress.jsonl"), help="file of micro-batches (%(default)s)"
    )
    one.add_argument("--available-now", action="store_true", help="stop when all that is there is read")

    one = command("cluster", _cluster, "a standalone Spark master and workers on this machine, until SIGTERM or SIGINT")
    one.add_argument("--folder", type=Path, default=Path(FOLDER) / "cluster", help="of their logs (%(default)s)")
    one.add_argument("--workers", type=int, default=2, help="(%(default)s)")
    one.add_argument("--cores", type=int, default=1, help="of each worker (%(default)s)")
    one.add_argument("--memory", default="1g", help="of each worker (%(default)s)")

    one = command("load", _load, "load topics into Parquet, from where the last load ended", place)
    one.add_argument("target", type=Path)
    one.add_argument("--topics", nargs="+", default=list(EVENTS))
    one.add_argument("--since", type=_time_ms, help="an ISO 8601 time: where partitions begin that were never loaded")

    one = command("compact", _compact, "join the small files of a load", place)
    one.add_argument("target", type=Path)
    one.add_argument("--small-bytes", type=int, default=SMALL_FILE_BYTES)

    one = command("replay", _replay, "send records again", place)
    one.add_argument("to", help="the topic to send to")
    source = one.add_mutually_exclusive_group(required=True)
    source.add_argument("--loaded", type=Path, help="from Parquet that `load` wrote")
    source.add_argument("--topic", help="from a topic")
    source.add_argument("--offsets", type=json.loads, help='from a topic: {"TOPIC": {"PARTITION": [FIRST, END]}}')
    one.add_argument("--since", type=_time_ms, help="only what arrived at this ISO 8601 time or later")
    one.add_argument("--until", type=_time_ms, help="only what arrived before this ISO 8601 time")
    return top


def _place() -> argparse.ArgumentParser:
    """The options that say where and by which rules."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bootstrap-servers", default="", help="`run` starts a broker where none is given")
    parser.add_argument("--folder", help=f"lake, checkpoints, SQLite file ({FOLDER}; for `run`, a new one in it)")
    parser.add_argument("--database-url", help="JDBC; a SQLite file in the folder where none is given")
    parser.add_argument("--master", default="local[*]", help="of Spark (%(default)s); with spark-submit say it there")
    parser.add_argument("--trigger-s", type=float, default=Settings.trigger_s, help="(%(default)s)")
    parser.add_argument(
        "--max-offsets-per-trigger", type=int, default=Settings.max_offsets_per_trigger, help="(%(default)s)"
    )
    parser.add_argument("--min-partitions", type=int)
    parser.add_argument("--late-after-s", type=int, default=Settings.late_after_s, help="(%(default)s)")
    parser.add_argument("--watermark-s", type=int, default=Settings.watermark_s, help="(%(default)s)")
    parser.add_argument("--lake-format", choices=[one.value for one in LakeFormat], default=Settings.lake_format.value)
    parser.add_argument("--allow-data-loss", action="store_true", help="go on behind records that are gone")
    return parser


def _activity() -> argparse.ArgumentParser:
    """The options of the generator."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rate", type=float, default=200.0, help="events/s (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def _time_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 time; UTC where it names no zone."""
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _settings(options: argparse.Namespace, *, available_now: bool = False) -> Settings:
    folder = options.folder or FOLDER
    is_url = "://" in folder
    if options.database_url is None and is_url:
        raise ValueError(f"--database-url is needed: a SQLite file cannot lie in {folder}")
    if not is_url:
        Path(folder).mkdir(parents=True, exist_ok=True)
        folder = str(Path(folder).resolve())
    return Settings(
        bootstrap_servers=options.bootstrap_servers,
        folder=folder,
        database_url=options.database_url or sqlite_url(f"{folder}/warehouse.db"),
        trigger_s=None if available_now else options.trigger_s,
        max_offsets_per_trigger=options.max_offsets_per_trigger,
        min_partitions=options.min_partitions,
        fail_on_data_loss=not options.allow_data_loss,
        late_after_s=options.late_after_s,
        watermark_s=options.watermark_s,
        lake_format=LakeFormat(options.lake_format),
    )


def _asked_to_stop() -> threading.Event:
    """An event that SIGTERM and SIGINT set, from now on."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _session(options: argparse.Namespace) -> SparkSession:
    return local_session(f"pipeline {' '.join(sys.argv[1:2])}", options.master, LakeFormat(options.lake_format))


def _run(options: argparse.Namespace) -> int:
    options.folder = options.folder or f"{FOLDER}/{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}"
    settings = _settings(options)
    holds = run(
        settings,
        Path(settings.folder),
        minutes=options.minutes,
        rate=options.rate,
        seed=options.seed,
        master=options.master,
    )
    return 0 if holds else 1


def _generate(options: argparse.Namespace) -> int:
    create_topics(options.bootstrap_servers)
    start_ms = int(time.time() * 1000) if options.since is None else options.since
    plan = Plan(seed=options.seed, start_ms=start_ms, rate=options.rate)
    count = produce(options.bootstrap_servers, plan, options.seconds, options.note, _asked_to_stop())
    print(f"{count:,} records sent; {options.note} says which")  # noqa: T201 - the answer to a command
    return 0


def _stream(options: argparse.Namespace) -> int:
    settings = _settings(options, available_now=options.available_now)
    create_topics(settings.bootstrap_servers)
    spark = _session(options)
    create_tables(spark, settings.database_url)
    spark.streams.addListener(Progress(options.progress, live=True))
    stop = _asked_to_stop()
    queries = start(spark, settings, options.jobs)
    supervise(queries, stop.is_set)
    for query in queries:
        query.stop()
    spark.stop()
    return 0


def _cluster(options: argparse.Namespace) -> int:
    stop = _asked_to_stop()
    with Cluster(options.folder, workers=options.workers, cores=options.cores, memory=options.memory) as cluster:
        print(f"cluster ready: {cluster.url}", flush=True)  # noqa: T201 - the answer to a command
        stop.wait()
    return 0


def _load(options: argparse.Namespace) -> int:
    manifest = load(_session(options), _settings(options), options.topics, options.target, since_ms=options.since)
    print(f"{manifest.rows:,} records in {len(manifest.files)} files; next {manifest.next}")  # noqa: T201 - the answer
    return 0


def _compact(options: argparse.Namespace) -> int:
    manifest = compact(_session(options), options.target, options.small_bytes)
    print(f"{manifest.rows:,} records in {len(manifest.files)} files")  # noqa: T201 - the answer to a command
    return 0


def _replay(options: argparse.Namespace) -> int:
    spark, settings = _session(options), _settings(options)
    if options.loaded is not None:
        records = read_loaded(spark, options.loaded)
    elif options.topic is not None:
        records = read_topic(spark, settings, options.topic)
    else:
        starts, ends = (
            {
                topic: {int(partition): pair[end] for partition, pair in partitions.items()}
                for topic, partitions in options.offsets.items()
            }
            for end in range(2)
        )
        records = read_between(spark, settings, starts, ends)
    replay(arrived_between(records, options.since, options.until), settings, options.to)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
