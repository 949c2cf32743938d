"""Logs for tests: their settings, records that can be told apart, and an operating system that fails when told to."""

import errno
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from odradek.log.deletion import Deletions
from odradek.log.files import FileCache, Files
from odradek.log.log import Log
from odradek.log.recover import open_log
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType, control_record
from odradek_protocol.records.read import read_records

NOW_MS = 1_700_000_000_000
FOREVER = 2**63 - 1
EVERYTHING = 1 << 30

SYNC_DEADLINE_S = 30
"""How long a test may hold a flush."""


@dataclass
class LogSettings:
    """Kafka's defaults, but for small segments and index intervals, so that small logs have several of both."""

    cleanup_policy: list[str] = field(default_factory=lambda: ["delete"])
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    index_interval_bytes: int = 256
    max_compaction_lag_ms: int = FOREVER
    max_decompressed_message_bytes: int = 2_147_483_639
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1 << 20
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000


class FaultyFiles(Files):
    """Files whose next calls fail as told: by the name of the call, the number of bytes or the error."""

    def __init__(self) -> None:
        self.write_limit: int | None = None
        """Bytes that may still be written; then the disk is full."""
        self.broken: set[str] = set()
        """Names of calls that fail with EIO."""
        self.cold = False
        """Whether nothing is in memory: everything has to be read from the disk."""
        self.calls: list[str] = []

    def _check(self, call: str) -> None:
        self.calls.append(call)
        if call in self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._check("pwrite")
        if self.write_limit is None:
            return os.pwrite(fd, data, position)
        if self.write_limit == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.pwrite(fd, memoryview(data)[: self.write_limit], position)
        self.write_limit -= written
        return written

    def pread(self, fd: int, size: int, position: int) -> bytes:
        self._check("pread")
        return os.pread(fd, size, position)

    def peek(self, fd: int, size: int, position: int) -> bytearray | None:
        self._check("peek")
        return None if self.cold else super().peek(fd, size, position)

    def fsync(self, fd: int) -> None:
        self._check("fsync")
        os.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self._check("fdatasync")
        os.fdatasync(fd)

    def rename(self, old: str, new: str) -> None:
        self._check("rename")
        os.replace(old, new)

    def link(self, path: str, name: str) -> None:
        self._check("link")
        os.link(path, name)

    def ftruncate(self, fd: int, size: int) -> None:
        self._check("ftruncate")
        os.ftruncate(fd, size)


class HeldFiles(Files):
    """Files whose fdatasync begins when it is let, and may fail."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.error: int | None = None
        self.count = 0

    def fdatasync(self, fd: int) -> None:
        self.count += 1
        assert self.let.wait(SYNC_DEADLINE_S)
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        os.fdatasync(fd)


class Opener:
    """Opens logs below a folder, as a broker does when it starts."""

    def __init__(self, folder: Path | str, files: Files | None = None) -> None:
        self.folder = folder
        self.files = files or Files()
        self.cache = FileCache(100)
        self.deletions = Deletions(self.files)
        self.config = LogSettings()

    def __call__(
        self, name: str = "t-0", *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0
    ) -> Log:
        return open_log(
            os.path.join(self.folder, name),
            self.config,
            files=self.files,
            cache=self.cache,
            now_ms=NOW_MS,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            deletions=self.deletions,
        )


def records(
    *values: bytes,
    timestamp_ms: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
    codec: Codec = Codec.NONE,
    key: bytes | None = b"k",
) -> memoryview:
    """A batch of these values, all with one timestamp, as a leader gets it. Without a `key` each has its first word."""
    producer_id, epoch, sequence = producer
    new = [
        NewRecord(value.partition(b" ")[0] if key is None else key, value, timestamp_ms=timestamp_ms)
        for value in values
    ]
    return memoryview(
        build_batch(
            new,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=attributes,
            codec=codec,
        )
    )


def marker(kind: ControlType, producer_id: int, epoch: int, coordinator_epoch: int = 0) -> memoryview:
    """The end of a transaction, as a coordinator writes it."""
    record = control_record(kind, coordinator_epoch, NOW_MS)
    return memoryview(build_batch([record], producer_id=producer_id, producer_epoch=epoch, attributes=0x30))


def contents(log: Log) -> list[tuple[int, bytes | None]]:
    """Offset and value of every record that can be read."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while (piece := log.read(offset, EVERYTHING, log.log_end_offset, at_least_one=True)) is not None:
        data = memoryview(piece.read_bytes())
        for position, batch in iter_batches(data):
            inside = read_records(data[position : position + batch.size])
            found += [(record.offset, record.value) for record in inside if record.offset >= log.log_start_offset]
        offset = piece.next_offset
    return found


def check_indexes(log: Log) -> None:
    """Check that every index entry of every segment says something true."""
    for segment in log.segments:
        batches = dict(segment.walk(0))
        offsets, times = segment.indexes.offsets, segment.indexes.times
        for offset, position in zip(offsets.offsets, offsets.positions, strict=True):
            assert batches[position].last_offset == segment.base_offset + offset
        for timestamp, offset in zip(times.timestamps, times.offsets, strict=True):
            before = [batch for batch in batches.values() if batch.last_offset <= segment.base_offset + offset]
            assert max(batch.max_timestamp for batch in before) == timestamp
