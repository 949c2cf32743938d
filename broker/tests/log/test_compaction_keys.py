"""The scan of a batch's keys, against the records as they are read one by one: runs of like ones, and their ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log.compaction.keys import Scan
from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import HEADER_SIZE
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.read import read_records

Kind = tuple[int | None, int | None, int]
"""The sizes of a record's key and of its value, and its timestamp."""

KEYS = st.sampled_from([None, 0, 1, 10, 63, 64])
VALUES = st.sampled_from([None, 0, 30, 64, 9000])
TIMES = st.sampled_from([0, 0, 0, 63, 64, 10_000])


def build(kinds: list[Kind]) -> tuple[bytes, bytes]:
    """A batch, and the records in it."""
    records = [
        NewRecord(
            None if key is None else b"%d" % number + b"k" * key,
            None if value is None else b"v" * value,
            timestamp_ms=1000 + time,
        )
        for number, (key, value, time) in enumerate(kinds)
    ]
    batch = bytes(build_batch(records))
    return batch, batch[HEADER_SIZE:]


def check(kinds: list[Kind]) -> None:
    batch, records = build(kinds)
    expected = list(read_records(batch))
    scan = Scan(records, len(expected), len(expected) - 1)
    assert scan.deltas == [record.offset for record in expected]
    assert scan.keys == [record.key or b"" for record in expected]
    assert scan.keyless == [number for number, record in enumerate(expected) if record.key is None]
    assert scan.tombstones == [number for number, record in enumerate(expected) if record.value is None]
    assert scan.longest_key == max(map(len, scan.keys), default=0)
    assert (scan.starts[0], scan.starts[-1], len(scan.starts)) == (0, len(records), len(expected) + 1)


@given(st.lists(st.tuples(st.tuples(KEYS, VALUES, TIMES), st.integers(1, 90)), min_size=1, max_size=6))
def test_runs_of_any_length(runs: list[tuple[Kind, int]]) -> None:
    check([kind for kind, count in runs for _ in range(count)])


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193, 8300])
def test_deltas_of_one_two_and_three_bytes(count: int) -> None:
    check([(10, 0, 0)] * count)


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_byte_that_is_another_breaks_nothing_or_the_scan(position: int, byte: int) -> None:
    _, records = build([(10, 30, 0)] * 70)
    position %= len(records)
    broken = records[:position] + bytes((byte,)) + records[position + 1 :]
    try:
        scan = Scan(broken, 70, 69)
    except ProtocolError:
        return
    assert len(scan.keys) == len(scan.deltas) == len(scan.starts) - 1 == 70
    assert all(0 <= delta <= 69 for delta in scan.deltas)


def test_what_the_header_says_of_them_holds() -> None:
    _, records = build([(10, 30, 0)] * 70)
    for count, last_delta, data in ((71, 70, records), (69, 68, records), (70, 68, records), (70, 69, records[:-1])):
        with pytest.raises(ProtocolError):
            Scan(data, count, last_delta)
