"""Every message that kafka-python has too: what one library writes, the other one reads as the same.

Fields are paired by their place in the version, or by their tag, because the names differ here and there.
"""

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from odradek_protocol.codec import decode, encode
from odradek_protocol.messages.api_versions import ApiVersionsResponse
from odradek_protocol.schema import NULL_UUID, Field, Struct

from .kafka_python import message_class
from .strategies import CASES, Case, filled, messages

few = settings(max_examples=5, derandomize=True, suppress_health_check=list(HealthCheck))

NO_OPERATIONS = -(1 << 31)


def _their_class(case: Case) -> Any:
    """kafka-python's class of that name if it has the version, else None."""
    theirs = message_class(case.kind.__name__)
    if theirs is None:
        return None
    first, last = theirs.valid_versions
    return theirs if first <= case.version <= last else None


def _pairs(kind: type[Struct], their_struct: Any, version: int) -> list[tuple[Field, Any]]:
    """Each of our fields in `version` with theirs."""
    ours = [field for field in kind.FIELDS if field.in_version(version)]
    inline = [field for field in ours if field.tag is None]
    their_inline = their_struct.untagged_fields(version)
    assert len(inline) == len(their_inline)
    their_tagged = {field.tag: field for field in their_struct.fields.values() if field.tag is not None}
    tagged = [(field, their_tagged[field.tag]) for field in ours if field.tag is not None]
    return [*zip(inline, their_inline, strict=True), *tagged]


def _to_theirs(message: Struct, their_class: Any, version: int) -> Any:
    struct = their_class._struct
    values = {
        theirs.name: _value_to_theirs(getattr(message, ours.name), ours, theirs, version)
        for ours, theirs in _pairs(type(message), struct, version)
    }
    return their_class(version=version, **values)


def _value_to_theirs(value: Any, ours: Field, theirs: Any, version: int) -> Any:
    if value is None:
        return None
    if theirs.is_struct():
        return _to_theirs(value, theirs.data_class, version)
    if theirs.is_struct_array():
        return [_to_theirs(each, theirs.data_class, version) for each in value]
    if theirs.is_array():
        return [_value_to_theirs(each, ours, theirs.array_of, version) for each in value]
    if theirs.type_str == "bitfield":
        return {bit for bit in range(32) if value >> bit & 1} if value != NO_OPERATIONS else None
    if theirs.type_str.endswith("uuid"):
        return uuid.UUID(bytes=value)
    return value


def _to_ours(message: Any, kind: type[Struct], version: int) -> Struct:
    values = {field.name: field.absent_value for field in kind.FIELDS}
    for ours, theirs in _pairs(kind, message._struct, version):
        value = getattr(message, theirs.name)
        if ours.tag is None or value != theirs.default:
            values[ours.name] = _value_to_ours(value, ours, theirs, version)
    return kind(**values)


def _value_to_ours(value: Any, ours: Field, theirs: Any, version: int) -> Any:
    if theirs.type_str == "bitfield":
        bits = NO_OPERATIONS if value is None else sum(1 << bit for bit in value)
        return bits - (1 << 32) if bits >= 1 << 31 else bits
    if theirs.is_array() and not theirs.is_struct_array() and value is not None:
        return [_value_to_ours(each, ours, theirs.array_of, version) for each in value]
    if theirs.type_str.endswith("uuid"):
        return NULL_UUID if value is None else value.bytes
    if value is None or not isinstance(ours.of, type):
        return value
    if theirs.is_struct_array():
        return [_to_ours(each, ours.of, version) for each in value]
    return _to_ours(value, ours.of, version)


SHARED = [case for case in CASES if _their_class(case) is not None]


def test_most_messages_are_compared() -> None:
    assert len({case.kind for case in SHARED}) >= 60


@pytest.mark.parametrize("case", SHARED, ids=str)
def test_kafka_python_reads_what_we_write_and_the_reverse(case: Case) -> None:
    their_class = _their_class(case)

    def compare(message: Any) -> None:
        if case.kind is ApiVersionsResponse and case.version > 0:
            message.error_code = 0  # a reply with an error is read as version 0 there, as which it is sent (KIP-511)
        in_bytes = encode(message, case.version, flexible=case.flexible)
        read_there = their_class.decode(in_bytes, version=case.version, header=False)
        assert _to_ours(read_there, case.kind, case.version) == message
        written_there = _to_theirs(message, their_class, case.version).encode(version=case.version, header=False)
        assert decode(case.kind, case.version, written_there, flexible=case.flexible) == message

    compare(filled(case.kind, case.version))
    few(given(messages(case.kind, case.version))(compare))()
