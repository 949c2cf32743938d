"""What a share group does with the records of a partition, case by case."""

import math
from dataclasses import dataclass

import pytest

from odradek.share.in_flight import AcquiredRecords, State, StateBatch
from odradek.share.share_partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Acquisition,
    SharePartition,
)
from odradek_protocol.errors import BrokerError, Error


@dataclass
class Settings:
    delivery_count_limit: int = 5
    max_record_locks: int = 100
    record_lock_duration_ms: int = 30_000
    renew_acknowledge_enable: bool = True


def wanted(member: str = "m", records: int = 500, *, batch_size: int = 500, record_limit: bool = False) -> Acquisition:
    return Acquisition(member, records, batch_size, record_limit)


class Sharing:
    """A share partition over a log of batches, and the fetches that consumers make."""

    def __init__(self, *batches: tuple[int, int], start: int = 0, stored: tuple[StateBatch, ...] = (), **settings: int):
        self.log = list(batches)
        self.settings = Settings(**settings)
        self.partition = SharePartition(start, stored, self.settings)

    def fetch(self, want: Acquisition | None = None, now: float = 0.0) -> list[tuple[int, int, int]]:
        if not self.partition.can_acquire:
            return []
        offset = self.partition.next_fetch_offset
        found = [batch for batch in self.log if batch[1] >= offset]
        return [tuple(each) for each in self.partition.acquire(want or wanted(), now, offset, found)]

    def acknowledge(self, first: int, last: int, *types: int, member: str = "m", now: float = 0.0) -> list[StateBatch]:
        transition = self.partition.acknowledge(member, [Acknowledgement(first, last, types)], now)
        batches = transition.batches
        self.partition.complete(transition, now, succeeded=True)
        return batches


def test_records_are_acquired_once() -> None:
    sharing = Sharing((0, 4), (5, 9))
    assert sharing.fetch() == [(0, 9, 1)]
    assert sharing.fetch(wanted("n")) == []
    sharing.log.append((10, 11))
    assert sharing.fetch(wanted("n")) == [(10, 11, 1)]


def test_accepted_records_move_the_start() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    assert sharing.acknowledge(5, 9, ACCEPT) == [(5, 9, State.ACKNOWLEDGED, 1)]
    assert sharing.partition.start_offset == 0
    assert sharing.partition.delivery_complete_count == 5
    sharing.acknowledge(0, 4, ACCEPT)
    assert sharing.partition.start_offset == sharing.partition.next_fetch_offset == 10
    assert sharing.partition.delivery_complete_count == 0


def test_released_records_are_delivered_again() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    assert sharing.acknowledge(2, 4, RELEASE, ACCEPT, RELEASE) == [(2, 2, 0, 1), (3, 3, 2, 1), (4, 4, 0, 1)]
    assert sharing.fetch(wanted("n")) == [(2, 2, 2), (4, 4, 2)]


def test_rejected_records_and_gaps_are_not_delivered_again() -> None:
    sharing = Sharing((0, 3))
    sharing.fetch()
    assert sharing.acknowledge(0, 3, REJECT, REJECT, GAP, GAP) == [(0, 3, State.ARCHIVED, 1)]
    assert sharing.fetch() == []
    assert sharing.partition.start_offset == 4


@pytest.mark.parametrize(("first", "last"), [(0, 10), (11, 12)])
def test_offsets_that_were_never_delivered_cannot_be_acknowledged(first: int, last: int) -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    with pytest.raises(BrokerError) as caught:
        sharing.acknowledge(first, last, ACCEPT)
    assert caught.value.error is Error.INVALID_REQUEST


def test_nobody_acknowledges_what_nobody_acquired() -> None:
    with pytest.raises(BrokerError) as caught:
        Sharing((0, 9)).acknowledge(0, 9, ACCEPT)
    assert caught.value.error is Error.INVALID_RECORD_STATE


def test_nobody_acknowledges_anothers_records() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    with pytest.raises(BrokerError) as caught:
        sharing.acknowledge(0, 9, ACCEPT, member="n")
    assert caught.value.error is Error.INVALID_RECORD_STATE
    sharing.acknowledge(0, 9, ACCEPT)


def test_an_acknowledgement_takes_effect_whole_or_not_at_all() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    both = [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(4, 6, [ACCEPT])]
    with pytest.raises(BrokerError) as caught:
        sharing.partition.acknowledge("m", both, 0.0)
    assert caught.value.error is Error.INVALID_RECORD_STATE
    assert sharing.acknowledge(0, 9, ACCEPT) == [(0, 9, State.ACKNOWLEDGED, 1)]


def test_what_is_below_the_start_is_acknowledged_already() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    sharing.acknowledge(0, 4, ACCEPT)
    assert sharing.acknowledge(0, 4, ACCEPT) == []
    assert sharing.acknowledge(3, 9, ACCEPT) == [(5, 9, State.ACKNOWLEDGED, 1)]


def test_pending_records_are_nobodys() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    transition = sharing.partition.acknowledge("m", [Acknowledgement(0, 9, [RELEASE])], 0.0)
    assert sharing.fetch(wanted("n")) == []
    with pytest.raises(BrokerError):
        sharing.acknowledge(0, 9, ACCEPT)
    sharing.partition.complete(transition, 1.0, succeeded=False)
    assert sharing.acknowledge(0, 9, ACCEPT, now=1.0) == [(0, 9, State.ACKNOWLEDGED, 1)]


def test_what_could_not_be_written_is_given_back_when_its_lock_is_over() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    transition = sharing.partition.acknowledge("m", [Acknowledgement(0, 9, [ACCEPT])], 0.0)
    assert sharing.partition.expire(30.0) == []
    sharing.partition.complete(transition, 30.0, succeeded=False)
    assert sharing.fetch(wanted("n"), 30.0) == [(0, 9, 2)]


def test_locks_end() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    assert sharing.partition.deadline == 30.0
    assert sharing.partition.expire(29.9) == []
    assert sharing.partition.expire(30.0) == [(0, 9, State.AVAILABLE, 1)]
    assert sharing.partition.deadline == math.inf
    assert sharing.fetch(wanted("n"), 30.0) == [(0, 9, 2)]
    with pytest.raises(BrokerError):
        sharing.acknowledge(0, 9, ACCEPT)


def test_renewed_locks_last() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    assert sharing.acknowledge(0, 3, RENEW, now=20.0) == []
    assert sharing.partition.expire(30.0) == [(4, 9, State.AVAILABLE, 1)]
    assert sharing.partition.deadline == 50.0


def test_locks_are_renewed_only_where_the_group_allows_it() -> None:
    sharing = Sharing((0, 9), renew_acknowledge_enable=False)
    sharing.fetch()
    with pytest.raises(BrokerError) as caught:
        sharing.acknowledge(0, 3, RENEW)
    assert caught.value.error is Error.INVALID_RECORD_STATE


def test_a_record_is_delivered_as_often_as_the_limit_says() -> None:
    sharing = Sharing((0, 0), delivery_count_limit=3)
    for count in (1, 2, 3):
        assert sharing.fetch() == [(0, 0, count)]
        sharing.acknowledge(0, 0, RELEASE)
    assert sharing.fetch() == []
    assert sharing.partition.start_offset == 1


def test_a_record_that_is_given_back_often_is_delivered_in_small_company() -> None:
    sharing = Sharing((0, 7))
    for count in (1, 2, 3):
        assert sharing.fetch() == [(0, 7, count)]
        sharing.acknowledge(0, 7, RELEASE)
        if count == 2:
            break
    assert sharing.fetch() == [(0, 7, 3)]
    sharing.acknowledge(0, 7, RELEASE)
    assert sharing.fetch() == [(0, 3, 4)]
    assert sharing.fetch() == [(4, 7, 4)]
    sharing.acknowledge(0, 7, RELEASE)
    assert [sharing.fetch() for _ in range(3)] == [[(0, 0, 5)], [(1, 1, 5)], [(2, 2, 5)]]


def test_no_more_records_are_in_flight_than_allowed() -> None:
    sharing = Sharing((0, 6), (7, 9), (10, 14), max_record_locks=8)
    assert sharing.fetch() == [(0, 9, 1)]
    assert not sharing.partition.can_acquire
    sharing.acknowledge(0, 2, RELEASE)
    assert sharing.fetch() == [(0, 2, 2)]
    sharing.acknowledge(0, 6, ACCEPT)
    assert sharing.fetch() == [(10, 14, 1)]


def test_log_batches_are_acquired_whole() -> None:
    sharing = Sharing((0, 6), (7, 9), (10, 14))
    assert sharing.fetch(wanted(records=3)) == [(0, 6, 1)]
    assert sharing.fetch(wanted(records=4)) == [(7, 14, 1)]


def test_with_a_record_limit_log_batches_are_cut() -> None:
    sharing = Sharing((0, 6), (7, 9))
    assert sharing.fetch(wanted(records=3, record_limit=True)) == [(0, 2, 1)]
    assert sharing.fetch(wanted(records=5, record_limit=True)) == [(3, 7, 1)]
    sharing.acknowledge(0, 7, RELEASE)
    assert sharing.fetch(wanted(records=4, record_limit=True)) == [(0, 2, 2), (3, 3, 2)]


def test_acquired_records_come_in_batches() -> None:
    sharing = Sharing(*((base, base + 1) for base in range(0, 10, 2)))
    assert sharing.fetch(wanted(batch_size=3)) == [(0, 3, 1), (4, 7, 1), (8, 9, 1)]


def test_what_the_log_has_no_more_is_passed_over() -> None:
    sharing = Sharing((0, 4), (5, 9))
    sharing.fetch(wanted(records=5))
    sharing.acknowledge(0, 4, RELEASE)
    sharing.log = [(5, 9), (20, 24)]
    assert sharing.fetch() == [(5, 24, 1)]
    assert sharing.partition.start_offset == 5


def test_a_hole_before_the_first_record_moves_the_start() -> None:
    sharing = Sharing((10, 14))
    assert sharing.fetch() == [(10, 14, 1)]
    assert sharing.partition.start_offset == 10


def test_when_the_log_starts_later_everything_before_is_forgotten() -> None:
    sharing = Sharing((0, 9))
    sharing.fetch()
    sharing.partition.forget_below(5)
    assert sharing.partition.start_offset == 5
    assert sharing.acknowledge(0, 9, ACCEPT) == [(5, 9, State.ACKNOWLEDGED, 1)]
    sharing.partition.forget_below(20)
    assert sharing.partition.start_offset == sharing.partition.next_fetch_offset == 20


def test_a_member_that_goes_gives_its_records_back() -> None:
    sharing = Sharing((0, 4), (5, 9))
    sharing.fetch(wanted(records=5))
    sharing.fetch(wanted("n"))
    transition = sharing.partition.release("m")
    assert transition.batches == [(0, 4, State.AVAILABLE, 1)]
    sharing.partition.complete(transition, 0.0, succeeded=True)
    assert sharing.fetch(wanted("n")) == [(0, 4, 2)]


def test_aborted_records_are_done_with() -> None:
    sharing = Sharing((0, 9))
    acquired = [AcquiredRecords(*each) for each in sharing.fetch()]
    assert sharing.partition.archive(acquired, 3, 5) == [(0, 2, 1), (6, 9, 1)]
    sharing.acknowledge(0, 2, ACCEPT)
    assert sharing.partition.start_offset == 6


def test_stored_state_is_taken_up() -> None:
    sharing = Sharing((0, 19), start=2, stored=(StateBatch(2, 3, 2, 1), StateBatch(6, 7, 4, 5), StateBatch(8, 9, 0, 1)))
    assert sharing.partition.start_offset == 4
    assert sharing.fetch() == [(4, 5, 1), (8, 9, 2), (10, 19, 1)]
