"""What one share group does with the records of one partition: who has acquired which, until when, how often (KIP-932).

A pure state machine: it does no I/O and knows no clock; times are seconds on any clock that does not go back.

Rules:

- A record is acquired by one member at a time, for the duration of a lock. It is delivered `delivery_count_limit`
  times at most, and archived when it is given back after the last one.
- At most `max_record_locks` records are in flight, counted from the start offset; the log batch that passes that limit
  may do so, since a log batch is acquired whole.
- An acknowledgement counts when it is written down: the caller writes the batches of a `Transition` and then calls
  `complete`. Until then, and if it fails, the records are nobody else's.
- All batches of one acknowledgement take effect, or none.
- The start offset is that of the first record that is not done with, and never goes back.
- A record that was given back half of the allowed times or more is delivered in ever smaller company, and for the last
  time alone, so that one bad record does not use up the deliveries of its neighbours.

KIP-932, KIP-1206 (record limit), KIP-1222 (renewed locks), KIP-1226 (how many are done with).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from odradek.share.in_flight import (
    TERMINAL,
    AcquiredRecords,
    Batch,
    InFlight,
    Run,
    State,
    StateBatch,
    Transition,
    joined,
    merged,
)
from odradek_protocol.errors import BrokerError, Error

__all__ = ["ACCEPT", "GAP", "REJECT", "RELEASE", "RENEW", "Acknowledgement", "Acquisition", "Limits", "SharePartition"]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""How an offset is acknowledged: there is no record, done, for somebody else, for nobody, still at work."""

OUTCOMES = {GAP: State.ARCHIVED, ACCEPT: State.ACKNOWLEDGED, RELEASE: State.AVAILABLE, REJECT: State.ARCHIVED}

FEWEST_DELIVERIES_TO_THROTTLE = 2
"""A record that was delivered once may have been unlucky in its consumer."""


class Limits(Protocol):
    """The settings of the group, as they are at the moment."""

    @property
    def delivery_count_limit(self) -> int: ...
    @property
    def max_record_locks(self) -> int: ...
    @property
    def record_lock_duration_ms(self) -> int: ...
    @property
    def renew_acknowledge_enable(self) -> bool: ...


class Acknowledgement(NamedTuple):
    """Offsets, and how they are acknowledged: all in one way, or each in its own."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def ways(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """(first, last, type) for the neighbours among the offsets `first` to `last` that go one way."""
        if len(self.types) == 1:
            yield first, last, self.types[0]
            return
        for type_, offsets in groupby(range(first, last + 1), lambda offset: self.types[offset - self.first_offset]):
            same = list(offsets)
            yield same[0], same[-1], type_


class Acquisition(NamedTuple):
    """What a member asks for: how many records, in batches of what size, and whether log batches may be cut."""

    member_id: str
    max_records: int
    batch_size: int
    record_limit: bool


class SharePartition:
    """The state machine of one (share group, partition).

    `stored` is what was written down of it: batches from `start_offset` on. What lies between them was acquired when it
    was written, by members that nobody knows any more: it is delivered as if for the first time.
    """

    __slots__ = ("_in_flight", "_limits", "deadline")

    def __init__(self, start_offset: int, stored: Iterable[StateBatch], limits: Limits) -> None:
        self._limits = limits
        self._in_flight = InFlight(start_offset)
        self.deadline = math.inf
        """No lock is over before this; a lock that is renewed or gone leaves it too early."""
        for first, last, state, delivery_count in stored:
            if first > self._in_flight.next_offset:
                self._in_flight.append(first - 1, State.AVAILABLE, 0, None)
            self._in_flight.append(last, State(state), delivery_count, Batch(first, last))
        self._in_flight.forget_done()

    @property
    def start_offset(self) -> int:
        """The first record that is not done with."""
        return self._in_flight.start_offset

    @property
    def next_fetch_offset(self) -> int:
        """Where the next record to deliver is: the first one that was given back, or the next one of the log."""
        return next((run.first for run in self._in_flight if run.is_available), self._in_flight.next_offset)

    @property
    def can_acquire(self) -> bool:
        """Whether there is something to deliver, provided that the log has it."""
        return (
            len(self._in_flight) < self._limits.max_record_locks or self.next_fetch_offset < self._in_flight.next_offset
        )

    def reach(self, offset: int, count: int) -> int:
        """The last offset that an acquisition of `count` records from `offset` on may come to, in whole batches of what
        was delivered before: more of the log need not be read.
        """
        next_offset = self._in_flight.next_offset
        for run in self._in_flight.between(offset, next_offset - 1):
            if run.is_available:
                first = max(run.first, offset)
                if run.last - first + 1 >= count:
                    return max(first + count - 1, run.last if run.batch is None else run.batch.last)
                count -= run.last - first + 1
        return max(offset, next_offset) + count - 1

    @property
    def delivery_complete_count(self) -> int:
        """How many records behind the start offset are done with, or will be when that is written down."""
        return sum(run.size for run in self._in_flight if run.state in TERMINAL)

    def acquire(
        self, wanted: Acquisition, now: float, fetch_offset: int, log_batches: Sequence[tuple[int, int]]
    ) -> list[AcquiredRecords]:
        """Give records to a member: of `log_batches`, the (first, last offset) of what was read at `fetch_offset`."""
        last = log_batches[-1][1] if log_batches else -1
        count = wanted.max_records
        room = self._limits.max_record_locks - len(self._in_flight)
        if count > room:
            if room > 0:
                count = room
            else:
                # Only what was delivered before: that takes no more room.
                last = min(last, self._in_flight.next_offset - 1)
                count = min(count, last - fetch_offset + 1)
        if last < self.start_offset or count <= 0:
            return []
        first = max(log_batches[0][0], self.start_offset)
        self._archive_missing(fetch_offset, first)
        return _Delivery(self, self._in_flight, wanted, now, log_batches, count).deliver(first, last)

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement], now: float) -> Transition:
        """Begin to change what a member says of its records. What is below the start offset is passed over.

        Raises INVALID_REQUEST for offsets that were never delivered, INVALID_RECORD_STATE for records that the member
        has not acquired; nothing is changed then, but for locks that were renewed before.
        """
        transition = Transition()
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last_offset >= self.start_offset:
                    self._acknowledge(member_id, acknowledgement, transition, now)
        except BrokerError:
            self.complete(transition, now, succeeded=False)
            raise
        transition.batches = merged(transition.batches)
        return transition

    def release(self, member_id: str) -> Transition:
        """Begin to give back all that a member has acquired."""
        transition = Transition()
        for run in self._in_flight:
            if run.state is State.ACQUIRED and run.member_id == member_id:
                self._begin(run, State.AVAILABLE, transition)
        transition.batches = merged(transition.batches)
        return transition

    def complete(self, transition: Transition, now: float, *, succeeded: bool) -> None:
        """End a change: it is written down, or could not be. Records whose lock is over meanwhile are given back."""
        for run in self._in_flight:
            if run.transition is transition:
                run.transition = None
                if succeeded:
                    run.member_id = ""
                elif now < run.locked_until:
                    run.state = State.ACQUIRED
                    self.deadline = min(self.deadline, run.locked_until)
                else:
                    run.unlock(self._given_back(run))
        if succeeded:
            self._in_flight.forget_done()

    def expire(self, now: float) -> list[StateBatch]:
        """Take back the records whose lock is over; give what is to be written down of that, if it can be."""
        self.deadline = math.inf
        over = []
        for run in self._in_flight:
            if run.state is not State.ACQUIRED:
                continue
            if run.locked_until <= now:
                run.unlock(self._given_back(run))
                over.append(run.stored())
            else:
                self.deadline = min(self.deadline, run.locked_until)
        return merged(over)

    def forget_done(self) -> None:
        """Start behind what is done with; to be called when what `expire` gave is written down, or could not be."""
        self._in_flight.forget_done()

    def forget_below(self, log_start_offset: int) -> None:
        """The log starts there now: what is before needs nobody's acknowledgement."""
        self._in_flight.forget_below(log_start_offset)

    def archive(self, acquired: Iterable[AcquiredRecords], first: int, last: int) -> list[AcquiredRecords]:
        """Be done with the records `first` to `last` of those just acquired; give what is left of these."""
        left = []
        for records in acquired:
            low, high = max(first, records.first_offset), min(last, records.last_offset)
            if low > high:
                left.append(records)
                continue
            for run in self._in_flight.between(low, high):
                self._in_flight.part(run, low, high).unlock(State.ARCHIVED)
            if records.first_offset < low:
                left.append(records._replace(last_offset=low - 1))
            if records.last_offset > high:
                left.append(records._replace(first_offset=high + 1))
        return left

    def lock(self, run: Run, member_id: str, now: float) -> None:
        """Give a run to a member."""
        run.acquire(member_id, self._lock_end(now))

    @property
    def delivery_count_limit(self) -> int:
        return self._limits.delivery_count_limit

    def _lock_end(self, now: float) -> float:
        locked_until = now + self._limits.record_lock_duration_ms / 1000
        self.deadline = min(self.deadline, locked_until)
        return locked_until

    def _given_back(self, run: Run) -> State:
        return State.ARCHIVED if run.delivery_count >= self._limits.delivery_count_limit else State.AVAILABLE

    def _acknowledge(
        self, member_id: str, acknowledgement: Acknowledgement, transition: Transition, now: float
    ) -> None:
        first = max(acknowledgement.first_offset, self.start_offset)
        last = acknowledgement.last_offset
        in_flight = self._in_flight
        if not len(in_flight):
            raise BrokerError(
                Error.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        if last >= in_flight.next_offset:
            edge = "first" if first >= in_flight.next_offset else "last"
            raise BrokerError(
                Error.INVALID_REQUEST, f"Batch record not found. The {edge} offset in request is past acquired records."
            )
        for run in in_flight.between(first, last):
            is_whole = run.batch == (run.first, run.last)
            if run.state is not State.ACQUIRED:
                what = "batch" if is_whole else "offset"
                state = "not in the acquired state" if is_whole else "not acquired"
                raise BrokerError(
                    Error.INVALID_RECORD_STATE,
                    f"The {what} cannot be acknowledged. The {what} is {state}.",
                )
            if run.member_id != member_id:
                raise BrokerError(
                    Error.INVALID_RECORD_STATE, f"Member is not the owner of {'batch record' if is_whole else 'offset'}"
                )
            for low, high, type_ in list(acknowledgement.ways(max(first, run.first), min(last, run.last))):
                self._settle(low, high, type_, transition, now)

    def _settle(self, first: int, last: int, type_: int, transition: Transition, now: float) -> None:
        """Do as a member says with records of one run."""
        run = self._in_flight.part(self._in_flight.between(first, last)[0], first, last)
        if type_ != RENEW:
            self._begin(run, OUTCOMES[type_], transition)
            return
        if not self._limits.renew_acknowledge_enable:
            raise BrokerError(Error.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
        run.locked_until = self._lock_end(now)

    def _begin(self, run: Run, state: State, transition: Transition) -> None:
        run.state = self._given_back(run) if state is State.AVAILABLE else state
        run.transition = transition
        transition.batches.append(run.stored())

    def _archive_missing(self, fetch_offset: int, first: int) -> None:
        """Be done with records that were to be delivered, and that the log has no more: it gave `first` for them."""
        for run in self._in_flight.between(fetch_offset, first - 1):
            if run.is_available:
                self._in_flight.part(run, fetch_offset, first - 1).unlock(State.ARCHIVED)
        self._in_flight.forget_done()


class _Delivery:
    """One acquisition at work: `left` records may be acquired yet."""

    __slots__ = ("_in_flight", "_log_batches", "_now", "_partition", "_result", "_wanted", "left")

    def __init__(
        self,
        partition: SharePartition,
        in_flight: InFlight,
        wanted: Acquisition,
        now: float,
        log_batches: Sequence[tuple[int, int]],
        count: int,
    ) -> None:
        self._partition = partition
        self._in_flight = in_flight
        self._wanted = wanted
        self._now = now
        self._log_batches = log_batches
        self._result: list[AcquiredRecords] = []
        self.left = count

    def deliver(self, first: int, last: int) -> list[AcquiredRecords]:
        """Acquire from `first` to `last`: first what was delivered before, in its batches, then what is new."""
        for batch, group in groupby(self._in_flight.between(first, last), lambda run: run.batch):
            if self.left <= 0:
                break
            runs = [run for run in group if run.is_available]
            if not runs:
                continue
            if batch is None:
                for run in runs:
                    self._deliver_first(run, max(first, run.first), min(last, run.last))
            elif self._deliver_again(runs, batch, first, last):
                return self._result
        self._in_flight.skip_to(first)
        if self.left > 0 and self._in_flight.next_offset <= last:
            self._deliver_first(None, self._in_flight.next_offset, last)
        return self._result

    def _deliver_again(self, runs: Sequence[Run], batch: Batch, first: int, last: int) -> bool:
        """Acquire what is available of a batch; whether nothing may come with it, since it was given back so often."""
        limit = self._partition.delivery_count_limit
        threshold = max(FEWEST_DELIVERIES_TO_THROTTLE, math.ceil(limit / 2))
        throttled = max(run.delivery_count for run in runs) >= threshold
        if throttled and self._result:
            return True
        most = self.left if self._wanted.record_limit else batch.size()
        found: list[AcquiredRecords] = []
        for run in runs:
            if run.delivery_count >= threshold:
                most = min(most, max(1, batch.size() >> (run.delivery_count - threshold + 1)))
            is_last_time = limit > FEWEST_DELIVERIES_TO_THROTTLE and run.delivery_count == limit - 1
            if is_last_time:
                most = 0 if found else 1
            low, high = max(first, run.first), min(last, run.last)
            high = min(high, low + most - 1)
            if low > high:
                break
            found.append(self._take(run, low, high))
            most -= high - low + 1
            if is_last_time:
                break
        self._result += joined(found)
        return throttled and bool(found)

    def _deliver_first(self, run: Run | None, first: int, last: int) -> None:
        """Acquire what was never delivered: of `run`, or of what is not in flight yet. Log batches stay whole."""
        if last - first + 1 > self.left:
            last = first + self.left - 1
            if not self._wanted.record_limit:
                last = self._end_of_log_batch(last)
        if run is not None:
            last = min(last, run.last)
        for low, high in self._in_batches(first, last):
            if run is None:
                taken = self._in_flight.append(high, State.AVAILABLE, 0, None)
            else:
                taken = self._in_flight.part(run, low, high)
                run = next(iter(self._in_flight.between(high + 1, high + 1)), taken)
            taken.batch = Batch(low, high)
            self._result.append(self._take(taken, low, high))

    def _take(self, run: Run, first: int, last: int) -> AcquiredRecords:
        taken = self._in_flight.part(run, first, last)
        self._partition.lock(taken, self._wanted.member_id, self._now)
        self.left -= taken.size
        return AcquiredRecords(taken.first, taken.last, taken.delivery_count)

    def _end_of_log_batch(self, offset: int) -> int:
        return next((last for base, last in self._log_batches if base <= offset <= last), offset)

    def _in_batches(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Cut at log batches so that each part but the last has `batch_size` records or more."""
        if not self._wanted.record_limit and last - first + 1 > self._wanted.batch_size:
            for base, _ in self._log_batches:
                if base > last:
                    break
                if base - first >= self._wanted.batch_size:
                    yield first, base - 1
                    first = base
        yield first, last
