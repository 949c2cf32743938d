"""Arrays by column: what is read and written that way is what is read and written element by element.

Invariant: whatever the elements, their bytes are the same, and so is what is read from them.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek_protocol.codec import decode, encode
from odradek_protocol.columns import MANY, Columns, Fields, Layout
from odradek_protocol.errors import ProtocolError
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek_protocol.schema import NULL_UUID, array, int32, string, struct

FIXED_LENGTHS, COMPACT = 7, 8
"""Versions of OffsetCommit without and with compact lengths."""

versions = st.sampled_from([1, FIXED_LENGTHS, COMPACT, 10])


def request_topic(metadata: Sequence[str | None], version: int) -> OffsetCommitRequestTopic:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=index << 33,
            committed_leader_epoch=index if version >= 6 else -1,
            commit_timestamp=7 if version == 1 else -1,
            committed_metadata=text,
        )
        for index, text in enumerate(metadata)
    ]
    return OffsetCommitRequestTopic(name="t" if version < 10 else "", topic_id=NULL_UUID, partitions=partitions)


def there_and_back(topic: OffsetCommitRequestTopic, version: int) -> OffsetCommitRequestTopic:
    flexible = version >= COMPACT
    return decode(OffsetCommitRequestTopic, version, encode(topic, version, flexible=flexible), flexible=flexible)


@given(st.none() | st.text(max_size=150), st.integers(1, 120) | st.sampled_from([256, 257, 600]), versions)
def test_texts_of_one_length_are_read_by_column(text: str | None, count: int, version: int) -> None:
    topic = request_topic([text] * count, version)
    read = there_and_back(topic, version)
    assert read == topic
    compact = version >= COMPACT and text is not None and len(text.encode()) > 126
    assert isinstance(read.partitions, list if compact or count < MANY else Columns)
    columns = Fields("partition_index", "committed_metadata", "commit_timestamp").columns(read.partitions)
    expected = range(count), [text] * count, [7 if version == 1 else -1] * count
    assert [list(column) for column in columns] == [list(column) for column in expected]


@given(st.lists(st.sampled_from(["", "a", "ä", None, "bb"]), max_size=5), versions)
def test_texts_of_any_length_are_read(metadata: list[str | None], version: int) -> None:
    topic = request_topic(metadata, version)
    assert there_and_back(topic, version) == topic


@given(st.lists(st.tuples(st.integers(-5, 1 << 30), st.integers(-1, 200)), max_size=600), versions)
def test_columns_are_written_as_their_elements_are(rows: list[tuple[int, int]], version: int) -> None:
    indexes, errors = [index for index, _ in rows], [error for _, error in rows]
    flexible = version >= COMPACT
    elements = [OffsetCommitResponsePartition(partition_index=index, error_code=error) for index, error in rows]
    columns = Columns(OffsetCommitResponsePartition, len(rows), {"partition_index": indexes, "error_code": errors})
    written = [
        encode(OffsetCommitResponseTopic(name="", partitions=partitions), version, flexible=flexible)
        for partitions in (elements, columns)
    ]
    assert written[0] == written[1]


def test_what_the_columns_cannot_hold_is_refused() -> None:
    columns = Columns(OffsetCommitResponsePartition, 1, {"partition_index": [1 << 31], "error_code": [0]})
    with pytest.raises(ProtocolError):
        encode(OffsetCommitResponseTopic(name="", partitions=columns), FIXED_LENGTHS, flexible=False)


@pytest.mark.parametrize("version", [FIXED_LENGTHS, COMPACT])
def test_elements_that_are_cut_short_are_refused(version: int) -> None:
    flexible = version >= COMPACT
    in_bytes = encode(request_topic(["ab"] * 3, version), version, flexible=flexible)
    for end in range(len(in_bytes)):
        with pytest.raises(ProtocolError):
            decode(OffsetCommitRequestTopic, version, in_bytes[:end], flexible=flexible)


@pytest.mark.parametrize("version", [FIXED_LENGTHS, COMPACT])
def test_a_text_that_is_no_utf_8_is_refused(version: int) -> None:
    flexible = version >= COMPACT
    in_bytes = encode(request_topic(["ab"] * 3, version), version, flexible=flexible)
    with pytest.raises(ProtocolError):
        decode(OffsetCommitRequestTopic, version, in_bytes.replace(b"ab", b"\xff\xfe"), flexible=flexible)


@struct
class Strict:
    number: int = int32()
    text: str = string()


@struct
class Outer:
    elements: Sequence[Strict] = array(Strict, by_column=True)


@struct
class TextFirst:
    text: str = string()
    number: int = int32()


def test_a_null_where_none_may_be_is_refused() -> None:
    with pytest.raises(ProtocolError, match="text is null"):
        decode(Outer, 0, bytes.fromhex("00000001 00000007 ffff"), flexible=False)


def test_elements_are_copies() -> None:
    columns = Columns(Strict, 3, {"number": [1, 2, 3], "text": "abc"})
    columns[0].number = 9
    assert columns[0] == Strict(number=1, text="a")
    assert columns[1:] == [Strict(number=2, text="b"), Strict(number=3, text="c")]
    assert repr(columns[:1]) == "[Strict(number=1, text='a')]"


def test_a_struct_that_lies_otherwise_is_no_layout() -> None:
    with pytest.raises(TypeError, match="TextFirst"):
        Layout(TextFirst, 0, flexible=False)
