"""A round of cleaning from the broker's side: what the process is told of a log, and what becomes of its answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.log.aborted import AbortedEntry
from odradek.log.compaction.choice import Candidate
from odradek.log.compaction.requests import Cleaned, CleanRequest, SegmentFile

if TYPE_CHECKING:
    from odradek.log.compaction.replacement import Replacement
    from odradek.log.log import Log
    from odradek.log.segment import Segment

__all__ = ["Round"]

_NO_OFFSET = -1


class Round:
    """One round of one log. Everything here is one step: nothing can come between a check and its change."""

    __slots__ = ("_candidate", "_truncations", "log")

    def __init__(self, candidate: Candidate) -> None:
        self.log = candidate.log
        self._candidate = candidate
        self._truncations = candidate.log.truncations

    @property
    def hindrance(self) -> str | None:
        """Why the round is not worth going on with: the log is not what it was when the round began."""
        if self.log.failed is not None:
            return self.log.failed
        if self.log.truncations != self._truncations:
            return "it was truncated or moved"
        return None if "compact" in self.log.config.cleanup_policy else "it is not compacted any more"

    def request(
        self, now_ms: int, *, memory_bytes: int, load_factor: float, chunk_bytes: int, bytes_per_s: float
    ) -> CleanRequest:
        """What the process is asked for; it may use `memory_bytes` for keys. Raises OSError."""
        log, config, candidate = self.log, self.log.config, self._candidate
        return CleanRequest(
            directory=log.directory,
            segments=[SegmentFile(one.base_offset, one.next_offset, one.size) for one in candidate.segments],
            first_dirty_offset=candidate.first_dirty_offset,
            end_offset=candidate.end_offset,
            aborted=_aborted_behind(log, candidate.end_offset),
            producers=[
                (one.producer_id, one.batches[-1].last_offset if one.batches else _NO_OFFSET, one.producer_epoch)
                for one in log.producers.by_id.values()
            ],
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            memory_bytes=memory_bytes,
            load_factor=load_factor,
            chunk_bytes=chunk_bytes,
            bytes_per_s=bytes_per_s,
        )

    def prepare(self, base_offsets: Sequence[int]) -> "Replacement | None":
        """The replacement of the segments of a group; None when the log has lost some of them meanwhile."""
        bases = set(base_offsets)
        old = [segment for segment in self._candidate.segments if segment.base_offset in bases]
        return self.log.prepare_replacement(old) if self._may_replace(old) else None

    def replace(self, replacement: "Replacement", now_ms: int) -> bool:
        """Put the new files of a group in place; gives whether the log still had the old ones.

        Raises KAFKA_STORAGE_ERROR.
        """
        if not self._may_replace(replacement.old):
            return False
        self.log.replace_segments(replacement, now_ms)
        return True

    def _may_replace(self, old: Sequence["Segment"]) -> bool:
        return self.hindrance is None and set(old) <= set(self.log.segments)

    def finish(self, answer: Cleaned) -> None:
        """Note how far the log is clean."""
        self.log.cleaned_offset = answer.end_offset


def _aborted_behind(log: "Log", offset: int) -> list[AbortedEntry]:
    """The aborted transactions that began before `offset` and whose markers lie in a segment from there on."""
    found = []
    for segment in log.segments:
        if segment.base_offset < offset:
            continue
        for entry in segment.load_aborted().entries:
            if entry.first_offset < offset:
                found.append(entry)
            if entry.last_stable_offset >= offset:
                return found
    return found
