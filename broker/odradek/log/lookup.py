"""Looking for a timestamp in sealed segments, whose files may have to come from the disk: for a thread.

A sealed segment never changes, so `run` reads its files through handles of its own, beside whatever goes on in the log.
When the log has lost or exchanged segments meanwhile, or a file cannot be read, `result` asks the log itself.
"""

from typing import TYPE_CHECKING

from odradek.log import timestamps
from odradek.log.files import FileCache
from odradek.log.segment import Segment
from odradek_protocol.errors import ProtocolError

if TYPE_CHECKING:
    from odradek.log.log import Log
    from odradek.log.timestamps import TimestampOffset

__all__ = ["Lookup"]

_HANDLES = 2
"""Open at a time: segments are read one behind the other."""


class Lookup:
    """One look-up: of the first record at or behind `timestamp`, or (None) of the one with the largest timestamp."""

    __slots__ = ("_candidates", "_end_offset", "_failed", "_found", "_sealed", "_timestamp", "_twins", "log")

    def __init__(self, log: "Log", timestamp: int | None, end_offset: int) -> None:
        self.log = log
        self._timestamp = timestamp
        self._end_offset = end_offset
        *self._sealed, active = log.segments
        wanted = active.max_timestamp if timestamp is None else timestamp
        start = log.log_start_offset
        self._candidates = [
            segment
            for segment in self._sealed
            if segment.next_offset > start and (segment.known_max_timestamp is None or segment.max_timestamp >= wanted)
        ]
        self._twins: list[Segment] = []
        self._found: TimestampOffset | None = None
        self._failed = False

    @property
    def needs_files(self) -> bool:
        """Whether a sealed segment has to be read, so that `run` is to be called in a thread before `result`."""
        return bool(self._candidates)

    def run(self) -> None:
        """Read the segments in question."""
        cache = FileCache(_HANDLES)
        try:
            for segment in self._candidates:
                twin = segment.twin(cache)
                self._twins.append(twin)
                if self._timestamp is not None and twin.max_timestamp >= self._timestamp:
                    self._found = timestamps.find_timestamp(twin, self._timestamp, self.log.log_start_offset)
                    if self._found is not None:
                        return
            if self._timestamp is None:
                self._found = timestamps.find_largest(max(self._twins, key=lambda twin: twin.max_timestamp))
        except (OSError, ProtocolError):
            self._failed = True

    def result(self) -> "TimestampOffset | None":
        """The record, None when there is none below the end offset. Raises KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE."""
        log = self.log
        *sealed, active = log.segments
        found = None
        if not self._failed and sealed[: len(self._sealed)] == self._sealed:
            for segment, twin in zip(self._candidates, self._twins, strict=False):
                segment.learn_max_timestamp(twin)
            found = self._found
            if found is not None and self._timestamp is None and found.timestamp < active.max_timestamp:
                found = None
        if found is None:
            if self._timestamp is None:
                return log.max_timestamp(self._end_offset)
            return log.offset_for_timestamp(self._timestamp, self._end_offset)
        return found if found.offset < self._end_offset else None
