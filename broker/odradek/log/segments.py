"""The segments of one log in their order, and finding the way through them."""

from bisect import bisect_right

from odradek.log import timestamps
from odradek.log.aborted import AbortedTransaction
from odradek.log.segment import LogSlice, Segment
from odradek.log.timestamps import TimestampOffset

__all__ = ["SegmentList"]

_MAX_HINTS = 64
"""Consumers whose next position one log remembers."""


class SegmentList:
    """Segments by their base offsets; the last one is active. What reads raises OSError."""

    __slots__ = ("_hints", "bases", "items")

    def __init__(self) -> None:
        self.items: list[Segment] = []
        self.bases: list[int] = []
        self._hints: dict[int, tuple[Segment, int, int]] = {}
        """Where the batch lies that a recent read ended before (segment, position, offset): consumers read on."""

    def replace(self, segments: list[Segment]) -> None:
        """Hold these segments instead."""
        self.items = segments
        self.bases = [segment.base_offset for segment in segments]
        self._hints.clear()

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds `offset`, and all behind it; all segments for an offset before the first."""
        return self.items[max(bisect_right(self.bases, offset) - 1, 0) :]

    def read(self, offset: int, max_bytes: int, end_offset: int, at_least_one: bool) -> LogSlice | None:
        """See `Log.read`; `offset` is one that there may be."""
        place = self._hints.get(offset) or self._locate(offset)
        if place is None:
            return None
        segment, position, first_offset = place
        while position == segment.size:
            if segment is self.items[-1]:
                return None
            segment = self.items[bisect_right(self.bases, segment.base_offset)]
            position, first_offset = 0, max(first_offset, segment.base_offset)
        found = segment.slice(position, first_offset, max_bytes, end_offset, at_least_one)
        if found is None:
            return None
        hints = self._hints
        if len(hints) >= _MAX_HINTS:
            del hints[next(iter(hints))]
        hints[found.next_offset] = segment, position + found.size, found.next_offset
        return found

    def _locate(self, offset: int) -> tuple[Segment, int, int] | None:
        """Segment, position and base offset of the first batch that reaches `offset`; a hole may end a segment."""
        for segment in self.from_offset(offset):
            if segment.base_offset == offset:
                return segment, 0, offset
            found = segment.find(offset)
            if found is not None:
                return segment, found[0], found[1].base_offset
        return None

    def find_timestamp(self, timestamp_ms: int, start_offset: int) -> TimestampOffset | None:
        """The first record from `start_offset` on whose timestamp is at least `timestamp_ms`.

        Raises ProtocolError when its batch cannot be read.
        """
        for segment in self.from_offset(start_offset):
            if segment.max_timestamp >= timestamp_ms:
                found = timestamps.find_timestamp(segment, timestamp_ms, start_offset)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp, the first one among equals.

        Raises ProtocolError when its batch cannot be read.
        """
        return timestamps.find_largest(max(self.items, key=lambda segment: segment.max_timestamp))

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """See `Log.aborted_transactions`."""
        found: list[AbortedTransaction] = []
        for segment in self.from_offset(start_offset):
            if segment.indexes.aborted.collect(start_offset, end_offset, found):
                break
        return found
