"""From the log to a member: what can be read of share partitions, and which of it a member acquires.

Reading changes nothing, so that a fetch may look how much there is, and wait. What was acquired is cut from what was
read at log batches.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.aborted import AbortedTransaction
from odradek.share.in_flight import AcquiredRecords
from odradek.share.manager import Shared
from odradek.share.share_partition import Acquisition
from odradek_protocol.records.batch import RecordBatch, iter_batches
from odradek_protocol.records.control import ControlType, read_control_type
from odradek_protocol.records.read import read_records

__all__ = ["Delivered", "Readable", "deliver", "readable"]


class Readable(NamedTuple):
    """What can be read of a share partition from its next offset on."""

    shared: Shared
    fetch_offset: int
    data: memoryview
    aborted: Sequence[AbortedTransaction]

    @property
    def size_bytes(self) -> int:
        return len(self.data)


class Delivered(NamedTuple):
    """What a member has acquired of a partition, and the log batches that hold it."""

    acquired: Sequence[AcquiredRecords]
    records: memoryview | bytes
    record_count: int


def readable(shared: Sequence[Shared], max_bytes: int) -> list[Readable]:
    """Read share partitions with equal parts of `max_bytes`; the first with anything gives a log batch at least."""
    found = []
    size_bytes = 0
    for one in shared:
        machine, partition = one.machine, one.partition
        assert machine is not None
        machine.forget_below(partition.log_start_offset)
        offset = machine.next_fetch_offset
        committed = one.settings.reads_committed
        end_offset = partition.last_stable_offset if committed else partition.high_watermark
        data, aborted = memoryview(b""), []
        if offset < end_offset:
            limit = max_bytes // len(shared)
            records = partition.log.read(offset, limit, end_offset, at_least_one=size_bytes == 0)
            if records is not None:
                data = memoryview(records.read_bytes())
                if committed:
                    aborted = partition.log.aborted_transactions(offset, records.next_offset)
        size_bytes += len(data)
        found.append(Readable(one, offset, data, aborted))
    return found


def deliver(found: Readable, wanted: Acquisition, now: float) -> Delivered:
    """Have a member acquire of what was read."""
    machine = found.shared.machine
    assert machine is not None
    batches = list(iter_batches(found.data))
    if not batches:
        return Delivered((), b"", 0)
    log_batches = [(batch.base_offset, batch.last_offset) for _, batch in batches]
    acquired = machine.acquire(wanted, now, found.fetch_offset, log_batches)
    for first, last in _aborted(batches, found):
        acquired = machine.archive(acquired, first, last)
    if not acquired:
        return Delivered((), b"", 0)
    count = sum(each.last_offset - each.first_offset + 1 for each in acquired)
    wholes = [
        (position, position + batch.size)
        for position, batch in batches
        if batch.last_offset >= acquired[0].first_offset and batch.base_offset <= acquired[-1].last_offset
    ]
    return Delivered(acquired, found.data[wholes[0][0] : wholes[-1][1]], count)


def _aborted(batches: Sequence[tuple[int, RecordBatch]], found: Readable) -> list[tuple[int, int]]:
    """The (first, last offset) of batches of transactions that were aborted."""
    coming = sorted(found.aborted, key=lambda one: one.first_offset, reverse=True)
    aborted_ids: set[int] = set()
    result = []
    for position, batch in batches:
        while coming and coming[-1].first_offset <= batch.last_offset:
            aborted_ids.add(coming.pop().producer_id)
        if batch.is_control:
            marker = next(iter(read_records(found.data[position : position + batch.size])), None)
            key = None if marker is None or marker.key is None else bytes(marker.key)
            if marker is not None and read_control_type(key) == ControlType.ABORT:
                aborted_ids.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborted_ids:
            result.append((batch.base_offset, batch.last_offset))
    return result
