"""`odradek log dump|verify PATH...`: look at log files without changing them.

A path is a partition's folder, one of `log.dirs`, or a single file. `dump` prints what the files hold, `verify` only
what is wrong with them; both explain each damage and say what a recovery would do about it. The exit status is 0 when
all is sound, 1 when something is damaged, 2 when the command makes no sense.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator

from odradek.log import checkpoints
from odradek.log.files import Files
from odradek.log.folder import CLEAN_SHUTDOWN_FILE
from odradek.log.inspection import (
    Damage,
    Entry,
    base_offsets,
    kind_of,
    read_file,
)
from odradek.log.recover import parse_directory_name
from odradek.log.segment import INDEX_SUFFIXES, file_name

__all__ = ["inspect"]

SOUND, DAMAGED, USAGE = 0, 1, 2


def inspect(options: argparse.Namespace) -> int:
    """Do what the parsed command line says; the exit status."""
    files = Files()
    paths: list[str] = []
    for path in options.paths:
        found = _files_below(files, path) if files.is_directory(path) else [path]
        if not files.exists(path) or not found or (found == [path] and kind_of(path) is None):
            print(f"odradek: {path} is neither a folder with logs nor a file of one", file=sys.stderr)  # noqa: T201 - the answer to a command
            return USAGE
        paths += found
    printer = _Printer(as_json=options.json, entries=options.action == "dump")
    try:
        for path in paths:
            printer.show(path, _with_segments(files, path, options))
        for path in options.paths:
            printer.note(_what_recovery_reads(files, path))
    except OSError as error:
        print(f"odradek: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
        return USAGE
    printer.end(len(paths))
    return DAMAGED if printer.damages else SOUND


def _files_below(files: Files, folder: str) -> list[str]:
    """The files to read in a partition's folder, or in a folder of such folders."""
    names = [os.path.join(folder, name) for name in files.names(folder)]
    found = [path for path in names if kind_of(path) is not None]
    for path in names:
        if parse_directory_name(os.path.basename(path)) is not None and files.is_directory(path):
            found += _files_below(files, path)
    return found


def _with_segments(files: Files, path: str, options: argparse.Namespace) -> Iterator[Entry | Damage]:
    """What a file holds; with a log whose indexes are missing among its damages."""
    yield from read_file(files, path, records=getattr(options, "records", False))
    if kind_of(path) == ".log" and options.paths != [path]:
        stem = path[: -len(".log")]
        for suffix in INDEX_SUFFIXES[:2]:
            if not files.exists(stem + suffix):
                yield Damage(stem + suffix, 0, "the index is missing", "a file", "the index is built from the log")


def _what_recovery_reads(files: Files, path: str) -> str | None:
    """From where a recovery of a partition's folder would read."""
    name = parse_directory_name(os.path.basename(os.path.abspath(path)))
    if name is None or not files.is_directory(path):
        return None
    folder = os.path.dirname(os.path.abspath(path))
    if files.exists(os.path.join(folder, CLEAN_SHUTDOWN_FILE)):
        return f"{path}: was closed, the next start does not recover it; what is damaged is met when it is read"
    point = checkpoints.read_offsets(files, os.path.join(folder, checkpoints.RECOVERY_POINTS)).get(name, 0)
    bases = base_offsets(files.names(path))
    first = max((base for base in bases if base <= point), default=bases[0] if bases else 0)
    return f"{path}: a recovery reads {file_name(first, '.log')} and what follows; the recovery point is {point}"


class _Printer:
    def __init__(self, *, as_json: bool, entries: bool) -> None:
        self._as_json = as_json
        self._entries = entries
        self.damages = 0

    def show(self, path: str, found: Iterator[Entry | Damage]) -> None:
        """Print a file."""
        if self._entries and not self._as_json:
            self._print(f"Dumping {path}")
        for one in found:
            if isinstance(one, Damage):
                self.damages += 1
                self._damage(one)
            elif self._entries:
                self._print(json.dumps({"file": path, **one}) if self._as_json else _line(one))

    def _damage(self, damage: Damage) -> None:
        if self._as_json:
            self._print(json.dumps({"damage": True, **damage._asdict()}))
            return
        self._print(f"DAMAGED {damage.path} at position {damage.position}: {damage.problem}")
        self._print(f"    expected: {damage.expected}")
        self._print(f"    recovery: {damage.recovery}")

    def note(self, text: str | None) -> None:
        """Print a remark for people."""
        if text is not None and not self._as_json:
            self._print(text)

    def end(self, count: int) -> None:
        """Print the sum."""
        self.note(f"{count} files, {self.damages} damages" if self.damages else f"{count} files, all sound")

    def _print(self, line: str) -> None:
        print(line)  # noqa: T201 - the answer to a command


def _line(entry: Entry) -> str:
    indent = "| " if "record" in entry else ""
    return indent + " ".join(f"{name}: {_value(value)}" for name, value in entry.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)
