"""Which segments of a log retention gives up, always from the oldest on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.log.log import Log

__all__ = ["count_deletable"]


def count_deletable(log: "Log", now_ms: int, limit_offset: int) -> int:
    """How many of the oldest segments may go; none that reaches `limit_offset`. Raises OSError.

    All of them, where even the active one is too old and not empty; it has to be rolled before then.
    """
    segments = log.segments
    deletable = 0
    for segment in segments:
        if (segment is log.active and not segment.size) or segment.next_offset > limit_offset:
            break
        deletable += 1
    count = _before_start(log, deletable)
    if "delete" in log.config.cleanup_policy:
        count = max(count, _too_many_bytes(log, deletable), _too_old(log, now_ms, deletable))
    return count


def _before_start(log: "Log", deletable: int) -> int:
    count = 0
    for following in log.segments[1 : deletable + 1]:
        if following.base_offset > log.log_start_offset:
            break
        count += 1
    return count


def _too_many_bytes(log: "Log", deletable: int) -> int:
    limit = log.config.retention_bytes
    if limit < 0:
        return 0
    excess = log.size - limit
    count = 0
    for segment in log.segments[:deletable]:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _too_old(log: "Log", now_ms: int, deletable: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    count = 0
    for segment in log.segments[:deletable]:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms()
        if now_ms - newest <= limit:
            break
        count += 1
    return count
