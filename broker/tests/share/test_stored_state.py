"""What is stored of share partitions: Kafka's records, and batches laid over each other."""

import pytest

from odradek.share.in_flight import StateBatch
from odradek.share.stored_state import SharePartitionKey, StoredState, Update, combined, decode_key, decode_value

KEY = SharePartitionKey("g", bytes(range(16)), 3)
STATE = StoredState(2, 5, 1, 10, 4, 100, 200, [StateBatch(12, 15, 2, 1)])


def test_keys_are_kafkas() -> None:
    topic_id = bytes(range(16)).hex()
    assert KEY.snapshot_key() == bytes.fromhex("0000 000167" + topic_id + "00000003")
    assert KEY.update_key() == bytes.fromhex("0001 000167" + topic_id + "00000003")
    assert decode_key(KEY.snapshot_key()) == (KEY, True)
    assert decode_key(KEY.update_key()) == (KEY, False)
    assert decode_key(b"\x00\x09") is None


def test_values_come_back() -> None:
    assert decode_value(STATE.value(), is_snapshot=True) == STATE
    update = Update(2, 1, 12, 3, [StateBatch(12, 12, 4, 5)])
    assert decode_value(update.value(), is_snapshot=False) == update


def test_an_update_changes_what_it_names() -> None:
    state = STATE.updated(Update(2, -1, -1, 3, [StateBatch(15, 16, 0, 2)]))
    assert (state.start_offset, state.leader_epoch, state.delivery_complete_count, state.updates) == (10, 1, 3, 1)
    assert state.batches == [StateBatch(12, 14, 2, 1), StateBatch(15, 16, 0, 2)]
    assert state.updated(Update(2, 4, 14, 0, ())).batches == [StateBatch(14, 14, 2, 1), StateBatch(15, 16, 0, 2)]


@pytest.mark.parametrize(
    ("old", "new", "start", "expected"),
    [
        ([(0, 9, 0, 1)], [(0, 9, 2, 1)], -1, [(0, 9, 2, 1)]),
        ([(0, 9, 0, 2)], [(3, 5, 2, 1)], -1, [(0, 9, 0, 2)]),
        ([(0, 9, 0, 1)], [(3, 5, 2, 1)], -1, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 1)], -1, [(0, 9, 2, 1)]),
        ([(0, 4, 2, 1)], [(7, 9, 2, 1)], 3, [(3, 4, 2, 1), (7, 9, 2, 1)]),
        ([], [], -1, []),
    ],
)
def test_batches_that_overlap(
    old: list[tuple[int, int, int, int]],
    new: list[tuple[int, int, int, int]],
    start: int,
    expected: list[tuple[int, int, int, int]],
) -> None:
    batches = combined([StateBatch(*each) for each in old], [StateBatch(*each) for each in new], start)
    assert batches == [StateBatch(*each) for each in expected]
