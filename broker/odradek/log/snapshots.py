"""Snapshots of a log's producers, so that a start does not read the whole log again.

NNN.snapshot holds the state as it is once everything below offset NNN is accounted for:

    version int16 (1) | crc uint32 | count int32 | count times:
        producer_id int64 | producer_epoch int16 | last_sequence int32 | last_offset int64 | offset_delta int32
        | timestamp int64 | coordinator_epoch int32 | txn_first_offset int64

The CRC-32C covers everything behind it. Of the cached batches only the last one is kept. A snapshot is made when a
segment begins and when the log is closed. Source: Kafka's ProducerSnapshot.
"""

import logging
import os
import struct

from odradek.log.files import Files
from odradek.log.producers import CachedBatch, Producer, Producers
from odradek.log.segment import file_name
from odradek.log.segments import SegmentList
from odradek.log.validation import read_end_marker
from odradek_protocol.records.batch import CONTROL
from odradek_protocol.records.checksum import crc32c

__all__ = [
    "SUFFIX",
    "decode",
    "encode",
    "load_newest",
    "offsets_of",
    "reload",
    "remove_after",
    "remove_superfluous",
    "save",
]

logger = logging.getLogger(__name__)

SUFFIX = ".snapshot"

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
_CRC_START = 6
_NO_SEQUENCE = -1
_NO_OFFSET = -1


def encode(producers: Producers) -> bytes:
    """A snapshot file's content."""
    entries = []
    for producer in producers.by_id.values():
        last = producer.batches[-1] if producer.batches else CachedBatch(_NO_SEQUENCE, _NO_OFFSET, 0, -1)
        entries.append(
            _ENTRY.pack(
                producer.producer_id,
                producer.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.txn_first_offset,
            )
        )
    body = b"".join(entries)
    count = struct.pack(">i", len(entries))
    return _HEAD.pack(_VERSION, crc32c(count + body), len(entries)) + body


def decode(data: bytes) -> list[Producer] | None:
    """The producers of a snapshot file. None when it makes no sense."""
    if len(data) < _HEAD.size:
        return None
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION or crc32c(data[_CRC_START:]) != crc or len(data) != _HEAD.size + count * _ENTRY.size:
        return None
    producers = []
    for entry in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = entry
        producer = Producer(producer_id, epoch)
        producer.last_timestamp = timestamp
        producer.coordinator_epoch = coordinator_epoch
        producer.txn_first_offset = first_offset
        if last_offset >= 0:
            producer.batches.append(CachedBatch(last_sequence, last_offset, offset_delta, timestamp))
        producers.append(producer)
    return producers


def offsets_of(files: Files, directory: str) -> list[int]:
    """The offsets of the snapshots in a folder, ascending."""
    stems = (name[: -len(SUFFIX)] for name in files.names(directory) if name.endswith(SUFFIX))
    return [int(stem) for stem in stems if stem.isdecimal()]


def save(files: Files, directory: str, offset: int, producers: Producers) -> str:
    """Write the snapshot of everything below `offset`; gives its path. Raises OSError."""
    path = os.path.join(directory, file_name(offset, SUFFIX))
    files.replace(path, encode(producers), durable=False)
    return path


def load_newest(files: Files, directory: str, up_to: int, producers: Producers) -> int | None:
    """Load the newest sound snapshot at or before the offset `up_to`; one that makes no sense is removed.

    Gives its offset; None when there was none, and the producers are empty. Raises OSError.
    """
    for offset in reversed(offsets_of(files, directory)):
        if offset > up_to:
            continue
        path = os.path.join(directory, file_name(offset, SUFFIX))
        found = decode(files.read(path))
        if found is not None:
            producers.load(found)
            return offset
        logger.warning("%s makes no sense, and is removed", path)
        files.unlink(path)
    producers.clear()
    return None


def reload(files: Files, directory: str, end_offset: int, segments: SegmentList, producers: Producers) -> None:
    """Build the state of `producers` again: the newest snapshot, and the batches behind it. Raises OSError."""
    start = load_newest(files, directory, end_offset, producers) or 0
    for segment in segments.from_offset(start):
        for position, batch in segment.walk(0):
            if batch.producer_id < 0 or batch.base_offset < start:
                continue
            if not batch.attributes & CONTROL:
                producers.update(batch, batch.base_offset)
            elif (marker := read_end_marker(segment.read(position, batch.size))) is not None:
                producers.end_transaction(batch, batch.base_offset, marker)


def remove_superfluous(files: Files, directory: str, recovery_point: int) -> None:
    """Remove the snapshots that no recovery starts from: all before the newest one at or before `recovery_point`.

    Those that cannot be removed do no harm.
    """
    try:
        before = [offset for offset in offsets_of(files, directory) if offset <= recovery_point]
        for offset in before[:-1]:
            files.unlink(os.path.join(directory, file_name(offset, SUFFIX)))
    except OSError as error:
        logger.warning("%s: superfluous snapshots could not be removed: %s", directory, error)


def remove_after(files: Files, directory: str, offset: int) -> None:
    """Remove the snapshots that were made behind `offset`. Raises OSError."""
    for found in offsets_of(files, directory):
        if found > offset:
            files.unlink(os.path.join(directory, file_name(found, SUFFIX)))
