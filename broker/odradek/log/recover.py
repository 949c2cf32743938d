"""Opening a log: what is on the disk becomes a `Log`, and what a crash left behind is put right.

- After a clean shutdown the files are believed; the last segment's tail is walked for the offset behind it.
- Otherwise every segment from the recovery point on is read whole. Where a batch is cut short, its CRC is wrong or its
  offset does not follow (a block that was never written, a block of nonsense), the segment is cut at that batch, and
  all later segments are deleted: offsets may have been lost there. So are those that begin before the one before them
  ends: a crash brought them back after they had been deleted. Indexes, producers and epochs are made anew from what is
  sound. Nothing before the damage is lost.
- Files of an interrupted deletion (.deleted) are removed. For those of a compaction see `compaction.replacement`.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from odradek.log.compaction import replacement
from odradek.log.deletion import DELETED_SUFFIX, Deletions
from odradek.log.files import FileCache, Files
from odradek.log.log import Log
from odradek.log.segment import INDEX_SUFFIXES, MAX_RELATIVE_OFFSET, Segment, file_name
from odradek.log.snapshots import remove_after
from odradek.log.validation import read_end_marker
from odradek_protocol.errors import BrokerError, ProtocolError
from odradek_protocol.records.batch import HEADER_SIZE, MAGIC, RecordBatch
from odradek_protocol.records.formats import SMALLEST_BATCH, any_crc_matches, read_any_header

if TYPE_CHECKING:
    from odradek.log.config import LogConfig

__all__ = ["bytes_to_recover", "open_log", "parse_directory_name"]

logger = logging.getLogger(__name__)

_SCAN_BYTES = 1 << 20
"""Read at once while recovering."""


def parse_directory_name(name: str) -> tuple[str, int] | None:
    """Topic and partition of a log's folder; None for a folder that is none."""
    topic, dash, index = name.rpartition("-")
    return (topic, int(index)) if dash and topic and index.isdecimal() else None


def open_log(
    directory: str,
    config: "LogConfig",
    *,
    files: Files,
    cache: FileCache,
    now_ms: int,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    deletions: Deletions | None = None,
    on_recovered: Callable[[int], None] | None = None,
) -> Log:
    """Open the log in `directory`, named `topic-partition`; where there is none, a new one is made.

    `clean` says that it was closed, `recovery_point` up to where it is on the disk for certain, `log_start_offset`
    where it began. `deletions` takes what it deletes from now on; `on_recovered` is called with the size of each
    segment that was read whole. Raises OSError.
    """
    name = parse_directory_name(os.path.basename(directory))
    if name is None:
        raise ValueError(f"{directory} is not the folder of a partition")
    there = files.exists(directory)
    log = Log(directory, *name, config, files, cache, deletions or Deletions(files), synced=clean and there)
    if not there:
        files.mkdir(directory)
        _start_empty(log, files, cache, log_start_offset, now_ms)
        return log
    segments = _load_segments(directory, files, cache)
    log.epochs.load()
    if segments and not clean:
        segments = _recover(log, segments, files, cache, recovery_point, on_recovered)
    if segments:
        log.adopt_segments(segments)
        if clean:
            segments[-1].reopen_for_append()
        log.log_end_offset = segments[-1].next_offset
    if not segments or log.log_end_offset < log_start_offset:
        if segments:
            logger.warning(
                "%s ends at offset %d, before its start at %d: its segments are deleted",
                directory,
                log.log_end_offset,
                log_start_offset,
            )
            _remove(segments, files)
        log.epochs.clear()
        remove_after(files, directory, -1)
        _start_empty(log, files, cache, log_start_offset, now_ms)
    log.log_start_offset = max(log_start_offset, log.segments[0].base_offset)
    log.recovery_point = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
    log.epochs.truncate_from_end(log.log_end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    remove_after(files, directory, log.log_end_offset)
    if clean:
        log.reload_producers()
    return log


def _start_empty(log: Log, files: Files, cache: FileCache, offset: int, now_ms: int) -> None:
    segment = Segment(log.directory, offset, files, cache, now_ms)
    segment.create()
    log.adopt_segments([segment])
    log.log_start_offset = log.log_end_offset = log.recovery_point = offset


def _load_segments(directory: str, files: Files, cache: FileCache) -> list[Segment]:
    for name in files.names(directory):
        if name.endswith((DELETED_SUFFIX, ".tmp")):
            files.unlink(os.path.join(directory, name))
    replacement.finish_interrupted(directory, files, cache)
    names = files.names(directory)
    bases = _bases(names)
    for name in names:
        stem, suffix = os.path.splitext(name)
        if suffix in INDEX_SUFFIXES and stem.isdecimal() and int(stem) not in bases:
            logger.warning("%s/%s belongs to no segment, and is removed", directory, name)
            files.unlink(os.path.join(directory, name))
    segments = [Segment.of_file(directory, base, files, cache) for base in bases]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    return segments


def bytes_to_recover(directory: str, recovery_point: int, files: Files) -> int:
    """How many bytes are read to recover the log in `directory`. Raises OSError."""
    bases = _bases(files.names(directory))
    from_point = bases[max(bisect_right(bases, recovery_point) - 1, 0) :]
    return sum(files.size(os.path.join(directory, file_name(base, ".log"))) for base in from_point)


def _recover(
    log: Log,
    segments: list[Segment],
    files: Files,
    cache: FileCache,
    recovery_point: int,
    on_recovered: Callable[[int], None] | None,
) -> list[Segment]:
    """Read the segments from the recovery point on; gives those that are left."""
    bases = [segment.base_offset for segment in segments]
    first = max(bisect_right(bases, recovery_point) - 1, 0)
    sound = segments[:first]
    log.log_end_offset = bases[first]
    if sound:
        log.adopt_segments(sound)
    # Later ones may be of records that were cut off before the crash.
    remove_after(files, log.directory, bases[first])
    log.reload_producers()
    for number, segment in enumerate(segments[first:], first):
        if sound and segment.base_offset < sound[-1].next_offset:
            logger.warning("%s begins before offset %d, the end of the one before", segment.path, sound[-1].next_offset)
            _give_up(log, segments[number:], files)
            break
        recovered = _recover_segment(log, segment, files, cache)
        sound.append(recovered)
        if on_recovered is not None:
            on_recovered(segment.size)
        if recovered.size < segment.size:
            logger.warning(
                "%s is damaged at position %d: %d bytes from offset %d on are cut off",
                segment.path,
                recovered.size,
                segment.size - recovered.size,
                recovered.next_offset,
            )
            _give_up(log, segments[number + 1 :], files)
            break
    for segment in sound[first:-1]:
        segment.seal()
    log.files_changed(sound[max(first - 1, 0) :])
    return sound


def _give_up(log: Log, segments: list[Segment], files: Files) -> None:
    """Delete the segments behind a damage."""
    if segments:
        logger.warning("%s: %d later segments are deleted", log.directory, len(segments))
        _remove(segments, files)


def _recover_segment(log: Log, segment: Segment, files: Files, cache: FileCache) -> Segment:
    """A segment of the sound batches at the beginning of `segment`, with everything that is known of them."""
    sound = Segment(log.directory, segment.base_offset, files, cache, segment.created_ms)
    interval = log.config.index_interval_bytes
    for data, batch in _sound_batches(segment, files):
        marker = read_end_marker(data) if batch.is_control else None
        last_offset = batch.last_offset
        sound.publish(batch.size, last_offset, batch.max_timestamp, last_offset, interval)
        if batch.partition_leader_epoch > log.epochs.latest:
            log.assign_epoch(batch.partition_leader_epoch, batch.base_offset)
        if batch.producer_id >= 0:
            log.account_for(sound, batch, batch.base_offset, marker)
    segment.discard()
    if sound.size < segment.size:
        sound.tear()
        sound.open()
    sound.indexes.create()
    return sound


def _sound_batches(segment: Segment, files: Files) -> Iterator[tuple[memoryview, RecordBatch]]:
    """The batches of a segment file, up to the first one that is not whole, not right, or not in order."""
    handle, end = segment.open(), segment.size
    window, start, position = memoryview(b""), 0, 0
    expected = segment.base_offset
    while position + SMALLEST_BATCH <= end:
        if position + HEADER_SIZE > start + len(window):
            window, start = memoryview(files.read_at(handle.fd, min(_SCAN_BYTES, end - position), position)), position
        try:
            batch = read_any_header(window, position - start)
        except ProtocolError:
            return
        if position + batch.size > end:
            return
        if position + batch.size > start + len(window):
            size = min(max(_SCAN_BYTES, batch.size), end - position)
            window, start = memoryview(files.read_at(handle.fd, size, position)), position
        if not _is_sound(window, position - start, batch, expected, segment.base_offset):
            return
        yield window[position - start : position - start + batch.size], batch
        expected = batch.last_offset + 1
        position += batch.size


def _is_sound(window: memoryview, position: int, batch: RecordBatch, expected: int, base_offset: int) -> bool:
    if (
        not 0 <= batch.magic <= MAGIC
        or batch.base_offset < expected
        or batch.last_offset_delta < 0
        or batch.last_offset - base_offset > MAX_RELATIVE_OFFSET
        or not any_crc_matches(window, position, batch)
    ):
        return False
    if batch.is_control:
        try:
            read_end_marker(window[position : position + batch.size])
        except BrokerError:
            return False
    return True


def _bases(names: list[str]) -> list[int]:
    """The base offsets of the segments among the names of a folder's files."""
    return sorted(
        int(name[: -len(".log")]) for name in names if name.endswith(".log") and name[: -len(".log")].isdecimal()
    )


def _remove(segments: list[Segment], files: Files) -> None:
    for segment in segments:
        segment.discard()
        for path in segment.existing_files():
            files.unlink(path)
