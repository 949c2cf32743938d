"""Which log to clean next, and how far. Source: Kafka's log cleaner manager; KIP-58 and KIP-354 for the lags."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from odradek.log.segment import Segment

if TYPE_CHECKING:
    from odradek.log.log import Log

__all__ = ["Candidate", "examine", "filthiest"]

logger = logging.getLogger(__name__)


class Candidate:
    """A log, and what there is to clean: `segments`, all below `end_offset`; dirty from `first_dirty_offset` on.

    `is_overdue` says that a dirty record is older than `max.compaction.lag.ms`.
    """

    __slots__ = ("dirty_bytes", "end_offset", "first_dirty_offset", "is_overdue", "log", "segments", "size")

    def __init__(self, log: "Log", first_dirty_offset: int, segments: list[Segment], is_overdue: bool) -> None:
        self.log = log
        self.first_dirty_offset = first_dirty_offset
        self.segments = segments
        self.is_overdue = is_overdue
        self.end_offset = max(segments[-1].next_offset if segments else 0, first_dirty_offset)
        self.dirty_bytes = sum(segment.size for segment in segments if segment.next_offset > first_dirty_offset)
        clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty_offset)
        self.size = clean_bytes + self.dirty_bytes

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / self.size if self.size else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is dirty enough (`min.cleanable.dirty.ratio`), or too long already."""
        return (
            self.is_overdue and self.dirty_bytes > 0
        ) or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def examine(log: "Log", last_stable_offset: int, now_ms: int) -> Candidate | None:
    """What there is to clean of a log; None when it is not to be compacted at all. Raises OSError."""
    config = log.config
    if "compact" not in config.cleanup_policy or log.failed is not None or log.uncleanable is not None:
        return None
    first_dirty_offset = _first_dirty_offset(log)
    sealed = log.segments[:-1]
    dirty = [segment for segment in sealed if segment.next_offset > first_dirty_offset]
    limit = last_stable_offset
    if config.min_compaction_lag_ms > 0:
        oldest_young_ms = now_ms - config.min_compaction_lag_ms
        limit = min(
            limit, next((segment.base_offset for segment in dirty if segment.max_timestamp > oldest_young_ms), limit)
        )
    is_overdue = any(
        0 < segment.first_batch_timestamp < now_ms - config.max_compaction_lag_ms
        for segment in (dirty if config.max_compaction_lag_ms < now_ms else [])
    )
    return Candidate(
        log, first_dirty_offset, [segment for segment in sealed if segment.next_offset <= limit], is_overdue
    )


def filthiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The one with the highest share of dirty bytes, of those that are due."""
    return max((one for one in candidates if one.is_due), key=lambda one: one.dirty_ratio, default=None)


def _first_dirty_offset(log: "Log") -> int:
    """Where the last round ended; the log's start when that is not within the log any more."""
    cleaned = log.cleaned_offset
    if cleaned is not None and cleaned > log.log_end_offset:
        logger.warning("%s was cleaned up to %d, and ends before that: all of it is dirty", log.directory, cleaned)
        cleaned = None
    return log.log_start_offset if cleaned is None else max(cleaned, log.log_start_offset)
