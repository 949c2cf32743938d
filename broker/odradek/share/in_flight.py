"""The records of a share partition that are between its start offset and the last one that was ever delivered.

They are kept as runs: neighbouring offsets that are in one state, under one lock, delivered equally often. A run is
split where only a part of it changes, so what was fetched together and acknowledged together stays one run.

    AVAILABLE   --(acquired; one more delivery)-->   ACQUIRED
    ACQUIRED    --(accepted)-->   ACKNOWLEDGED
    ACQUIRED    --(released, or its lock is over)-->   AVAILABLE, or ARCHIVED when the limit of deliveries is reached
    ACQUIRED    --(rejected, or there is no record)-->   ARCHIVED
    AVAILABLE   --(gone from the log)-->   ARCHIVED

What members acknowledge is *pending* until it is written down: nobody can acquire it, nor acknowledge it again.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

__all__ = ["AcquiredRecords", "InFlight", "Run", "StateBatch", "Transition", "merged"]


class State(IntEnum):
    """What a record is; the numbers are those of the stored state, in which nothing is ever ACQUIRED."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


TERMINAL = frozenset({State.ACKNOWLEDGED, State.ARCHIVED})


class StateBatch(NamedTuple):
    """Records of one state and one delivery count, as they are stored."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class AcquiredRecords(NamedTuple):
    """Records that a member was given."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Batch(NamedTuple):
    """What was fetched together: records are delivered again within its edges."""

    first: int
    last: int

    def size(self) -> int:
        return self.last - self.first + 1


class Transition:
    """A change of records that is not written down yet, and what is to be written."""

    __slots__ = ("batches",)

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []


class Run:
    """Records `first` to `last`. What was never delivered, or to somebody who is not known, has no batch."""

    __slots__ = ("batch", "delivery_count", "first", "last", "locked_until", "member_id", "state", "transition")

    def __init__(self, first: int, last: int, state: State, delivery_count: int, batch: Batch | None) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.batch = batch
        self.member_id = ""
        """Who has acquired it; kept while an acknowledgement is pending, which may yet fail."""
        self.locked_until = 0.0
        self.transition: Transition | None = None

    def __repr__(self) -> str:
        pending = " pending" if self.transition else ""
        return f"Run({self.first}-{self.last} {self.state.name}{pending}, {self.delivery_count} deliveries)"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        return self.state is State.AVAILABLE and self.transition is None

    @property
    def is_done(self) -> bool:
        return self.state in TERMINAL and self.transition is None

    def stored(self) -> StateBatch:
        return StateBatch(self.first, self.last, self.state, self.delivery_count)

    def acquire(self, member_id: str, locked_until: float) -> None:
        self.state = State.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.locked_until = locked_until

    def unlock(self, state: State) -> None:
        self.state = state
        self.member_id = ""


class InFlight:
    """The runs from `start_offset` to below `next_offset`, in order and without holes."""

    __slots__ = ("_runs", "next_offset", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = self.next_offset = start_offset
        self._runs: list[Run] = []

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        """How many records."""
        return self.next_offset - self.start_offset

    def append(self, last: int, state: State, delivery_count: int, batch: Batch | None) -> Run:
        """Add the records from `next_offset` to `last`."""
        run = Run(self.next_offset, last, state, delivery_count, batch)
        self._runs.append(run)
        self.next_offset = last + 1
        return run

    def skip_to(self, offset: int) -> None:
        """Say that there are no records from `next_offset` to below `offset`."""
        if offset > self.next_offset:
            if self._runs:
                self.append(offset - 1, State.ARCHIVED, 0, None)
            else:
                self.start_offset = self.next_offset = offset

    def between(self, first: int, last: int) -> list[Run]:
        """The runs with any of the records `first` to `last`."""
        start = max(bisect_right(self._runs, first, key=lambda run: run.first) - 1, 0)
        found = []
        for run in self._runs[start:]:
            if run.first > last:
                break
            if run.last >= first:
                found.append(run)
        return found

    def part(self, run: Run, first: int, last: int) -> Run:
        """The records `first` to `last` of `run` as a run of their own; `run` keeps what is before, or is that run."""
        if last < run.last:
            self._split(run, last + 1)
        return run if first <= run.first else self._split(run, first)

    def _split(self, run: Run, offset: int) -> Run:
        """Cut `run` before `offset`; give the second part."""
        rest = Run(offset, run.last, run.state, run.delivery_count, run.batch)
        rest.member_id, rest.locked_until, rest.transition = run.member_id, run.locked_until, run.transition
        run.last = offset - 1
        self._runs.insert(bisect_right(self._runs, run.first, key=lambda each: each.first), rest)
        return rest

    def forget_done(self) -> None:
        """Start behind the first records that are done with."""
        count = 0
        for run in self._runs:
            if not run.is_done:
                break
            count += 1
        if count:
            del self._runs[:count]
            self.start_offset = self._runs[0].first if self._runs else self.next_offset

    def forget_below(self, offset: int) -> None:
        """Start at `offset` if that is later: what is before is gone, whatever it was."""
        if offset <= self.start_offset:
            return
        for run in self.between(self.start_offset, offset - 1):
            if run.last >= offset:
                self._split(run, offset)
            self._runs.remove(run)
        self.start_offset = offset
        self.next_offset = max(self.next_offset, offset)


def merged(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Batches in order, of which neighbours that differ in nothing else are one."""
    result: list[StateBatch] = []
    for batch in batches:
        if result and result[-1].last_offset + 1 == batch.first_offset and result[-1][2:] == batch[2:]:
            result[-1] = result[-1]._replace(last_offset=batch.last_offset)
        else:
            result.append(batch)
    return result


def joined(acquired: Sequence[AcquiredRecords]) -> list[AcquiredRecords]:
    """Records in order, of which neighbours that were delivered equally often are one."""
    stored = merged(StateBatch(each.first_offset, each.last_offset, 0, each.delivery_count) for each in acquired)
    return [AcquiredRecords(each.first_offset, each.last_offset, each.delivery_count) for each in stored]
