"""From the log to a member: what can be read of share partitions, and which of it a member acquires.

Looking changes nothing and reads nothing, so that a fetch may see how much there is, and wait. Of that, only the log
batches are read that hold as many records as a member may acquire; what it acquired is cut from these at log batches.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.aborted import AbortedTransaction
from odradek.log.log import LogSlice
from odradek.share.in_flight import AcquiredRecords
from odradek.share.manager import Shared
from odradek.share.share_partition import Acquisition
from odradek_protocol.records.batch import RecordBatch, iter_batches
from odradek_protocol.records.control import ControlType, read_control_type
from odradek_protocol.records.read import read_records

__all__ = ["Delivered", "Readable", "deliver", "read_until", "readable"]

FIRST_READ_BYTES = 64 * 1024
"""How much is read before it is known how large the records are: four batches of a producer's usual size."""

LogBatches = list[tuple[int, RecordBatch]]
"""Positions and headers."""


class Readable(NamedTuple):
    """What can be read of a share partition from its next offset on."""

    shared: Shared
    fetch_offset: int
    records: LogSlice | None
    aborted: Sequence[AbortedTransaction]

    @property
    def size_bytes(self) -> int:
        return 0 if self.records is None else self.records.size


class Delivered(NamedTuple):
    """What a member has acquired of a partition, and the log batches that hold it."""

    acquired: Sequence[AcquiredRecords]
    records: memoryview | bytes
    record_count: int


NOTHING = Delivered((), b"", 0)


def readable(shared: Sequence[Shared], max_bytes: int) -> list[Readable]:
    """Look at share partitions with equal parts of `max_bytes`; the first with anything gives a log batch at least."""
    found = []
    size_bytes = 0
    for one in shared:
        machine, partition = one.machine, one.partition
        assert machine is not None
        machine.forget_below(partition.log_start_offset)
        offset = machine.next_fetch_offset
        committed = one.settings.reads_committed
        end_offset = partition.last_stable_offset if committed else partition.high_watermark
        records, aborted = None, []
        if offset < end_offset:
            limit = max_bytes // len(shared)
            records = partition.log.read(offset, limit, end_offset, at_least_one=size_bytes == 0)
            if records is not None:
                size_bytes += records.size
                if committed:
                    aborted = partition.log.aborted_transactions(offset, records.next_offset)
        found.append(Readable(one, offset, records, aborted))
    return found


def read_until(records: LogSlice, last: int) -> tuple[memoryview, LogBatches]:
    """The log batches up to the one with the offset `last`, or all of them. What is read may end behind that one.

    Raises OSError.
    """
    max_bytes = FIRST_READ_BYTES
    while True:
        data = memoryview(records.read_bytes(max_bytes))
        batches: LogBatches = []
        for position, batch in iter_batches(data):
            batches.append((position, batch))
            if batch.last_offset >= last:
                return data, batches
        if len(data) >= records.size:
            return data, batches
        max_bytes *= 2
        if batches:
            first_offset, (position, newest) = batches[0][1].base_offset, batches[-1]
            offsets = newest.last_offset + 1 - first_offset
            needed = (position + newest.size) * (last + 1 - first_offset) // offsets
            max_bytes = max(max_bytes, needed + newest.size)


def deliver(found: Readable, wanted: Acquisition, now: float) -> Delivered:
    """Have a member acquire of what was read."""
    machine = found.shared.machine
    assert machine is not None
    if found.records is None or wanted.max_records <= 0:
        return NOTHING
    data, batches = read_until(found.records, machine.reach(found.fetch_offset, wanted.max_records))
    log_batches = [(batch.base_offset, batch.last_offset) for _, batch in batches]
    acquired = machine.acquire(wanted, now, found.fetch_offset, log_batches)
    for first, last in _aborted(batches, data, found.aborted) if found.aborted else ():
        acquired = machine.archive(acquired, first, last)
    if not acquired:
        return NOTHING
    count = sum(each.last_offset - each.first_offset + 1 for each in acquired)
    wholes = [
        (position, position + batch.size)
        for position, batch in batches
        if batch.last_offset >= acquired[0].first_offset and batch.base_offset <= acquired[-1].last_offset
    ]
    return Delivered(acquired, data[wholes[0][0] : wholes[-1][1]], count)


def _aborted(
    batches: LogBatches, data: memoryview, transactions: Sequence[AbortedTransaction]
) -> list[tuple[int, int]]:
    """The (first, last offset) of batches of `transactions`, which were aborted."""
    coming = sorted(transactions, key=lambda one: one.first_offset, reverse=True)
    aborted_ids: set[int] = set()
    result = []
    for position, batch in batches:
        while coming and coming[-1].first_offset <= batch.last_offset:
            aborted_ids.add(coming.pop().producer_id)
        if batch.is_control:
            marker = next(iter(read_records(data[position : position + batch.size])), None)
            key = None if marker is None or marker.key is None else bytes(marker.key)
            if marker is not None and read_control_type(key) == ControlType.ABORT:
                aborted_ids.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborted_ids:
            result.append((batch.base_offset, batch.last_offset))
    return result
