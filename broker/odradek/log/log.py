"""A log: the records of one partition, in segments.

Rules:

- Check, write, publish. A batch is in the log once all of it is in the file; offset, producers, epochs and transactions
  change only then, and nothing between can fail. A write that fails leaves the log as it was.
- Offsets are given once. They never go back but by `truncate_to`.
- An active segment takes the appends; those before it are sealed and never change, but for compaction.
- What is on the disk for certain ends at `recovery_point`, which moves when an fsync has succeeded. After one that
  failed nobody knows what is on the disk, and the log refuses everything until it is loaded again.
- Not safe against concurrent use, but for `PendingFlush.run`, which is for another thread.
"""

import logging
import os
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.log import retention, snapshots
from odradek.log.aborted import AbortedEntry, AbortedTransaction
from odradek.log.append_result import AppendResult
from odradek.log.compaction.replacement import Replacement
from odradek.log.deletion import Deletions
from odradek.log.epochs import LeaderEpochs
from odradek.log.files import FileCache, Files
from odradek.log.flush import PendingFlush, files_to_flush, prepare_close
from odradek.log.producers import EndMarker, Producers
from odradek.log.segment import LogSlice, Segment
from odradek.log.segments import SegmentList
from odradek.log.timestamps import TimestampOffset
from odradek.log.validation import (
    Origin,
    apply_timestamp_type,
    check_client_batch,
    check_integrity,
    check_keys,
    read_batch,
    read_end_marker,
    read_run,
    recompress_for_topic,
    split_run,
)
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.records.batch import CONTROL, RecordBatch, stamp

if TYPE_CHECKING:
    from odradek.log.config import LogConfig

__all__ = ["AppendResult", "Log", "LogSlice", "Origin", "TimestampOffset"]

logger = logging.getLogger(__name__)

_CLIENT = Origin.CLIENT


class Log:
    """The log of one partition. Made by `recover.open_log`."""

    __slots__ = (
        "_cache",
        "_deletions",
        "_files",
        "_flushed_to",
        "_segments",
        "_unsynced",
        "active",
        "cleaned_offset",
        "config",
        "directory",
        "epochs",
        "failed",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producers",
        "recovery_point",
        "topic",
        "truncations",
        "uncleanable",
    )

    def __init__(
        self,
        directory: str,
        topic: str,
        partition: int,
        config: "LogConfig",
        files: Files,
        cache: FileCache,
        deletions: Deletions,
        *,
        synced: bool = False,
    ) -> None:
        """A log without a segment: `adopt_segments` comes next. `synced` says that all that is there is on the disk."""
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.config = config
        self.epochs = LeaderEpochs(directory, files)
        self.producers = Producers()
        self.log_start_offset = 0
        """The first offset that may be read."""
        self.log_end_offset = 0
        """The offset that the next record gets."""
        self.recovery_point = 0
        """Everything below this offset is on the disk."""
        self.failed: str | None = None
        """Why nothing may be read or written any more."""
        self.cleaned_offset: int | None = None
        """Where the last round of compaction ended; None when there was none."""
        self.uncleanable: str | None = None
        """Why compaction leaves this log alone."""
        self.truncations = 0
        """How often the log lost its end or its place: what was found out of its files before may not hold any more."""
        self.active: Segment
        self._segments = SegmentList()
        self._files = files
        self._cache = cache
        self._unsynced = set() if synced else {directory, os.path.dirname(directory)}
        """Files and folders that changed besides the segments, and are not known to be on the disk."""
        self._flushed_to = 0
        """Where the last flush that was prepared ends."""
        self._deletions = deletions

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, offsets {self.log_start_offset} to {self.log_end_offset})"

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return sum(segment.size for segment in self._segments.items)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is active."""
        return tuple(self._segments.items)

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch that has records here, or was assigned; -1 for none."""
        return self.epochs.latest

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        return self.producers.first_unstable_offset

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset below which consumers of committed records may read: no transaction is open below it, and the
        markers of those that ended are below the high watermark themselves.
        """
        producers = self.producers
        if producers.first_unstable_offset is None and not producers.undecided:
            return high_watermark
        return producers.last_stable_offset(high_watermark)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """See `LeaderEpochs.end_offset_for`."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    # -- appending --------------------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        batch: RecordBatch | None = None,
    ) -> AppendResult:
        """Give one batch the next offsets and write it.

        `batch` is what `read_batch` gave for `records`, where that has been called already. `records` is changed in
        place: offset, leader epoch, and timestamps where the topic asks for it. A repetition of a batch that an
        idempotent producer sent before is not written again: the result is a `duplicate`, with the offsets of the first
        time and, as its append time, the batch's largest timestamp.

        Raises BrokerError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE (larger than a
        segment), INVALID_TIMESTAMP, UNKNOWN_SERVER_ERROR (records that are not what their codec makes),
        INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED,
        KAFKA_STORAGE_ERROR; those about single records are RecordErrors.
        """
        if self.failed is not None:
            raise self._storage_error(self.failed)
        config = self.config
        batch = batch or read_batch(records)
        check_integrity(records, batch, config.max_message_bytes, origin)
        if origin is _CLIENT:
            check_client_batch(records, batch)
        if config.compression_type != "producer":
            records, batch = recompress_for_topic(records, batch, config)
        size = batch.size
        if len(records) != size:
            records = records[:size]
        if origin is _CLIENT and "compact" in config.cleanup_policy:
            check_keys(records, batch, config, f"{self.topic}-{self.partition}")
        append_time_ms = apply_timestamp_type(records, batch, now_ms, config)
        if size > config.segment_bytes:
            raise BrokerError(Error.RECORD_LIST_TOO_LARGE, f"{size} bytes are more than a segment holds")
        marker = None
        if batch.producer_id >= 0:
            if origin is _CLIENT:
                duplicate = self.producers.find_duplicate(batch)
                if duplicate is not None:
                    return AppendResult(
                        duplicate.base_offset,
                        duplicate.last_offset,
                        duplicate.timestamp,
                        self.log_start_offset,
                        duplicate=True,
                    )
                self.producers.check(batch)
            else:
                marker = read_end_marker(records) if batch.attributes & CONTROL else None
                self.producers.check_from_coordinator(batch, marker)
        base_offset = self.log_end_offset
        last_offset = base_offset + batch.last_offset_delta
        stamp(records, 0, base_offset, leader_epoch)
        self._write(records, base_offset, last_offset, batch.max_timestamp, last_offset, now_ms)
        if leader_epoch > self.epochs.latest:
            self.assign_epoch(leader_epoch, base_offset)
        if batch.producer_id >= 0:
            self.account_for(self.active, batch, base_offset, marker)
        return AppendResult(base_offset, last_offset, append_time_ms, self.log_start_offset)

    def append_as_follower(self, records: memoryview, now_ms: int = 0) -> AppendResult:
        """Write the batches that the partition's leader sent, with the offsets and epochs that they have.

        A batch that is cut off at the end is left out; without a whole one, nothing happens and both offsets of the
        result are -1. Raises BrokerError: CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE (they do not follow this log),
        KAFKA_STORAGE_ERROR; batches before the one at fault may have been written then.
        """
        if self.failed is not None:
            raise self._storage_error(self.failed)
        run = read_run(records, self.log_end_offset)
        if not run:
            return AppendResult(-1, -1, -1, self.log_start_offset)
        for part in split_run(run, self.config.segment_bytes):
            self._append_run(records, part, now_ms)
        return AppendResult(run[0][1].base_offset, run[-1][1].last_offset, -1, self.log_start_offset)

    def _append_run(self, records: memoryview, run: list[tuple[int, RecordBatch]], now_ms: int) -> None:
        start, first = run[0]
        position, last = run[-1]
        newest = max((batch for _, batch in run), key=lambda batch: batch.max_timestamp)
        markers = {
            position: read_end_marker(records[position : position + batch.size])
            for position, batch in run
            if batch.attributes & CONTROL
        }
        self._write(
            records[start : position + last.size],
            first.base_offset,
            last.last_offset,
            newest.max_timestamp,
            newest.last_offset,
            now_ms,
        )
        for position, batch in run:
            if batch.partition_leader_epoch > self.epochs.latest:
                self.assign_epoch(batch.partition_leader_epoch, batch.base_offset)
            if batch.producer_id >= 0:
                self.account_for(self.active, batch, batch.base_offset, markers.get(position))

    def _write(
        self,
        records: memoryview,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        now_ms: int,
    ) -> None:
        active = self.active
        config = self.config
        if active.must_roll(len(records), last_offset, max_timestamp, now_ms, config):
            active = self._roll(base_offset, now_ms)
        try:
            active.append(records, last_offset, max_timestamp, max_timestamp_offset, config.index_interval_bytes)
        except OSError as error:
            raise self._storage_error(f"writing at offset {base_offset} failed: {error}") from error
        self.log_end_offset = last_offset + 1

    def account_for(self, segment: Segment, batch: RecordBatch, base_offset: int, marker: EndMarker | None) -> None:
        """Let the producers know of a batch that has been written to `segment`."""
        producers = self.producers
        if marker is None:
            if not batch.attributes & CONTROL:
                producers.update(batch, base_offset)
            return
        ended = producers.end_transaction(batch, base_offset, marker)
        if ended is not None and not marker.committed:
            unstable = producers.first_unstable_offset
            stable = base_offset + 1 if unstable is None else unstable
            segment.indexes.aborted.entries.append(AbortedEntry(*ended, stable))

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that the leader of `epoch` writes from `start_offset` on."""
        self._unsynced |= {self.epochs.path, self.directory}
        try:
            self.epochs.assign(epoch, start_offset)
        except OSError as error:
            # The epochs stand in the batches too, from where a recovery takes them.
            logger.warning("%s could not be written: %s", self.epochs.path, error)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty. Raises KAFKA_STORAGE_ERROR."""
        if self.active.size:
            self._roll(self.log_end_offset, now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        old = self.active
        new = Segment(self.directory, base_offset, self._files, self._cache, now_ms)
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        new.jitter_ms = int(random.random() * jitter_ms)  # noqa: S311 - spreads work, keeps no secret
        try:
            old.seal()
            if base_offset in (self.recovery_point, self._flushed_to):
                # A recovery begins behind `old`, and believes what is there.
                with self.changing("flushing"):
                    old.sync()
            new.create()
            snapshot = snapshots.save(self._files, self.directory, base_offset, self.producers)
        except OSError as error:
            old.sealed = False
            with self.changing("giving up a segment"):
                # A crash would bring it back, beside what is appended to `old`.
                self._remove_segments([new])
                self._files.sync(self.directory)
            raise self._storage_error(f"a segment at offset {base_offset} could not be made: {error}") from error
        self._unsynced |= {self.directory, snapshot, *old.existing_files()}
        empty = [old] if not old.size else []
        self.adopt_segments([segment for segment in self._segments.items if segment not in empty] + [new])
        self._remove_segments(empty)
        return new

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, end_offset: int, at_least_one: bool) -> LogSlice | None:
        """Whole batches from the one that holds `offset` on, all below `end_offset` and in one segment.

        At most `max_bytes`; with `at_least_one` the first batch is given even if it is larger. None when nothing is
        there or fits. Raises OFFSET_OUT_OF_RANGE for an offset before the log's start or behind its end;
        KAFKA_STORAGE_ERROR.
        """
        if not self.log_start_offset <= offset < self.log_end_offset:
            self.check_offset(offset)
            return None
        if offset >= end_offset:
            return None
        if self.failed is not None:
            raise self._storage_error(self.failed)
        try:
            return self._segments.read(offset, max_bytes, end_offset, at_least_one)
        except OSError as error:
            raise self._storage_error(f"reading at offset {offset} failed: {error}") from error

    def check_offset(self, offset: int) -> None:
        """Raise OFFSET_OUT_OF_RANGE for an offset before the log's start or behind its end."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise BrokerError(
                Error.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic}-{self.partition} is not between {self.log_start_offset} and "
                f"{self.log_end_offset}",
            )

    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record, by offset, whose timestamp is at least `timestamp_ms`; None when it is not below
        `end_offset`. Raises KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        with self._reading():
            found = self._segments.find_timestamp(timestamp_ms, self.log_start_offset)
        return found if found is not None and found.offset < end_offset else None

    def max_timestamp(self, end_offset: int) -> TimestampOffset | None:
        """The record with the largest timestamp, the first one among equals; None when it is not below `end_offset`.

        Raises KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        with self._reading():
            found = self._segments.find_max_timestamp()
        return found if found is not None and found.offset < end_offset else None

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `start_offset` to below `end_offset`; in the order of their
        markers. Raises KAFKA_STORAGE_ERROR.
        """
        with self._reading():
            return self._segments.aborted_transactions(start_offset, end_offset)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What goes wrong while reading, as errors for a client."""
        try:
            yield
        except OSError as error:
            raise self._storage_error(f"reading failed: {error}") from error
        except ProtocolError as error:
            raise BrokerError(Error.CORRUPT_MESSAGE, f"{self.directory}: {error}") from error

    # -- shrinking --------------------------------------------------------------------------------------------------

    def increment_log_start_offset(self, offset: int) -> None:
        """Let the log begin at `offset`, if it begins before; the files go with `delete_old_segments`.

        Raises OFFSET_OUT_OF_RANGE behind the end of the log.
        """
        if offset > self.log_end_offset:
            raise BrokerError(
                Error.OFFSET_OUT_OF_RANGE,
                f"{self.topic}-{self.partition} ends at {self.log_end_offset}, it cannot start at {offset}",
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            try:
                self.epochs.truncate_from_start(offset)
            except OSError as error:
                logger.warning("%s could not be written: %s", self.epochs.path, error)

    def delete_old_segments(self, now_ms: int, high_watermark: int | None = None) -> int:
        """Delete the oldest segments that retention gives up; give how many.

        By time (the largest timestamp in a segment), by size, and what lies before the start of the log; the first two
        only where `cleanup.policy` has "delete". Nothing at or above `high_watermark` (None: the log's end) goes. When
        all segments are to go, a new one is begun first. Raises KAFKA_STORAGE_ERROR.
        """
        with self._reading():
            limit = self.log_end_offset if high_watermark is None else min(high_watermark, self.log_end_offset)
            count = retention.count_deletable(self, now_ms, limit)
            if not count:
                return 0
            if count == len(self._segments.items):
                self._roll(self.log_end_offset, now_ms)
            old = self._segments.items[:count]
            self.adopt_segments(self._segments.items[count:])
            self.increment_log_start_offset(self._segments.bases[0])
            self._deletions.retire(old, now_ms + self.config.file_delete_delay_ms)
            snapshots.remove_superfluous(self._files, self.directory, min(self.recovery_point, self.active.base_offset))
        logger.info("%s: %d segments before offset %d are deleted", self.directory, count, self._segments.bases[0])
        return count

    def prepare_replacement(self, old: Sequence[Segment]) -> Replacement:
        """The replacement of `old`, neighbours below the active segment, by the cleaned files named after the first."""
        return Replacement(self._files, old[0].path[: -len(".log")], old)

    def replace_segments(self, replacement: Replacement, now_ms: int) -> None:
        """Put the files of a replacement that has begun in place; it is to be settled then.

        Raises KAFKA_STORAGE_ERROR; the log then fails, and the next start finishes it.
        """
        old = replacement.old
        with self.changing("replacing segments"):
            self._deletions.retire(old, now_ms + self.config.file_delete_delay_ms)
            replacement.show()
            new = Segment.of_file(self.directory, old[0].base_offset, self._files, self._cache)
            new.next_offset = old[-1].next_offset
            self._unsynced.add(self.directory)
            place = self._segments.items.index(old[0])
            self.adopt_segments([*self._segments.items[:place], new, *self._segments.items[place + len(old) :]])

    def truncate_to(self, offset: int) -> None:
        """Drop everything from the batch that holds `offset` on, as a follower that has more than its leader does.

        Raises KAFKA_STORAGE_ERROR; the log then fails, as nobody knows what is left.
        """
        if offset >= self.log_end_offset:
            return
        if offset < self._segments.bases[0]:
            self.truncate_fully_and_start_at(offset)
            return
        with self.changing("truncating"):
            # First: what a crash in the middle leaves has to be read.
            self.recovery_point = min(self.recovery_point, offset)
            keep = bisect_right(self._segments.bases, offset)
            self._remove_segments(self._segments.items[keep:])
            self.adopt_segments(self._segments.items[:keep])
            self.active.truncate_to(offset)
            self._restart_at(self.active.next_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything, and go on at `offset`. Raises KAFKA_STORAGE_ERROR; the log then fails."""
        with self.changing("truncating"):
            self._remove_segments(self._segments.items)
            first = Segment(self.directory, offset, self._files, self._cache, 0)
            first.create()
            self.adopt_segments([first])
            self.log_start_offset = offset
            self.epochs.clear()
            snapshots.remove_after(self._files, self.directory, -1)
            self._restart_at(offset)

    def _restart_at(self, end_offset: int) -> None:
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, end_offset)
        self.truncations += 1
        self.files_changed([self.active])
        self.epochs.truncate_from_end(end_offset)
        snapshots.remove_after(self._files, self.directory, end_offset)
        self.reload_producers()

    @contextmanager
    def changing(self, what: str) -> Iterator[None]:
        """A change of several files: one that fails half way makes the log fail."""
        if self.failed is not None:
            raise self._storage_error(self.failed)
        try:
            yield
        except OSError as error:
            self.failed = f"{what} it failed: {error}"
            raise self._storage_error(self.failed) from error

    def _remove_segments(self, segments: list[Segment]) -> None:
        """Remove files; what is left of them where that fails is removed or replaced when their offset comes again."""
        for segment in segments:
            segment.discard()
            for path in segment.existing_files():
                self._files.unlink_if_exists(path)

    def adopt_segments(self, segments: list[Segment]) -> None:
        """Make these the log's segments; the last one is active."""
        self._segments.replace(segments)
        self.active = segments[-1]

    def files_changed(self, segments: list[Segment]) -> None:
        """Have the next flush bring the files of `segments` to the disk, whatever is in them. Raises OSError."""
        self._unsynced.update([self.directory], *(segment.existing_files() for segment in segments))

    def reload_producers(self) -> None:
        """Build the producers' state again: the newest snapshot, and the batches behind it. Raises OSError."""
        snapshots.reload(self._files, self.directory, self.log_end_offset, self._segments, self.producers)

    # -- to the disk ------------------------------------------------------------------------------------------------

    def prepare_flush(self, offset: int | None = None) -> PendingFlush:
        """What has to be done for everything below `offset` (None: all there is) to be on the disk.

        Call its `run`, in whatever thread, then `flush_done`. Raises KAFKA_STORAGE_ERROR.
        """
        if self.failed is not None:
            raise self._storage_error(self.failed)
        end = self.log_end_offset if offset is None else min(offset, self.log_end_offset)
        with self.changing("flushing"):
            due = self._segments.from_offset(self.recovery_point) if self.recovery_point < end else []
            handles, paths = files_to_flush(due, end)
        paths += self._unsynced
        self._unsynced.clear()
        self._flushed_to = end
        return PendingFlush(self, self._files, end, self.truncations, handles, paths)

    def flush_done(self, flush: PendingFlush) -> None:
        """Move the recovery point to where `flush` went, unless the log was truncated meanwhile."""
        if flush.truncations != self.truncations or flush.offset <= self.recovery_point:
            return
        flushed = self._segments.from_offset(self.recovery_point)[0]
        self.recovery_point = flush.offset
        first = self._segments.from_offset(flush.offset)[0]
        if first is not flushed:
            snapshots.remove_superfluous(self._files, self.directory, first.base_offset)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget the producers that wrote nothing for `expiration_ms` (`producer.id.expiration.ms`)."""
        self.producers.expire(now_ms - expiration_ms)

    def prepare_close(self) -> PendingFlush:
        """Complete the files and note the producers: what has to be flushed then. Raises KAFKA_STORAGE_ERROR."""
        with self.changing("closing"):
            return prepare_close(self, self._files)

    def close_done(self, flush: PendingFlush) -> None:
        """Let go of the files, which are all on the disk. Raises KAFKA_STORAGE_ERROR."""
        if flush.offset > self.recovery_point:
            self.flush_done(flush)
        self.discard()
        self.failed = "it is closed"

    def close(self) -> None:
        """Complete the files, and bring them to the disk. Raises KAFKA_STORAGE_ERROR."""
        pending = self.prepare_close()
        pending.run()
        self.close_done(pending)

    def relocate(self, directory: str, files: Files, deletions: Deletions) -> None:
        """Go on with a copy that lies in `directory`, as durable as this log is. Raises OSError."""
        self.directory, self._files, self._deletions = directory, files, deletions
        self.epochs.relocate(directory, files)
        for segment in self._segments.items:
            segment.relocate(directory, files)
        self._unsynced = {directory}
        self.truncations += 1  # A flush that runs now flushes the files that were left.

    def discard(self) -> None:
        """Let go of the files, whatever is or is not written; for a log that is deleted or given up."""
        for segment in self._segments.items:
            segment.discard()

    def _storage_error(self, message: str) -> BrokerError:
        return BrokerError(Error.KAFKA_STORAGE_ERROR, f"{self.directory}: {message}")
