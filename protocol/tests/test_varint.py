"""Variable-length integers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek_protocol.errors import ProtocolError
from odradek_protocol.varint import (
    UVARINTS,
    decode_uvarint,
    decode_varint,
    encode_uvarint,
    encode_varint,
)

thorough = settings(max_examples=300, derandomize=True)


@pytest.mark.parametrize(
    ("value", "in_bytes"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        ((1 << 31) - 1, "ffffffff07"),
        ((1 << 32) - 1, "ffffffff0f"),
    ],
)
def test_unsigned(value: int, in_bytes: str) -> None:
    assert encode_uvarint(value).hex() == in_bytes
    assert decode_uvarint(bytes.fromhex(in_bytes), 0) == (value, len(in_bytes) // 2)


@pytest.mark.parametrize(
    ("value", "in_bytes"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        ((1 << 31) - 1, "feffffff0f"),
        (-(1 << 31), "ffffffff0f"),
        ((1 << 63) - 1, "feffffffffffffffff01"),
        (-(1 << 63), "ffffffffffffffffff01"),
    ],
)
def test_zigzag(value: int, in_bytes: str) -> None:
    assert encode_varint(value).hex() == in_bytes
    assert decode_varint(bytes.fromhex(in_bytes), 0) == (value, len(in_bytes) // 2)


@thorough
@given(st.integers(0, (1 << 32) - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_unsigned_comes_back(value: int, before: bytes, behind: bytes) -> None:
    in_bytes = encode_uvarint(value)
    assert decode_uvarint(memoryview(before + in_bytes + behind), len(before)) == (value, len(before) + len(in_bytes))


@thorough
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_zigzag_comes_back(value: int, before: bytes, behind: bytes) -> None:
    in_bytes = encode_varint(value)
    assert decode_varint(memoryview(before + in_bytes + behind), len(before)) == (value, len(before) + len(in_bytes))


def test_longer_forms_of_a_value_are_read() -> None:
    assert decode_uvarint(bytes.fromhex("8100"), 0) == (1, 2)
    assert decode_varint(bytes.fromhex("828000"), 0) == (1, 3)


@pytest.mark.parametrize("in_bytes", ["ffffffff10", "ffffffffff00", "808080808000"])
def test_more_than_32_bits_are_refused(in_bytes: str) -> None:
    with pytest.raises(ProtocolError, match="32 bits"):
        decode_uvarint(bytes.fromhex(in_bytes), 0)


@pytest.mark.parametrize("in_bytes", ["ffffffffffffffffff02", "8080808080808080808000"])
def test_more_than_64_bits_are_refused(in_bytes: str) -> None:
    with pytest.raises(ProtocolError, match="64 bits"):
        decode_varint(bytes.fromhex(in_bytes), 0)


@pytest.mark.parametrize("in_bytes", ["", "80", "ffffff"])
def test_the_end_of_the_data_is_an_index_error(in_bytes: str) -> None:
    with pytest.raises(IndexError):
        decode_uvarint(bytes.fromhex(in_bytes), 0)
    with pytest.raises(IndexError):
        decode_varint(bytes.fromhex(in_bytes), 0)


def test_the_table_of_small_values() -> None:
    assert [decode_uvarint(in_bytes, 0)[0] for in_bytes in UVARINTS] == list(range(256))
