"""Which of the dirty offsets hold the last record of their keys: a byte for each, made when all keys are known.

It answers for a whole batch with a few calls, so that the second pass opens only batches that lose some of their
records, and asks for no key that the first pass has read.

    0  nothing, or a record that a later one supersedes
    1  such a record that is a tombstone
    2  the last record of its key
    3  the last record of its key, a tombstone
"""

from collections.abc import Iterable

__all__ = ["Survivors"]

_TOMBSTONE, _LAST = 1, 2
_LAST_TOMBSTONE = _LAST | _TOMBSTONE


class Survivors:
    """Of the `count` offsets from `start` on. With a count of 0 it knows nothing, and never says so."""

    __slots__ = ("_end", "_start", "_states")

    def __init__(self, start: int, count: int) -> None:
        self._start = start
        self._end = start
        self._states = bytearray(count)

    def note_tombstones(self, offsets: Iterable[int]) -> None:
        """Meet tombstones, in the first pass."""
        states, start = self._states, self._start
        if states:
            for offset in offsets:
                if offset >= start:
                    states[offset - start] = _TOMBSTONE

    def settle(self, last_offsets: Iterable[int], latest_offset: int) -> None:
        """Take the last offsets of all keys, which are known up to `latest_offset`; from here on there are answers."""
        states, start = self._states, self._start
        if states:
            for offset in last_offsets:
                states[offset - start] |= _LAST
            self._end = latest_offset + 1

    def cover(self, first_offset: int, last_offset: int) -> bool:
        """Whether there are answers for all these offsets."""
        return self._start <= first_offset and last_offset < self._end

    def count(self, first_offset: int, last_offset: int) -> tuple[int, int]:
        """How many records between these offsets are the last ones of their keys, and how many of those tombstones."""
        first, end = first_offset - self._start, last_offset + 1 - self._start
        tombstones = self._states.count(_LAST_TOMBSTONE, first, end)
        return self._states.count(_LAST, first, end) + tombstones, tombstones

    def __contains__(self, offset: int) -> bool:
        """Whether the record at an offset is the last one of its key."""
        return self._states[offset - self._start] >= _LAST
