"""Aborted transactions of a segment, so that a consumer of committed records can skip them.

One entry of 34 bytes in NNN.txnindex for each transaction whose abort marker lies in the segment:

    version int16 (0) | producer_id int64 | first_offset int64 | last_offset int64 | last_stable_offset int64

`first_offset` is that of the first record of the transaction (perhaps in an earlier segment), `last_offset` that of
its marker, `last_stable_offset` the last stable offset once the marker was there: whoever searches from older to newer
segments may stop at an entry where it has reached the end of what is fetched. Source: KIP-98.
"""

import struct
from typing import NamedTuple

__all__ = ["ABORTED_ENTRY_SIZE", "AbortedEntry", "AbortedIndex", "AbortedTransaction"]

_ENTRY = struct.Struct(">hqqqq")
ABORTED_ENTRY_SIZE = _ENTRY.size
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """What a fetch reply tells: skip the producer's records from `first_offset` on, until its next marker."""

    producer_id: int
    first_offset: int


class AbortedEntry(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    """The entries in the order of their markers. `saved` of them are in the file."""

    __slots__ = ("entries", "saved")

    def __init__(self) -> None:
        self.entries: list[AbortedEntry] = []
        self.saved = 0

    @classmethod
    def parse(cls, data: bytes) -> "AbortedIndex | None":
        """Read a file's content. None when it is not such an index: it has to be rebuilt."""
        if len(data) % ABORTED_ENTRY_SIZE:
            return None
        index = cls()
        for version, *fields in _ENTRY.iter_unpack(data):
            if version != _VERSION:
                return None
            index.entries.append(AbortedEntry(*fields))
        index.saved = len(index.entries)
        markers = [entry.last_offset for entry in index.entries]
        return index if markers == sorted(markers) else None

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose markers lie at or behind `offset`."""
        self.entries = [entry for entry in self.entries if entry.last_offset < offset]
        self.saved = min(self.saved, len(self.entries))

    def unsaved(self) -> bytes:
        """The bytes of the entries that the file lacks."""
        return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self.entries[self.saved :])

    def collect(self, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add the transactions that reach into the offsets from `start_offset` to below `end_offset`.

        Gives whether the search is over: later segments cannot hold more of them.
        """
        for entry in self.entries:
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= end_offset:
                return True
        return False
