"""Reading the files of a log as they lie there: what they say, what is wrong with them, and what a recovery would do.

Nothing is changed, so that the folder of a running broker can be looked at. What such a broker has in memory only, as
the last entries of the indexes, is not missed. Indexes are read before the log that they point into: an entry is
written behind its batch.

A file is given as entries (mappings from names, in the words of Kafka's DumpLogSegments, to values) and damages.
"""

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from odradek.log import checkpoints, snapshots
from odradek.log.aborted import ABORTED_ENTRY_SIZE, AbortedIndex
from odradek.log.files import FileHandle, Files
from odradek.log.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from odradek.log.segment import INDEX_SUFFIXES, file_name
from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import (
    DELETE_HORIZON,
    HEADER_SIZE,
    MAGIC,
    RecordBatch,
    batch_size,
)
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType, read_control_type
from odradek_protocol.records.formats import MAGIC_AT, SMALLEST_BATCH, any_crc_matches, read_any, read_any_header

__all__ = ["KINDS", "Damage", "Entry", "SegmentReader", "base_offsets", "kind_of", "read_file"]

Entry = dict[str, object]

CHECKPOINTS = {
    checkpoints.LEADER_EPOCHS: ("epoch", "startOffset"),
    checkpoints.RECOVERY_POINTS: ("topic", "partition", "offset"),
    checkpoints.REPLICATION_OFFSETS: ("topic", "partition", "offset"),
    checkpoints.LOG_START_OFFSETS: ("topic", "partition", "offset"),
    checkpoints.CLEANER_OFFSETS: ("topic", "partition", "offset"),
}
KINDS = (".log", *INDEX_SUFFIXES, snapshots.SUFFIX, *CHECKPOINTS)

WITHOUT_CHECKPOINT = {
    checkpoints.LEADER_EPOCHS: "the epochs are read from the batches",
    checkpoints.CLEANER_OFFSETS: "the file is ignored: every log is compacted anew",
}
REBUILT = "the index is built again from the log"


class Damage(NamedTuple):
    """Something wrong at a position of a file: what is there, what was expected, and what a recovery does about it."""

    path: str
    position: int
    problem: str
    expected: str
    recovery: str


class _Place(NamedTuple):
    """Where a batch lies, and what indexes say of it."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def kind_of(path: str) -> str | None:
    """Which of `KINDS` a file is, by its name."""
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    if suffix in KINDS:
        return suffix if stem.isdecimal() else None
    return name if name in CHECKPOINTS else None


def base_offsets(names: list[str]) -> list[int]:
    """The base offsets of the segments in a folder that holds these names."""
    return sorted(int(name[: -len(".log")]) for name in names if kind_of(name) == ".log")


def read_file(files: Files, path: str, *, records: bool) -> Iterator[Entry | Damage]:
    """What a file of one of `KINDS` holds; with `records` the records of a log too. Raises OSError."""
    kind = kind_of(path)
    if kind == snapshots.SUFFIX:
        yield from _read_snapshot(files, path)
    elif kind in CHECKPOINTS:
        yield from _read_checkpoint(files, path, CHECKPOINTS[kind])
    else:
        stem, suffix = os.path.splitext(path)
        segment = SegmentReader(files, os.path.dirname(path), int(os.path.basename(stem)))
        if suffix == ".log":
            yield from segment.read_log(records=records)
        else:
            yield from segment.read_index(suffix)


class SegmentReader:
    """One segment. `next_offset` is the one behind its last sound batch, once the log was read."""

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self._files = files
        self._stem = os.path.join(directory, file_name(base_offset, ""))
        self._places: list[_Place] | None = None

    @property
    def path(self) -> str:
        return self._stem + ".log"

    # -- the log ----------------------------------------------------------------------------------------------------

    def read_log(self, *, records: bool) -> Iterator[Entry | Damage]:
        """The batches up to the first that is damaged, and the damage. Raises OSError."""
        places = []
        for found in self._walk():
            if isinstance(found, Damage):
                yield found
                break
            position, batch, data = found
            places.append(_Place(position, batch.base_offset, batch.last_offset, batch.max_timestamp))
            self.next_offset = batch.last_offset + 1
            yield _describe(position, batch)
            if records:
                yield from self._read_records(position, batch, data)
        self._places = places

    def _walk(self) -> Iterator[tuple[int, RecordBatch, memoryview] | Damage]:
        handle = self._files.open_for_reading(self.path)
        size = self._files.size(self.path)
        position, expected = 0, self.base_offset
        while position < size:
            head = memoryview(self._files.pread(handle.fd, HEADER_SIZE, position))
            try:
                missing = position + _size_of(head) - size
                if missing > 0 and (grown := self._files.size(self.path)) > size:
                    size = grown  # Its broker is at work.
                    continue
                batch = None if missing > 0 else read_any_header(head)
                problem = self._problem(handle, position, batch, expected, missing)
            except ProtocolError as error:
                problem = f"no batch: {error}", "the header of a batch"
            if isinstance(problem, tuple):
                yield Damage(self.path, position, *problem, self._cut(position, size))
                return
            assert batch is not None
            yield position, batch, problem
            position += batch.size
            expected = batch.last_offset + 1

    def _problem(
        self, handle: FileHandle, position: int, batch: RecordBatch | None, expected: int, missing: int
    ) -> tuple[str, str] | memoryview:
        """What is wrong with a batch, and what was expected; the batch's bytes when nothing is."""
        if batch is None:
            return "the file ends within a batch", f"{missing} bytes more"
        if not 0 <= batch.magic <= MAGIC:
            return f"magic {batch.magic}", f"magic {MAGIC}, or an older one"
        if batch.base_offset < expected:
            return f"a batch with base offset {batch.base_offset}", f"an offset of at least {expected}"
        if batch.last_offset_delta < 0:
            return f"a last offset delta of {batch.last_offset_delta}", "none below 0"
        data = memoryview(self._files.read_at(handle.fd, batch.size, position))
        if not any_crc_matches(data, 0, batch):
            return f"the CRC of the batch at offset {batch.base_offset} does not match its bytes", f"{batch.crc:#010x}"
        return data

    def _cut(self, position: int, size: int) -> str:
        directory = os.path.dirname(self.path)
        bases = base_offsets(self._files.names(directory))
        later = len(bases) - bisect_right(bases, self.base_offset)
        lost = f"the log is truncated at position {position}: loses {size - position} bytes"
        return f"{lost} and {later} later segments" if later else lost

    def _read_records(self, position: int, batch: RecordBatch, data: memoryview) -> Iterator[Entry | Damage]:
        try:
            for record in read_any(data):
                entry: Entry = {"record": record.offset, "timestamp": record.timestamp_ms}
                if batch.is_control:
                    kind = read_control_type(record.key)
                    entry["endTxnMarker"] = ControlType(kind).name if kind in list(ControlType) else kind
                else:
                    entry |= {"key": _text(record.key), "value": _text(record.value)}
                if record.headers:
                    entry["headers"] = {name: _text(value) for name, value in record.headers}
                yield entry
        except ProtocolError as error:
            problem = f"the records of the batch at offset {batch.base_offset} cannot be read: {error}"
            yield Damage(
                self.path, position, problem, f"{batch.record_count} records", "nothing: they are as they were sent"
            )

    # -- the indexes ------------------------------------------------------------------------------------------------

    def read_index(self, suffix: str) -> Iterator[Entry | Damage]:
        """The entries of one of the indexes, each compared with the log. Raises OSError."""
        path = self._stem + suffix
        data = self._files.read(path)
        size = {".index": OFFSET_ENTRY_SIZE, ".timeindex": TIME_ENTRY_SIZE, ".txnindex": ABORTED_ENTRY_SIZE}[suffix]
        whole = len(data) - len(data) % size
        if suffix == ".txnindex":
            yield from self._read_aborted(path, data[:whole])
        elif self._files.exists(self.path):
            read = self._read_offsets if suffix == ".index" else self._read_times
            yield from read(path, data[:whole])
        else:
            yield Damage(path, 0, "an index without a log", f"a file {self.path}", "the index is removed")
        if whole < len(data):
            yield Damage(
                path, whole, f"{len(data) - whole} bytes behind the entries", f"entries of {size} bytes", REBUILT
            )

    def places(self) -> list[_Place]:
        """Where the sound batches lie. Raises OSError."""
        if self._places is None:
            for _ in self.read_log(records=False):
                pass
        return self._places or []

    def _read_offsets(self, path: str, data: bytes) -> Iterator[Entry | Damage]:
        by_position = {place.position: place for place in self.places()}
        last = -1
        for number, (relative, at) in enumerate(struct.iter_unpack(">ii", data)):
            offset = self.base_offset + relative
            place = by_position.get(at)
            if place is None:
                yield Damage(path, number * OFFSET_ENTRY_SIZE, f"position {at}", "the start of a sound batch", REBUILT)
            elif place.last_offset != offset or offset <= last:
                problem, expected = f"offset {offset} for position {at}", f"offset {place.last_offset}"
                yield Damage(path, number * OFFSET_ENTRY_SIZE, problem, expected, REBUILT)
            last = offset
            yield {"offset": offset, "position": at}

    def _read_times(self, path: str, data: bytes) -> Iterator[Entry | Damage]:
        largest: list[int] = []
        ends = [place.last_offset for place in self.places()]
        for place in self.places():
            largest.append(max(place.max_timestamp, largest[-1] if largest else -1))
        last = -1
        for number, (timestamp, relative) in enumerate(struct.iter_unpack(">qi", data)):
            offset = self.base_offset + relative
            upto = bisect_right(ends, offset)
            expected = largest[upto - 1] if upto else None
            at = number * TIME_ENTRY_SIZE
            if expected != timestamp:
                wanted = "the offset of a sound batch" if expected is None else f"timestamp {expected}"
                yield Damage(path, at, f"timestamp {timestamp} up to offset {offset}", wanted, REBUILT)
            elif timestamp <= last:
                yield Damage(path, at, f"timestamp {timestamp}", f"one above {last}", REBUILT)
            last = timestamp
            yield {"timestamp": timestamp, "offset": offset}

    def _read_aborted(self, path: str, data: bytes) -> Iterator[Entry | Damage]:
        index = AbortedIndex.parse(data)
        if index is None:
            yield Damage(path, 0, "entries of another version, or out of order", "version 0, ascending", REBUILT)
            return
        for entry in index.entries:
            yield {
                "producerId": entry.producer_id,
                "firstOffset": entry.first_offset,
                "lastOffset": entry.last_offset,
                "lastStableOffset": entry.last_stable_offset,
            }


def _size_of(head: memoryview) -> int:
    """The size of the batch or message that begins with `head`: of its header, where that is cut short.

    Raises ProtocolError at a size that there cannot be.
    """
    if len(head) > MAGIC_AT and head[MAGIC_AT] < MAGIC:
        return read_any_header(head).size if len(head) >= SMALLEST_BATCH else SMALLEST_BATCH
    return batch_size(head) if len(head) == HEADER_SIZE else HEADER_SIZE


def _describe(position: int, batch: RecordBatch) -> Entry:
    codec = batch.codec
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.base_timestamp if batch.attributes & DELETE_HORIZON else None,
        "position": position,
        "CreateTime" if not batch.is_log_append_time else "LogAppendTime": batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": Codec(codec).name.lower() if codec in list(Codec) else codec,
        "crc": batch.crc,
    }


def _read_snapshot(files: Files, path: str) -> Iterator[Entry | Damage]:
    producers = snapshots.decode(files.read(path))
    if producers is None:
        recovery = "the snapshot is removed; the producers are read from an older one and the batches behind it"
        yield Damage(path, 0, "a snapshot whose length or CRC does not match", "a snapshot of version 1", recovery)
        return
    for producer in producers:
        last = producer.batches[-1] if producer.batches else None
        yield {
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": producer.txn_first_offset if producer.txn_first_offset >= 0 else None,
            "lastTimestamp": producer.last_timestamp,
            "lastSequence": last.last_sequence if last else None,
            "lastOffset": last.last_offset if last else None,
        }


def _read_checkpoint(files: Files, path: str, names: tuple[str, ...]) -> Iterator[Entry | Damage]:
    name = os.path.basename(path)
    epochs = name == checkpoints.LEADER_EPOCHS
    recovery = WITHOUT_CHECKPOINT.get(name, "the file is ignored: every log is read whole")
    entries = checkpoints.read_entries(files, path, len(names))
    numbers = [[int(word) for word in entry[-2:] if word.isdecimal()] for entry in entries or []]
    if entries is None or any(len(pair) < 2 for pair in numbers):
        yield Damage(path, 0, "no checkpoint", f"version 0, a count, and lines of {len(names)} words", recovery)
        return
    if epochs and any(one[0] >= other[0] or one[1] > other[1] for one, other in pairwise(numbers)):
        yield Damage(path, 0, "epochs out of order", "ascending epochs and offsets", recovery)
    for entry in entries:
        yield dict(zip(names, (int(word) if word.isdecimal() else word for word in entry), strict=True))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")
