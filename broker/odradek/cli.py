"""The command line: `odradek serve [server.properties] [--override key=value]...`.

What a wrong setting costs is one line on standard error and exit status 1. The broker itself is imported only when
it is to be started.
"""

import argparse
import logging
import sys
from collections.abc import Sequence

from odradek import __version__

__all__ = ["main"]

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what `arguments` (those of the process unless given) say; the exit status."""
    options = parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    return serve(options.properties, options.override)


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
    command.add_argument("properties", nargs="?", metavar="server.properties", help="settings by Kafka's names")
    command.add_argument(
        "--override", action="append", default=[], metavar="key=value", help="a setting that wins over the file's"
    )
    return top


def serve(properties: str | None, overrides: Sequence[str]) -> int:
    """Run a broker until it is told to stop; the exit status."""
    from odradek.config import ConfigError, load  # noqa: PLC0415 - `--version` and `--help` need none of it

    try:
        config = load(properties, overrides)
    except ConfigError as error:
        print(f"odradek: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return 1
    from odradek.node import StartError, run  # noqa: PLC0415 - a wrong setting is told before the broker is loaded

    try:
        run(config)
    except StartError as error:
        print(f"odradek: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return 1
    return 0
