"""The made-up activity, and what it should come to."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.events import Fault
from pipeline.generator import CLICKS_IN_TRANSACTION, Fate, Plan, generate
from pipeline.produce import read_note, write_note
from pipeline.settings import Settings
from pipeline.topics import AD_CLICKS, PAGE_VIEWS, USERS
from pipeline.truth import Session, derive

if TYPE_CHECKING:
    from pathlib import Path

PLAN = Plan(seed=7, start_ms=1_790_000_000_000, rate=100)
SETTINGS = Settings("", "", "")
RECORDS = list(itertools.islice(generate(PLAN), 20_000))


def test_the_same_plan_gives_the_same_records(tmp_path: Path) -> None:
    write_note(tmp_path / "note.json", PLAN, 5000)
    assert read_note(tmp_path / "note.json") == RECORDS[:5000]
    assert list(itertools.islice(generate(Plan(seed=8, start_ms=PLAN.start_ms, rate=100)), 5000)) != RECORDS[:5000]


def test_every_fate_happens_and_each_fault_has_its_name() -> None:
    assert {record.fate for record in RECORDS} == set(Fate)
    assert {fault.value for fault in Fault} < {fate.value for fate in Fate}


def test_records_arrive_in_order_at_their_rate() -> None:
    times = [record.timestamp_ms for record in RECORDS]
    assert times == sorted(times)
    events = sum(record.topic != USERS and record.fate is not Fate.DUPLICATE for record in RECORDS)
    assert events / (times[-1] - times[0]) * 1000 == pytest.approx(PLAN.rate, rel=0.02)


def test_what_lands_is_in_time_and_what_is_late_is_not() -> None:
    for record in RECORDS:
        if record.event is not None and record.fate in (Fate.LANDED, Fate.LATE):
            late = record.timestamp_ms - record.event.event_time_ms > PLAN.late_after_s * 1000
            assert late == (record.fate is Fate.LATE)


def test_a_duplicate_has_the_bytes_of_a_record_before_it() -> None:
    seen = set()
    for record in RECORDS:
        if record.fate is Fate.DUPLICATE:
            assert (record.topic, record.value) in seen
        seen.add((record.topic, record.value))


def test_a_transaction_is_committed_or_aborted_as_a_whole() -> None:
    aborted: dict[int, set[bool]] = {}
    for record in RECORDS:
        assert (record.transaction is not None) == (record.topic == AD_CLICKS)
        if record.transaction is not None:
            aborted.setdefault(record.transaction, set()).add(record.fate is Fate.ABORTED)
    assert all(len(ways) == 1 for ways in aborted.values())
    sizes = Counter(record.transaction for record in RECORDS if record.transaction is not None)
    assert set(list(sizes.values())[:-1]) == {CLICKS_IN_TRANSACTION}


def test_truth_is_told_of_what_landed() -> None:
    truth = derive(RECORDS, SETTINGS)
    landed = [record for record in RECORDS if record.fate is Fate.LANDED]
    assert len(truth.landed) == len(landed)
    assert not truth.aborted & truth.landed.keys()
    people = [record for record in landed if record.topic == PAGE_VIEWS and b'"bot"' not in (record.value or b"")]
    assert truth.views.total() == 2 * len(people)
    costs = [json.loads(record.value or b"{}").get("cost_cents", 0) for record in landed]
    assert truth.cost_cents == sum(costs) > 0
    assert truth.conversions.keys() <= truth.landed.keys()
    assert set(truth.conversions.values()) <= truth.landed.keys()
    assert truth.dead.keys() == {fault.value for fault in Fault}


def test_sessions_do_not_overlap_and_cover_all_that_people_did() -> None:
    truth = derive(RECORDS, SETTINGS)
    gap_ms = SETTINGS.session_gap_s * 1000
    for before, after in itertools.pairwise(truth.sessions):
        assert before.user_id != after.user_id or after.start_ms > before.end_ms + gap_ms
    for event in itertools.islice(truth.landed.values(), 0, None, 100):
        own = [one for one in truth.sessions if one.user_id == event.user_id]
        within = [one for one in own if one.start_ms <= event.event_time_ms <= one.end_ms]
        assert len(within) == (not event.by_bot)
    closed = truth.closed_sessions(SETTINGS)
    assert 0 < len(closed) < len(truth.sessions)
    assert Session(closed[0].user_id, closed[0].start_ms, closed[0].end_ms) in truth.sessions


@pytest.mark.parametrize(
    ("changes", "said"), [({"rate": 4.9}, "at least 5 events/s"), ({"late_after_s": 8}, "out of order")]
)
def test_a_plan_that_makes_no_sense_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(PLAN, **changes)
