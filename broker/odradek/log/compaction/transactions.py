"""Which transactions a pass over a log is in, to know what of them may go."""

from collections import deque
from collections.abc import Iterable

from odradek.log.aborted import AbortedEntry
from odradek.log.producers import EndMarker
from odradek_protocol.records.batch import RecordBatch

__all__ = ["TransactionPass"]


class TransactionPass:
    """The state of one pass, which meets all batches from `start_offset` on in their order.

    `kept_aborts` are the aborted transactions whose markers stay, in the order of the markers: the index of the new
    segment. Whoever begins a new one clears it.
    """

    __slots__ = ("_aborted", "_coming", "_committed", "_seen", "kept_aborts")

    def __init__(self, aborted: Iterable[AbortedEntry], start_offset: int) -> None:
        reaching = [entry for entry in aborted if entry.last_offset >= start_offset]
        self._coming = deque(sorted(reaching, key=lambda entry: entry.first_offset))
        self._aborted: dict[int, AbortedEntry] = {}
        self._seen: set[int] = set()
        """The producers in `_aborted` that have a batch of the transaction in the log still."""
        self._committed: set[int] = set()
        """The producers with a batch of a transaction that will be committed."""
        self.kept_aborts: list[AbortedEntry] = []

    def read_batch(self, batch: RecordBatch) -> bool:
        """Meet a batch of records; gives whether its transaction was aborted, so that all of them may go."""
        if not batch.is_transactional:
            return False
        self._begin_aborted(batch.last_offset)
        if batch.producer_id in self._aborted:
            self._seen.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def read_marker(self, batch: RecordBatch, marker: EndMarker | None) -> bool:
        """Meet a control batch; gives whether nothing is left that needs it. `marker` is None for another kind."""
        if not batch.record_count:
            return True
        self._begin_aborted(batch.last_offset)
        if marker is None:
            return False
        producer_id = batch.producer_id
        if marker.committed:
            needed = producer_id in self._committed
            self._committed.discard(producer_id)
            return not needed
        entry = self._aborted.pop(producer_id, None)
        if entry is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.kept_aborts.append(entry)
        return False

    def _begin_aborted(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            entry = self._coming.popleft()
            self._aborted.setdefault(entry.producer_id, entry)
