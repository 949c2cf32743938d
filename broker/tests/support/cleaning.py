"""Rounds of compaction in the test's own process, and what a log holds then."""

from contextlib import closing
from typing import NamedTuple

from odradek.log.compaction.choice import examine
from odradek.log.compaction.cleaner import Cleaner
from odradek.log.compaction.requests import Cleaned, CleanRequest, decode, encode
from odradek.log.compaction.rounds import Round
from odradek.log.files import Files
from odradek.log.log import Log
from odradek_protocol.records.batch import RecordBatch, iter_batches
from odradek_protocol.records.read import read_records
from support.logs import EVERYTHING, NOW_MS

PLENTY = 1 << 20


class Crash(Exception):  # noqa: N818 - no error of the code under test
    """The broker's process is gone."""


class CrashingFiles(Files):
    """Files of a process that is gone after `left` more changes."""

    left: int | None = None

    def _change(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise Crash
            self.left -= 1

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._change()
        return Files.pwrite(fd, data, position)

    def fsync(self, fd: int) -> None:
        """What is written outlives a process without it."""

    def rename(self, old: str, new: str) -> None:
        self._change()
        Files.rename(old, new)

    def unlink(self, path: str) -> None:
        self._change()
        Files.unlink(path)

    def ftruncate(self, fd: int, size: int) -> None:
        self._change()
        Files.ftruncate(fd, size)


class Held(NamedTuple):
    """A record that a log holds, with what compaction must not change of it."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    leader_epoch: int
    producer_id: int


def make_round(log: Log, now_ms: int = NOW_MS, *, memory_bytes: int = PLENTY) -> tuple[Round, CleanRequest]:
    """A round of all that may be cleaned of `log`, and its request after the way over a pipe."""
    candidate = examine(log, log.last_stable_offset(log.log_end_offset), now_ms)
    assert candidate is not None
    current = Round(candidate)
    request = current.request(now_ms, memory_bytes=memory_bytes, load_factor=0.9, chunk_bytes=4096, bytes_per_s=1e9)
    sent = decode(encode(request))
    assert isinstance(sent, CleanRequest)
    assert sent == request
    return current, sent


def clean(log: Log, now_ms: int = NOW_MS, *, memory_bytes: int = PLENTY, files: Files | None = None) -> Cleaned:
    """Clean what may be cleaned of `log`, as the broker and its process do together."""
    current, request = make_round(log, now_ms, memory_bytes=memory_bytes)
    with closing(Cleaner(request, files or Files(), lambda _: None).run()) as answers:
        for answer in answers:
            if isinstance(answer, Cleaned):
                current.finish(answer)
                return answer
            assert current.replace(answer.base_offsets, now_ms)
    raise AssertionError("the round did not end")


def batches(log: Log) -> list[tuple[RecordBatch, bytes]]:
    """Every batch that can be read, by the way that a consumer goes."""
    found: list[tuple[RecordBatch, bytes]] = []
    offset = log.log_start_offset
    while (piece := log.read(offset, EVERYTHING, log.log_end_offset, at_least_one=True)) is not None:
        data = piece.read_bytes()
        found += [(batch, data[position : position + batch.size]) for position, batch in iter_batches(data)]
        offset = piece.next_offset
    return found


def held(log: Log) -> list[Held]:
    """Every record of clients that can be read."""
    return [
        Held(
            record.offset,
            record.key,
            record.value,
            record.timestamp_ms,
            batch.partition_leader_epoch,
            batch.producer_id,
        )
        for batch, data in batches(log)
        if not batch.is_control
        for record in read_records(data)
    ]
