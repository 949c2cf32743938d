"""`python -m fuzzing TARGET`: run a target under atheris for a while, or on one file."""

import argparse
import hashlib
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import atheris

from fuzzing import folders

ROOT = Path(__file__).parents[3]

sys.path[:0] = [str(ROOT / folder) for folder in ("broker/tests", "protocol/tests", "broker", "protocol")]

TARGETS = ("connection", "records", "recovery")
KEPT = ROOT / "build" / "fuzz"

LONGEST_INPUT_BYTES = 4096
MEMORY_MB = 1024
"""Far above what the broker's code takes for such inputs; libFuzzer stops where a process is larger."""
TIMEOUT_S = 60
"""For one input. The machine may be busy; an input of a few kilobytes takes milliseconds."""


def load(name: str) -> Any:
    """Import a target so that atheris sees the branches of all that it tests, and of what is compiled meanwhile."""
    with atheris.instrument_imports(include=["odradek", "odradek_protocol"]):
        target = importlib.import_module(f"fuzzing.{name}")
    codec = importlib.import_module("odradek_protocol.codec")
    for maker in ("_make_decoder", "_make_encoder"):
        setattr(codec, maker, _instrumented(getattr(codec, maker)))
    return target


def _instrumented(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: atheris.instrument_func(make(*arguments))


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzzing", description="Look for inputs that break an invariant.")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("file", nargs="?", help="an input to run alone")
    parser.add_argument("--minutes", type=float, default=5)
    given = parser.parse_args()
    target = load(given.target)
    if given.file is not None:
        target.check(Path(given.file).read_bytes())
        return
    corpus = KEPT / given.target
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    options = {
        "max_total_time": round(given.minutes * 60),
        "max_len": LONGEST_INPUT_BYTES,
        "rss_limit_mb": MEMORY_MB,
        "timeout": TIMEOUT_S,
        "artifact_prefix": f"{KEPT / given.target}-",
        "print_final_stats": 1,
    }
    run([*(f"-{key}={value}" for key, value in options.items()), str(corpus)], target)


def run(arguments: list[str], target: Any) -> NoReturn:
    """Let a child do it, as libFuzzer ends its process without a chance to remove the target's files."""
    folders.base()
    child = os.fork()
    if child == 0:
        atheris.Setup([sys.argv[0], *arguments], target.check)
        atheris.Fuzz()
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
