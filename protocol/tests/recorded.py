"""Frames that real clients sent (`corpus/`, recorded by compat-tests/record_frames.py)."""

from dataclasses import dataclass
from pathlib import Path

from odradek_protocol.schema import apis

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Recorded:
    """A request as a client sent it, without the frame's size."""

    client: str
    key: int
    version: int
    frame: bytes

    def __str__(self) -> str:
        return f"{self.client}-{apis[self.key].name if self.key in apis else self.key}-{self.version}"


def load_corpus() -> list[Recorded]:
    """All of them, in the order of clients, APIs and versions."""
    found = []
    for file in sorted(CORPUS.glob("*.txt")):
        for line in file.read_text().splitlines():
            key, version, frame = line.split()
            found.append(Recorded(file.stem, int(key), int(version), bytes.fromhex(frame)))
    return found
