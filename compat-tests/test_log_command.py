"""`odradek log` beside Kafka's `DumpLogSegments`, on the same files: sound ones, and the same ones damaged."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from harness.java import Tools
from harness.versions import KAFKA_4

from odradek.clock import Clock
from odradek.config import BrokerConfig
from odradek.log.log import Origin
from odradek.log.store import LogStore
from odradek_protocol.records.build import NewRecord, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHARED = (
    "baseOffset",
    "lastOffset",
    "count",
    "baseSequence",
    "lastSequence",
    "producerId",
    "producerEpoch",
    "partitionLeaderEpoch",
    "isTransactional",
    "isControl",
    "position",
    "CreateTime",
    "size",
    "magic",
    "compresscodec",
    "crc",
)
"""What both tell of a batch."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    launched = Tools(KAFKA_4, "", tmp_path_factory.mktemp("tools"))
    try:
        yield launched
    finally:
        launched.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The first segment of a log, which is whole and has index entries."""
    config = BrokerConfig({"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "4096"})
    store = LogStore.open([str(tmp_path)], config, 1, Clock())
    made = store.get_or_create("t", 0, bytes(16), config.topic_config({}))
    now_ms = Clock().now_ms()
    for number in range(200):
        new = [NewRecord(b"key", b"x" * 300, timestamp_ms=now_ms + number) for _ in range(2)]
        data = memoryview(build_batch(new, producer_id=7, producer_epoch=0, base_sequence=2 * number))
        made.append_as_leader(data, 3, now_ms, Origin.CLIENT)
    made.roll(now_ms)
    store.close()
    return tmp_path / "t-0" / "00000000000000000000.log"


def ours(path: Path) -> tuple[int, list[dict[str, object]], list[dict[str, object]]]:
    """Exit status, entries and damages of `odradek log dump`."""
    command = [sys.executable, "-m", "odradek", "log", "dump", "--json", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stderr == ""
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return ended.returncode, [one for one in lines if "damage" not in one], [one for one in lines if "damage" in one]


def entries(text: str, names: tuple[str, ...]) -> list[dict[str, str]]:
    """The lines of `DumpLogSegments` that have all of these names."""
    found = [dict(re.findall(r"(\w+): (\S+)", line)) for line in text.splitlines()]
    return [{name: one[name] for name in names} for one in found if all(name in one for name in names)]


def as_text(found: list[dict[str, object]], names: tuple[str, ...]) -> list[dict[str, str]]:
    return [{name: str(one[name]).lower() for name in names} for one in found]


def test_batches(tools: Tools, log: Path) -> None:
    status, found, damages = ours(log)
    assert (status, damages) == (0, [])
    assert as_text(found, SHARED) == entries(tools.run("dump-log", "--files", log).out, SHARED)
    assert len(found) == 200


@pytest.mark.parametrize(
    ("suffix", "names"), [(".index", ("offset", "position")), (".timeindex", ("timestamp", "offset"))]
)
def test_indexes(tools: Tools, log: Path, suffix: str, names: tuple[str, ...]) -> None:
    """An entry changed by one is told by both, and nothing else is."""
    index = log.with_suffix(suffix)
    status, found, damages = ours(index)
    dumped = tools.run("dump-log", "--files", index)
    assert (status, damages, dumped.err) == (0, [], "")
    assert as_text(found, names) == entries(dumped.out, names)
    assert len(found) > 10
    data = bytearray(index.read_bytes())
    changed = 5 * len(data) // len(found) + 7
    data[changed] ^= 1
    index.write_bytes(data)
    status, _, damages = ours(index)
    assert (status, [one["position"] for one in damages]) == (1, [5 * len(data) // len(found)])
    dumped = tools.run("dump-log", "--files", index)
    assert "ismatch" in dumped.err or "Index" in dumped.err


def test_a_damaged_batch(tools: Tools, log: Path) -> None:
    """Both read the same batches before it, and both find it."""
    position = 100 * (log.stat().st_size // 200)
    positions = [int(str(one["position"])) for one in ours(log)[1]]
    broken = max(one for one in positions if one <= position)
    data = bytearray(log.read_bytes())
    data[broken + 100] ^= 1
    log.write_bytes(data)
    status, found, [damage] = ours(log)
    dumped = tools.run("dump-log", "--files", log)
    valid = [line for line in dumped.out.splitlines() if line.endswith("isvalid: true")]
    invalid = entries("\n".join(line for line in dumped.out.splitlines() if "isvalid: false" in line), ("position",))
    assert (status, damage["position"]) == (1, broken)
    assert invalid == [{"position": str(broken)}]
    assert as_text(found, SHARED) == entries("\n".join(valid), SHARED)[: len(found)]


def test_a_torn_tail(tools: Tools, log: Path) -> None:
    whole = ours(log)[1]
    log.write_bytes(log.read_bytes()[:-50])
    status, found, [damage] = ours(log)
    assert (status, found, damage["position"]) == (1, whole[:-1], whole[-1]["position"])
    dumped = tools.run("dump-log", "--files", log)
    assert as_text(found, SHARED) == entries(dumped.out, SHARED)
    lost = int(str(whole[-1]["size"])) - 50
    assert f"Found {lost} invalid bytes at the end of {log.name}" in dumped.out
    assert f"loses {lost} bytes" in str(damage["recovery"])


def test_producers(tools: Tools, log: Path) -> None:
    snapshot = max(log.parent.glob("*.snapshot"))
    names = ("producerId", "producerEpoch", "lastSequence", "lastOffset", "lastTimestamp")
    status, found, _ = ours(snapshot)
    assert status == 0
    assert as_text(found, names[:3]) == entries(tools.run("dump-log", "--files", snapshot).out, names[:3])
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    assert ours(snapshot)[0] == 1
    assert tools.run("dump-log", "--files", snapshot).err != ""
