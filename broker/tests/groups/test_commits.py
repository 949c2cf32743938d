"""Commits as records. Invariant: however they are written, they are the records of the commits one by one."""

import tracemalloc

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from odradek.groups.commits import BYTES_KEPT, NOW, ROWS_AT_ONCE, NewOffsets, encode_alone, encode_commits
from odradek.groups.offsets import Commit, CommittedOffset
from odradek.groups.records import offset_key, offset_value
from odradek_protocol.records.batch import RecordBatch, read_header
from odradek_protocol.records.build import encode_keyed, wrap_keyed

NOW_MS = 1_700_000_000_000
counts = st.integers(1, 6) | st.sampled_from([70, ROWS_AT_ONCE, ROWS_AT_ONCE + 7])
offsets = st.integers(-1, 1 << 40)


@st.composite
def commits(draw: st.DrawFn) -> NewOffsets:
    """With values of which all, some or none are alike."""
    count = draw(counts)

    def column(values: st.SearchStrategy[object]) -> list[object]:
        some = draw(st.lists(values, min_size=1, max_size=3))
        return [some[row % len(some)] for row in range(count)]

    apart = draw(st.sampled_from([1, 300]))
    partitions = [row * apart for row in range(count)]
    first, step = draw(offsets), draw(st.integers(0, 1000))
    return NewOffsets(
        draw(st.text(min_size=1, max_size=9)),
        partitions,
        draw(st.sampled_from([[first + step * row for row in range(count)], column(offsets)])),
        column(st.integers(-1, 1 << 20)),
        column(st.sampled_from([NOW, 5, NOW_MS])),
        column(st.text(max_size=3)),
    )


@given(commits(), st.integers(0, 200), st.sampled_from([-1, NOW_MS + 1]), st.integers(0, 1 << 40))
def test_commits_are_written_as_one_by_one(new: NewOffsets, first: int, expire_ms: int, record_offset: int) -> None:
    commit = new.committed(NOW_MS, expire_ms, record_offset)
    committed = [CommittedOffset._make(row) for row in commit.rows()]
    assert [each.record_offset for each in committed] == list(range(record_offset, record_offset + len(committed)))
    assert [each.commit_timestamp_ms for each in committed] == [
        NOW_MS if time == NOW else time for time in new.timestamps_ms
    ]
    assert [each.leader_epoch for each in committed] == list(new.leader_epochs)
    written, one_by_one = bytearray(), bytearray()
    encode_commits(written, first, "group", commit)
    keys = [offset_key("group", new.topic, partition) for partition in new.partitions]
    encode_keyed(one_by_one, first, list(zip(keys, map(offset_value, committed), strict=True)))
    assert written == one_by_one


@given(commits(), st.sampled_from([-1, NOW_MS + 1]))
def test_a_commit_alone_is_the_batch_of_its_records(new: NewOffsets, expire_ms: int) -> None:
    commit = new.committed(NOW_MS, expire_ms, 7)
    alone = encode_alone("group", commit, NOW_MS)
    if len(set(new.metadata)) > 1 or expire_ms >= 0 or len(new.partitions) > ROWS_AT_ONCE:
        assert alone is None
        return
    assert alone is not None
    batch, header = alone
    body = bytearray()
    encode_commits(body, 0, "group", commit)
    assert batch == wrap_keyed(body, len(new.partitions), NOW_MS)
    read = read_header(batch)
    assert all(getattr(header, name) == getattr(read, name) for name in RecordBatch.__slots__)


def _checked(group_id: str, commit: Commit) -> int:
    alone = encode_alone(group_id, commit, NOW_MS)
    assert alone is not None
    return crc32c(alone[0])


def test_what_is_kept_stays_within_its_bytes() -> None:
    """Group ids may be long: then few are kept, and what was forgotten is written as before."""
    new = NewOffsets("t", range(100), range(100), [-1] * 100, [NOW] * 100, [""] * 100)
    commit = new.committed(NOW_MS, -1, 0)
    groups = [f"{number:030000}" for number in range(12)]
    tracemalloc.start()
    try:
        batches = [_checked(group, commit) for group in groups]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * BYTES_KEPT
    assert [_checked(group, commit) for group in groups] == batches
