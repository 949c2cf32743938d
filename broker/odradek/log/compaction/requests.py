"""What the broker and a cleaning process say to each other: lines of JSON, one each way in turns, over pipes.

    broker                                     process
    CleanRequest                        ->
                                        <-     Progress, every few seconds while it works
                                        <-     CleanedGroup: files that end in .cleaned are complete and on the disk
    GO_ON, when they are in place       ->             ... once for each group of segments
                                        <-     Cleaned: how far the log is clean now

The broker answers STOP instead of GO_ON when the log has changed in between, and the process awaits the next request.
At any time the process may answer Failed instead, and await the next request. It ends when its input does.
"""

import json
from typing import Any, NamedTuple

from odradek.log.aborted import AbortedEntry

__all__ = [
    "GO_ON",
    "STOP",
    "CleanRequest",
    "Cleaned",
    "CleanedGroup",
    "Failed",
    "Message",
    "Progress",
    "SegmentFile",
    "decode",
    "encode",
]

GO_ON = b"go on\n"
STOP = b"stop\n"


class SegmentFile(NamedTuple):
    """A sealed segment: its first `size` bytes are its batches, with offsets up to below `next_offset`."""

    base_offset: int
    next_offset: int
    size: int


class CleanRequest(NamedTuple):
    """One round of cleaning of the log in `directory`.

    `segments` are all below `end_offset`, of which those from `first_dirty_offset` on were not cleaned before;
    `aborted` the aborted transactions whose markers lie behind them; `producers` id, last offset and epoch of each
    producer (see `batches.LastRecord`). `chunk_bytes` are read at once, `bytes_per_s` read and written.
    """

    directory: str
    segments: list[SegmentFile]
    first_dirty_offset: int
    end_offset: int
    aborted: list[AbortedEntry]
    producers: list[tuple[int, int, int]]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    memory_bytes: int
    load_factor: float
    chunk_bytes: int
    bytes_per_s: float


class Progress(NamedTuple):
    """The process is at work."""


class CleanedGroup(NamedTuple):
    """The segments with these base offsets may be replaced by the files named after the first one."""

    base_offsets: list[int]


class Cleaned(NamedTuple):
    """The log is clean up to `end_offset`. Bytes and records: those read in the second pass, and those left."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int


class Failed(NamedTuple):
    """The round came to nothing; with `damaged` because the log is damaged, and will be the next time."""

    reason: str
    damaged: bool


Message = CleanRequest | Progress | CleanedGroup | Cleaned | Failed

_MESSAGES: dict[str, type[Message]] = {
    kind.__name__: kind for kind in (CleanRequest, Progress, CleanedGroup, Cleaned, Failed)
}


def encode(message: Message) -> bytes:
    """A line: the fields by their names, and the name of the class."""
    return json.dumps({"message": type(message).__name__, **message._asdict()}).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line."""
    fields: dict[str, Any] = json.loads(line)
    kind = _MESSAGES[fields.pop("message")]
    if kind is CleanRequest:
        fields["segments"] = [SegmentFile(*segment) for segment in fields["segments"]]
        fields["producers"] = [(producer_id, offset, epoch) for producer_id, offset, epoch in fields["producers"]]
        fields["aborted"] = [AbortedEntry(*entry) for entry in fields["aborted"]]
    return kind(**fields)
