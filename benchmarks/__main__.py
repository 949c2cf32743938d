"""`python -m benchmarks`: run the rows, print the table, write JSON and SVG to `benchmarks/results/`."""

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.brokers import BROKERS, Broker
from benchmarks.catalogue import QUICK_ROWS, ROWS
from benchmarks.chart import write_chart
from benchmarks.report import OURS, THEIRS, Results, describe_machine, table, write_json
from benchmarks.rows import Row

RESULTS = Path(__file__).parent / "results"

ROUNDS = 3
QUICK_SHARE = 0.3


def main() -> int:
    """Do what the command line says; the exit status: 1 when a row failed."""
    options = _parser().parse_args()
    among = QUICK_ROWS if options.quick else ROWS
    rows = [row for row in among if not options.rows or any(part in row.name for part in options.rows)]
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    _allow_files()
    share, rounds = (QUICK_SHARE, 1) if options.quick else (1.0, options.rounds)
    started = datetime.now(UTC)
    with ExitStack() as stack:
        brokers = []
        for name in options.brokers:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-benchmark-", dir=options.folder))
            broker = BROKERS[name](Path(folder))
            stack.callback(broker.stop)
            brokers.append(broker)
            print(f"{broker}, folder {folder}", flush=True)
        results = run(rows, brokers, rounds, share)
    about = {"date": started.isoformat(timespec="seconds"), "rounds": str(rounds), **describe_machine()}
    text = table(results, options.brokers)
    print("\n" + ", ".join(f"{key} {value}" for key, value in about.items()) + "\n\n" + text)
    RESULTS.mkdir(exist_ok=True)
    stem = RESULTS / started.strftime("%Y-%m-%dT%H-%M-%S")
    write_json(stem.with_suffix(".json"), results, about)
    write_chart(stem.with_suffix(".svg"), results.lines(), f"{about['date'][:10]}, {about['machine']}, {rounds} rounds")
    print(f"\nwritten: {stem}.json, {stem}.svg")
    return 1 if results.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Odradek and Apache Kafka under the same load.")
    parser.add_argument("--rows", nargs="+", metavar="TEXT", help="only rows with one of these texts in their names")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="measured rounds, after one to warm up (%(default)s)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round, less load, no clients in Java: about two minutes"
    )
    parser.add_argument("--brokers", nargs="+", choices=sorted(BROKERS), default=[OURS, THEIRS])
    parser.add_argument("--folder", help="where the brokers keep their data: on the disk to measure (default: TMPDIR)")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    return parser


def run(rows: Sequence[Row], brokers: Sequence[Broker], rounds: int, share: float) -> Results:
    """Run every row against every broker in turns; the first round is not counted."""
    results = Results()
    broken: set[str] = set()
    began = time.monotonic()
    for number in range(rounds + 1):
        for row in rows:
            # Whoever comes second finds the machine in another state, so the order changes.
            for broker in brokers if number % 2 else brokers[::-1]:
                if row.name in broken:
                    continue
                try:
                    figures = row.run(broker, share)
                except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                    broken.add(row.name)
                    results.failures.append(f"{row.name}, {broker.name}: {error}")
                    print(f"failed: {results.failures[-1]}", flush=True)
                    continue
                if number:
                    results.add(row.name, broker.name, figures)
                told = ", ".join(f"{metric} {value:.4g}" for metric, value in figures.items())
                print(
                    f"{time.monotonic() - began:6.1f} s  round {number}  {broker.name:8} {row.name}: {told}", flush=True
                )
    return results


def _allow_files() -> None:
    """Let this process and the brokers have as many files as the system grants."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    raise SystemExit(main())
