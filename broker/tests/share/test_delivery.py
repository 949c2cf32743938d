"""How much of the log is read for a member: what it may acquire, and little more."""

import copy
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import EVERYTHING, NOW_MS, Opener, records

from odradek.share.delivery import FIRST_READ_BYTES, read_until
from odradek.share.share_partition import ACCEPT, RELEASE, Acknowledgement, Acquisition, SharePartition

LOG = [(first, first + 4) for first in range(0, 60, 5)]


@dataclass
class Settings:
    delivery_count_limit: int = 5
    max_record_locks: int = 40
    record_lock_duration_ms: int = 30_000
    renew_acknowledge_enable: bool = True


STEP = st.tuples(st.integers(1, 20), st.integers(1, 12), st.booleans(), st.sets(st.integers(0, 30)))


@given(steps=st.lists(STEP, min_size=1, max_size=12))
def test_the_log_batches_within_reach_are_all_that_an_acquisition_needs(
    steps: list[tuple[int, int, bool, set[int]]],
) -> None:
    partition = SharePartition(0, (), Settings())
    for max_records, batch_size, record_limit, released in steps:
        if not partition.can_acquire:
            break
        offset = partition.next_fetch_offset
        found = [batch for batch in LOG if batch[1] >= offset]
        reach = partition.reach(offset, max_records)
        within = [batch for batch in found if batch[0] <= reach]
        wanted = Acquisition("m", max_records, batch_size, record_limit)
        expected = copy.deepcopy(partition).acquire(wanted, 0.0, offset, found)
        acquired = partition.acquire(wanted, 0.0, offset, within)
        assert acquired == expected
        said = [
            Acknowledgement(each, each, (RELEASE if each % 31 in released else ACCEPT,))
            for run in acquired
            for each in range(run.first_offset, run.last_offset + 1)
        ]
        partition.complete(partition.acknowledge("m", said, 0.0), 0.0, succeeded=True)


@pytest.mark.parametrize("value_bytes", [10, 1_000, 100_000, 200_000])
def test_batches_are_read_until_the_last_offset_that_is_needed(tmp_path: Path, value_bytes: int) -> None:
    opener = Opener(tmp_path)
    opener.config.segment_bytes = 1 << 30
    log = opener()
    for _ in range(40):
        log.append_as_leader(records(*[bytes(value_bytes)] * 5), 0, NOW_MS)
    whole = log.read(0, EVERYTHING, log.log_end_offset, at_least_one=True)
    assert whole is not None
    for last in (0, 4, 5, 77, 198, 199, 500):
        data, batches = read_until(whole, last)
        end = [position + batch.size for position, batch in batches][-1]
        assert batches[-1][1].last_offset == min(last // 5 * 5 + 4, 199)
        assert len(data) <= 2 * end + FIRST_READ_BYTES
