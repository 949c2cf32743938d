"""The codec with every message in every version that is served.

Traps of compatibility.md that are tested here: T09 and T10.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek_protocol.codec import decode, encode
from odradek_protocol.errors import ProtocolError
from odradek_protocol.schema import Field, Struct, struct

from .strategies import CASES, Case, filled, messages

each_case = pytest.mark.parametrize("case", CASES, ids=str)
few = settings(max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck))


@each_case
def test_message_comes_back_as_it_was(case: Case) -> None:
    @few
    @given(messages(case.kind, case.version))
    def check(message: Struct) -> None:
        in_bytes = encode(message, case.version, flexible=case.flexible)
        assert decode(case.kind, case.version, in_bytes, flexible=case.flexible) == message

    check()


@each_case
def test_message_cut_short_is_refused(case: Case) -> None:
    in_bytes = encode(filled(case.kind, case.version), case.version, flexible=case.flexible)
    for end in range(len(in_bytes)):
        with pytest.raises(ProtocolError):
            decode(case.kind, case.version, in_bytes[:end], flexible=case.flexible)


@each_case
def test_bytes_behind_a_message_are_not_looked_at(case: Case) -> None:
    """T10: Kafka takes a request with bytes behind it."""
    message = filled(case.kind, case.version)
    in_bytes = encode(message, case.version, flexible=case.flexible) + b"\xff\xff\xff"
    assert decode(case.kind, case.version, in_bytes, flexible=case.flexible) == message


@each_case
def test_message_of_random_bytes_is_read_or_refused(case: Case) -> None:
    in_bytes = encode(filled(case.kind, case.version), case.version, flexible=case.flexible)
    changes = st.tuples(st.integers(0, len(in_bytes)), st.integers(0, 4), st.binary(max_size=8))

    @few
    @given(changes, st.binary(max_size=64))
    def check(change: tuple[int, int, bytes], noise: bytes) -> None:
        position, width, inserted = change
        for junk in (in_bytes[:position] + inserted + in_bytes[position + width :], noise):
            try:
                message = decode(case.kind, case.version, junk, flexible=case.flexible)
            except ProtocolError:
                continue
            assert isinstance(message, case.kind)

    check()


@pytest.mark.parametrize("case", [case for case in CASES if case.flexible], ids=str)
def test_unknown_tags_are_skipped(case: Case) -> None:
    """T09: an unknown tag in every struct of the message."""
    message = filled(case.kind, case.version)
    in_bytes = encode(_with_unknown_tags(message), case.version, flexible=True)
    assert in_bytes.count(b"surprise") >= 1
    assert decode(case.kind, case.version, in_bytes, flexible=True) == message


def _with_unknown_tags(message: Struct) -> Struct:
    """`message` as a sender would make it whose structs all have one more tagged field, of tag 99."""
    fields: dict[str, Field] = {}
    values: dict[str, Any] = {"unknown": b"surprise"}
    for field in message.FIELDS:
        value, of = getattr(message, field.name), field.of
        if isinstance(of, type) and value:
            value = [_with_unknown_tags(each) for each in value] if field.kind == "array" else _with_unknown_tags(value)
            of = type(value[0] if field.kind == "array" else value)
        values[field.name] = value
        fields[field.name] = Field(
            field.kind,
            since=field.since,
            until=field.until,
            nullable_since=field.nullable_since,
            default=None,
            tag=field.tag,
            of=of,
        )
    fields["unknown"] = Field("bytes", default=b"", tag=99)
    extended = struct(type(type(message).__name__, (), {**fields, "__annotations__": dict.fromkeys(fields)}))
    return extended(**values)
