"""`python -m benchmarks`: run the rows, print the table, write JSON and SVG to `build/benchmarks/`."""

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from benchmarks.brokers import BROKERS, TREE, Broker, Start, start_odradek
from benchmarks.catalogue import COMBINATIONS, QUICK_ROWS, ROWS
from benchmarks.chart import write_chart
from benchmarks.machine import Others, describe_machine
from benchmarks.report import comparison, markdown, matrix, table
from benchmarks.results import BUSY, OTHER_TREE, OURS, THEIRS, Results
from benchmarks.rows import Figures, Row

RESULTS = TREE / "build" / "benchmarks"

ROUNDS = 3
QUICK_SHARE = 0.3

FILES = 1 << 17
"""Open files that the rows of many clients need, with room."""


def main() -> int:
    """Do what the command line says; the exit status: 1 when a row failed."""
    options = _parser().parse_args()
    among = COMBINATIONS if options.combinations else QUICK_ROWS if options.quick else ROWS
    rows = [row for row in among if not options.rows or any(part in row.name for part in options.rows)]
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    if options.show:
        _print_table(Results.load(options.show), options)
        return 0
    _allow_files()
    share, rounds = (QUICK_SHARE, 1) if options.quick else (1.0, options.rounds)
    started = datetime.now(UTC)
    about = {"date": started.isoformat(timespec="seconds"), "rounds": str(rounds), **describe_machine()}
    results = Results(about)
    with ExitStack() as stack:
        brokers = _start(options, stack)
        try:
            run(rows, brokers, rounds, share, results)
        except KeyboardInterrupt:
            print("stopped; what has been measured is kept", flush=True)
    failed = any(broker in {OURS, THEIRS, OTHER_TREE} for _, broker in results.failures)
    _write(results, options, RESULTS / started.strftime("%Y-%m-%dT%H-%M-%S.json"))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Odradek and Apache Kafka under the same load.")
    parser.add_argument("--rows", nargs="+", metavar="TEXT", help="only rows with one of these texts in their names")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="measured rounds, after one to warm up (%(default)s)"
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument(
        "--quick", action="store_true", help="one round, less load, no clients in Java: about two minutes"
    )
    extent.add_argument(
        "--combinations", action="store_true", help="every kind of batch, produced and read in every way: ratios only"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--brokers", nargs="+", choices=sorted(BROKERS), default=[OURS, THEIRS])
    which.add_argument(
        "--against", type=_tree, metavar="PATH", help="Odradek from other sources instead: what has a change cost?"
    )
    parser.add_argument(
        "--into", type=Path, metavar="FILE", help="add to these results: what is measured now replaces what is there"
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="print these results, and measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print a line for each row, as in the README")
    parser.add_argument("--folder", help="where the brokers keep their data: on the disk to measure (default: TMPDIR)")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    return parser


def _tree(text: str) -> Path:
    tree = Path(text).resolve()
    if not (tree / "broker" / "odradek").is_dir():
        raise argparse.ArgumentTypeError(f"{tree} does not hold Odradek's sources")
    return tree


def _start(options: argparse.Namespace, stack: ExitStack) -> list[Broker]:
    """Start the brokers; they end with the stack. One that needs a program that is not there is left out."""
    starts: dict[str, Start] = {name: BROKERS[name] for name in options.brokers}
    if options.against:
        starts = {OURS: start_odradek, OTHER_TREE: partial(start_odradek, tree=options.against, name=OTHER_TREE)}
    brokers = []
    for name, start in starts.items():
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-benchmark-", dir=options.folder))
        try:
            broker = start(Path(folder), {})
        except pytest.skip.Exception as missing:
            print(f"{name} is left out: {missing}", flush=True)
            continue
        stack.callback(broker.stop)
        brokers.append(broker)
        print(f"{broker}, folder {folder}", flush=True)
    return brokers


def run(rows: Sequence[Row], brokers: Sequence[Broker], rounds: int, share: float, results: Results) -> None:
    """Run every row against every broker in turns; the first round is not counted."""
    began = time.monotonic()
    for number in range(rounds + 1):
        for row in rows:
            # Whoever comes second finds the machine in another state, so the order changes.
            order = brokers if number % 2 else brokers[::-1]
            others = Others()
            measured = _measure(row, [one for one in order if (row.name, one.name) not in results.failures], share)
            used = others.share()
            for broker, figures in measured.items():
                if isinstance(figures, Exception):
                    results.failures[row.name, broker] = told = str(figures)
                else:
                    told = ", ".join(f"{metric} {value:.4g}" for metric, value in figures.items())
                    if number:
                        results.add(row.name, broker, figures, used)
                print(f"{time.monotonic() - began:6.1f} s  round {number}  {broker:8} {row.name}: {told}", flush=True)
            if used > BUSY:
                print(f"          others took {used:.0%} of the machine meanwhile", flush=True)


def _measure(row: Row, brokers: Sequence[Broker], share: float) -> dict[str, Figures | Exception]:
    """Run a row once against all brokers, a part of its load each in turns; what each measured, or why it failed."""
    measured: dict[str, Figures | Exception] = {}
    running = {broker.name: row.steps(broker, share) for broker in brokers}
    while running:
        for name, steps in list(running.items()):
            try:
                next(steps)
            except StopIteration as end:
                measured[name] = end.value
                del running[name]
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                measured[name] = error
                del running[name]
    return measured


def _write(results: Results, options: argparse.Namespace, path: Path) -> None:
    """Print the results and keep them, with those that were there before if that is wanted."""
    if options.into:
        path = options.into
        if path.exists():
            newer, results = results, Results.load(path)
            results.replace(newer, [row.name for row in ROWS + COMBINATIONS])
    _print_table(results, options)
    path.parent.mkdir(parents=True, exist_ok=True)
    results.save(path)
    print(f"\nwritten: {path}")
    if not options.against:
        title = f"{results.about['date'][:10]}, {results.about['machine']}, {results.about['rounds']} rounds"
        write_chart(path.with_suffix(".svg"), results.lines(), title)
        print(f"         {path.with_suffix('.svg')}")


def _print_table(results: Results, options: argparse.Namespace) -> None:
    measured = {broker for brokers in results.rows.values() for broker in brokers}
    print("\n" + ", ".join(f"{key} {value}" for key, value in results.about.items()) + "\n")
    if OTHER_TREE in measured:
        print(comparison(results))
    else:
        names = [name for name in (OURS, THEIRS, *sorted(BROKERS)) if name in measured]
        write = markdown if options.markdown else table
        print(matrix(results) if options.combinations else write(results, list(dict.fromkeys(names))))


def _allow_files() -> None:
    """Let this process and the brokers have as many files as rows need, or else as many as the system grants."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, FILES), max(hard, FILES)))
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    raise SystemExit(main())
