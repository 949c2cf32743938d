"""The command line.

    odradek serve [server.properties] [--override key=value]...
    odradek adopt TOPICS [server.properties] [--override key=value]...
    odradek log dump|verify PATH...

What a wrong setting costs is one line on standard error and exit status 1. The broker itself is imported only when
it is to be started.
"""

import argparse
import gc
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from odradek import __version__

__all__ = ["main"]

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what `arguments` (those of the process unless given) say; the exit status."""
    options = parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    status: int = options.run(options)
    return status


def parser() -> argparse.ArgumentParser:
    """The command line's syntax."""
    top = argparse.ArgumentParser(prog="odradek", description="A Kafka broker in Python.")
    top.add_argument("--version", action="version", version=f"odradek {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    command = commands.add_parser(
        "serve",
        help="run a broker until SIGTERM or SIGINT",
        description="Run a broker until SIGTERM or SIGINT. Without a file: for development, on 127.0.0.1:9092.",
    )
    _add_settings(command)
    command.set_defaults(run=lambda options: serve(options.properties, options.override))
    command = commands.add_parser(
        "adopt",
        help="take over the folders of a Kafka broker",
        description="Make the topics in a stopped Kafka broker's log.dirs known to Odradek, which `serve` then serves.",
    )
    command.add_argument("topics", metavar="TOPICS", help="file with what `kafka-topics.sh --describe` printed")
    _add_settings(command)
    command.set_defaults(run=lambda options: adopt(options.topics, options.properties, options.override))
    _add_log_commands(commands.add_parser("log", help="look at log files"))
    return top


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument("properties", nargs="?", metavar="server.properties", help="settings by Kafka's names")
    command.add_argument(
        "--override", action="append", default=[], metavar="key=value", help="a setting that wins over the file's"
    )


def _add_log_commands(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(metavar="ACTION", required=True, dest="action")
    for name, text in (
        ("dump", "print what log files hold, and what is wrong with them"),
        ("verify", "tell what is wrong with log files, and what a recovery would do"),
    ):
        action = actions.add_parser(
            name, help=text, description=f"{text.capitalize()}. Exit status: 0 sound, 1 damaged, 2 no such files."
        )
        action.add_argument("paths", nargs="+", metavar="PATH", help="a partition's folder, a log dir, or a file")
        action.add_argument("--json", action="store_true", help="one JSON object a line")
        if name == "dump":
            action.add_argument("--records", action="store_true", help="the records of the batches too")
        action.set_defaults(run=inspect_log)


def inspect_log(options: argparse.Namespace) -> int:
    """Look at log files; the exit status."""
    from odradek.log_command import inspect  # noqa: PLC0415 - serving needs none of it

    return inspect(options)


def serve(properties: str | None, overrides: Sequence[str]) -> int:
    """Run a broker until it is told to stop; the exit status."""
    from odradek.config import ConfigError, load  # noqa: PLC0415 - `--version` and `--help` need none of it

    try:
        config = load(properties, overrides)
    except ConfigError as error:
        print(f"odradek: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return 1
    gc.disable()  # what is imported and made now stays; `run` enables it when the broker has served for a while
    from odradek.node import StartError, run  # noqa: PLC0415 - a wrong setting is told before the broker is loaded

    try:
        run(config)
    except StartError as error:
        print(f"odradek: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return 1
    return 0


def adopt(topics: str, properties: str | None, overrides: Sequence[str]) -> int:
    """Make the topics in a Kafka broker's folders known; the exit status."""
    from odradek import adoption  # noqa: PLC0415 - `--version` and `--help` need none of it
    from odradek.cluster.store import StoreError  # noqa: PLC0415 - likewise
    from odradek.config import ConfigError, load  # noqa: PLC0415 - likewise
    from odradek.log.errors import LogFolderError  # noqa: PLC0415 - likewise

    try:
        described = adoption.read_description(Path(topics).read_text())
        adoption.adopt(load(properties, overrides), described)
    except (ConfigError, adoption.AdoptionError, LogFolderError, StoreError, OSError) as error:
        print(f"odradek: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return 1
    print(f"odradek adopted {len(described)} topics")  # noqa: T201 - likewise
    return 0
