"""A log folder, what may happen to its files, and what a start makes of them.

Invariants, which `check_start` holds: opening raises nothing but LogFolderError, and that only for a damaged
meta.properties; later calls raise nothing but BrokerError. Every record before the damage is there and as it was. A new
record gets an offset behind all that are there, and is there after the next start.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from odradek.log import checkpoints
from odradek.log.errors import LogFolderError
from odradek.log.files import Files
from odradek.log.log import Log, Origin
from odradek.log.store import LogStore
from odradek_protocol.errors import BrokerError, ProtocolError
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.control import ControlType
from odradek_protocol.records.read import read_records
from support.logs import EVERYTHING, NOW_MS, LogSettings, marker, records

TOPIC_ID = bytes(range(16))
FIRST_OFFSET = 5
"""Where the log begins: records before it were deleted by a request."""
NEW = b"written after the damage"


class Config:
    """Small segments, of which the log has several."""

    num_recovery_threads_per_data_dir = 2
    cordoned_log_dirs: Sequence[str] = ()

    def topic_config(self, overrides: Mapping[str, str]) -> LogSettings:
        assert not overrides
        return LogSettings(segment_bytes=900, index_interval_bytes=100)


class Clock:
    def now_ms(self) -> int:
        return NOW_MS


@dataclass(frozen=True)
class Template:
    """A log folder as a stop or a crash left it."""

    folder: Path
    values: dict[int, bytes]
    end_offset: int

    @property
    def files(self) -> list[str]:
        """Its files, by their paths inside it."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name != ".lock")
        return [str(path.relative_to(self.folder)) for path in paths]


def open_store(folder: Path) -> LogStore:
    return LogStore.open([str(folder)], Config(), 1, Clock())


def fill(store: LogStore) -> None:
    """Records of two epochs, with and without producers, and an aborted transaction."""
    log = store.get_or_create("t", 0, TOPIC_ID, Config().topic_config({}))
    for number in range(12):
        log.append_as_leader(records(b"plain %d" % number * 8, timestamp_ms=NOW_MS + number), 0, NOW_MS, Origin.CLIENT)
        log.append_as_leader(records(b"one", b"two", producer=(7, 0, 2 * number)), 0, NOW_MS, Origin.CLIENT)
    log.append_as_leader(records(b"undone", producer=(8, 0, 0), attributes=0x10), 1, NOW_MS, Origin.CLIENT)
    log.append_as_leader(marker(ControlType.ABORT, 8, 0), 1, NOW_MS, Origin.COORDINATOR)
    flush = log.prepare_flush(log.segments[1].next_offset)
    flush.run()
    log.flush_done(flush)
    log.increment_log_start_offset(FIRST_OFFSET)
    store.checkpoint({("t", 0): log.log_end_offset})
    for number in range(12):
        log.append_as_leader(records(b"later %d" % number * 8, timestamp_ms=NOW_MS + number), 1, NOW_MS, Origin.CLIENT)


def make_template(folder: Path, *, crash: bool) -> Template:
    """Fill a new folder, and leave it as a stop or a crash does."""
    store = open_store(folder)
    store.identify("cluster")
    fill(store)
    log = store.logs["t", 0]
    values = dict(read(log))
    end_offset = log.log_end_offset
    assert len(log.segments) > 4
    if crash:
        log.segments[-1].save_indexes()
        store.abandon()
    else:
        store.close({("t", 0): end_offset})
    return Template(folder, values, end_offset)


def read(log: Log) -> Iterator[tuple[int, bytes]]:
    """Offset and value of the records, up to the first that cannot be read.

    As a consumer does, it passes over what lies before its position: a batch's offset is outside its CRC, and segments
    are not looked through after a clean stop.
    """
    offset = position = log.log_start_offset
    try:
        while (piece := log.read(offset, EVERYTHING, log.log_end_offset, at_least_one=True)) is not None:
            data = memoryview(piece.read_bytes())
            for start, batch in iter_batches(data):
                for record in read_records(data[start : start + batch.size]):
                    if record.offset >= position:
                        yield record.offset, record.value or b""
                        position = record.offset + 1
            if piece.next_offset <= offset:
                return
            offset = piece.next_offset
    except (BrokerError, ProtocolError):
        return


def first_lost(template: Template, name: str, position: int) -> int:
    """The first offset that damage at `position` of a file may cost."""
    if not name.endswith(".log"):
        return template.end_offset
    data = memoryview((template.folder / name).read_bytes())
    next_offset = 0
    for start, batch in iter_batches(data):
        if position < start + batch.size:
            return batch.base_offset
        next_offset = batch.last_offset + 1
    return next_offset


def moved_start(folder: Path) -> int | None:
    """Where the log starts by its checkpoint, which has no checksum: digits that became others are believed."""
    offsets = checkpoints.read_offsets(Files(), str(folder / checkpoints.LOG_START_OFFSETS))
    return offsets.get(("t", 0))


def check_start(template: Template, folder: Path, name: str, lost: int) -> None:
    """Start with a copy of the template whose file `name` is damaged, at the cost of records from `lost` on at most."""
    start = moved_start(folder)
    try:
        store = open_store(folder)
    except LogFolderError:
        assert name == "meta.properties"
        return
    log = store.logs["t", 0]
    if start is None or start <= template.end_offset:
        assert log.log_start_offset == max(start or 0, log.segments[0].base_offset)
        found = dict(read(log))
        kept = {offset: value for offset, value in template.values.items() if log.log_start_offset <= offset < lost}
        assert {offset: value for offset, value in found.items() if offset in kept} == kept
        assert log.log_end_offset >= lost
        if lost == template.end_offset:
            assert log.log_end_offset == lost
    check_append(folder, store, log)


def check_append(folder: Path, store: LogStore, log: Log) -> None:
    end_offset = log.log_end_offset
    result = log.append_as_leader(records(NEW), log.latest_epoch, NOW_MS, Origin.CLIENT)
    assert result.base_offset == end_offset
    store.close()
    reopened = open_store(folder)
    try:
        again = reopened.logs["t", 0]
        assert again.log_end_offset == end_offset + 1
        piece = again.read(end_offset, EVERYTHING, end_offset + 1, at_least_one=True)
        assert piece is not None
        (value,) = [record.value for record in read_records(memoryview(piece.read_bytes()))]
        assert value == NEW
    finally:
        reopened.abandon()
