"""The rules of the format one by one; `test_each_message` has every message.

Traps of compatibility.md that are tested here: T09, T10, T13, T14 and T15.
"""

import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from odradek_protocol.codec import decode, encode, encoder
from odradek_protocol.errors import ProtocolError
from odradek_protocol.messages.api_versions import ApiVersionsResponse
from odradek_protocol.messages.create_partitions import CreatePartitionsRequest
from odradek_protocol.messages.describe_configs import DescribeConfigsRequest
from odradek_protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek_protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek_protocol.messages.offset_fetch import OffsetFetchRequest
from odradek_protocol.schema import (
    Records,
    array,
    boolean,
    data,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)
from odradek_protocol.varint import encode_uvarint


@struct
class Everything:
    truth: bool = boolean()
    byte: int = int8()
    short: int = int16()
    port: int = uint16()
    number: int = int32()
    unsigned: int = uint32()
    long: int = int64()
    ratio: float = float64()
    id: bytes = uuid()
    numbers: Sequence[int] = array(int16())
    ids: Sequence[bytes] = array(uuid())
    tail: int = int8()


EVERYTHING = Everything(
    truth=True,
    byte=-2,
    short=-3,
    port=0xFFFE,
    number=-4,
    unsigned=0xFFFFFFFD,
    long=-5,
    ratio=0.5,
    id=bytes(range(16)),
    numbers=[1, -1],
    ids=[b"\xaa" * 16],
    tail=7,
)
EVERYTHING_IN_BYTES = bytes.fromhex(
    "01 fe fffd fffe fffffffc fffffffd fffffffffffffffb 3fe0000000000000 000102030405060708090a0b0c0d0e0f"
    "00000002 0001 ffff  00000001 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  07"
)


@struct
class Nullables:
    text: str | None = string(nullable_since=0)
    blob: bytes | None = data(nullable_since=0)
    batches: Any = records(nullable_since=0)
    numbers: Sequence[int] | None = array(int32(), nullable_since=0)


NULLS = Nullables(text=None, blob=None, batches=None, numbers=None)
EMPTIES = Nullables(text="", blob=b"", batches=b"", numbers=[])


@struct
class Names:
    names: Sequence[str | None] | None = array(string(nullable_since=0), nullable_since=0)


@struct
class Tagged:
    name: str = string(default="")
    label: str | None = string(tag=0, nullable_since=0, default=None)
    sizes: Sequence[int] = array(int32(), tag=1, default=())
    cursor: Cursor = nested(Cursor, tag=300, default=Cursor(topic_name="", partition_index=0))


class TestTypes:
    def test_all_fixed_width_types(self) -> None:
        assert encode(EVERYTHING, 0, flexible=False) == EVERYTHING_IN_BYTES
        assert decode(Everything, 0, EVERYTHING_IN_BYTES, flexible=False) == EVERYTHING

    def test_compact_counts(self) -> None:
        in_bytes = encode(EVERYTHING, 0, flexible=True)
        numbers, ids = bytes.fromhex("00000002 0001"), bytes.fromhex("00000001 aa")
        expected = EVERYTHING_IN_BYTES.replace(numbers, b"\x03\x00\x01").replace(ids, b"\x02\xaa") + b"\x00"
        assert in_bytes == expected
        assert decode(Everything, 0, in_bytes, flexible=True) == EVERYTHING

    @pytest.mark.parametrize("ratio", [float("inf"), float("-inf"), float("nan"), -0.0, 5e-324])
    def test_odd_doubles(self, ratio: float) -> None:
        @struct
        class Ratio:
            ratio: float = float64()

        came_back = decode(Ratio, 0, encode(Ratio(ratio=ratio), 0, flexible=False), flexible=False)
        assert repr(came_back.ratio) == repr(ratio)

    @pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 255, 256, 16382, 16383, 32767])
    @pytest.mark.parametrize("flexible", [False, True])
    def test_lengths_of_all_widths(self, length: int, flexible: bool) -> None:
        message = Nullables(text="o" * length, blob=b"d" * length, batches=b"r" * length, numbers=[7] * length)
        assert decode(Nullables, 0, encode(message, 0, flexible=flexible), flexible=flexible) == message

    def test_records_are_a_view_of_the_frame(self) -> None:
        frame = memoryview(encode(EMPTIES, 0, flexible=False)[:6] + b"\x00\x00\x00\x02ab" + b"\x00\x00\x00\x00")
        batches = decode(Nullables, 0, frame, flexible=False).batches
        assert isinstance(batches, memoryview)
        assert batches == b"ab"
        assert batches.obj is frame.obj

    def test_records_that_are_not_in_memory_are_a_part_of_their_own(self) -> None:
        on_disk = Records(5)
        parts: list[Any] = []
        encoder(Nullables, 0, False)(Nullables(text="", blob=b"", batches=on_disk, numbers=[]), parts.append)
        place = next(index for index, part in enumerate(parts) if part is on_disk)
        assert b"".join(parts[:place]) == bytes.fromhex("0000 00000000 00000005")
        assert b"".join(parts[place + 1 :]) == bytes.fromhex("00000000")


class TestNull:
    def test_null_is_not_empty(self) -> None:
        """T13: a null and an empty field differ in their bytes and after reading."""
        assert encode(NULLS, 0, flexible=False) == bytes.fromhex("ffff ffffffff ffffffff ffffffff")
        assert encode(EMPTIES, 0, flexible=False) == bytes.fromhex("0000 00000000 00000000 00000000")
        assert encode(NULLS, 0, flexible=True) == bytes.fromhex("00 00 00 00 00")
        assert encode(EMPTIES, 0, flexible=True) == bytes.fromhex("01 01 01 01 00")

    @pytest.mark.parametrize("message", [NULLS, EMPTIES])
    @pytest.mark.parametrize("flexible", [False, True])
    def test_null_and_empty_come_back(self, message: Nullables, flexible: bool) -> None:
        came_back = decode(Nullables, 0, encode(message, 0, flexible=flexible), flexible=flexible)
        assert came_back == message
        assert (came_back.text is None) is (message is NULLS)

    def test_null_array_in_a_request(self) -> None:
        """T14: Metadata version 1 tells "all topics" (null) from "no topics" (empty); version 0 has no null."""
        assert decode(MetadataRequest, 1, b"\xff\xff\xff\xff", flexible=False).topics is None
        assert decode(MetadataRequest, 1, b"\x00\x00\x00\x00", flexible=False).topics == []
        with pytest.raises(ProtocolError, match="topics is null"):
            decode(MetadataRequest, 0, b"\xff\xff\xff\xff", flexible=False)

    @pytest.mark.parametrize(
        ("kind", "version", "in_bytes"),
        [
            (OffsetFetchRequest, 2, "000167 ffffffff"),
            (OffsetFetchRequest, 7, "0267 00 00 00"),
            (OffsetFetchRequest, 8, "02 0267 00 00 00 00"),
            (DescribeConfigsRequest, 0, "00000001 02 000174 ffffffff"),
            (DescribeLogDirsRequest, 0, "ffffffff"),
            (DescribeLogDirsRequest, 2, "00 00"),
            (CreatePartitionsRequest, 0, "00000001 000174 00000002 ffffffff 00000000 00"),
        ],
    )
    def test_null_array_is_not_the_empty_one(self, kind: Any, version: int, in_bytes: str) -> None:
        """T14: null survives reading and writing, and is not the empty array."""
        flexible = version >= kind.API.flexible
        message = decode(kind, version, bytes.fromhex(in_bytes), flexible=flexible)
        assert "=None" in repr(message)
        assert encode(message, version, flexible=flexible) == bytes.fromhex(in_bytes)

    def test_t15_elements_of_a_nullable_array_are_not_nullable(self) -> None:
        """No mark stands before a struct because its array may be null."""
        in_bytes = encode(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 1, flexible=False)
        assert in_bytes == bytes.fromhex("00000001 0001") + b"t"
        assert decode(MetadataRequest, 1, in_bytes, flexible=False).topics[0].name == "t"

    def test_t15_elements_have_a_nullability_of_their_own(self) -> None:
        """The other way round."""
        in_bytes = encode(Names(names=[None, "n"]), 0, flexible=False)
        assert in_bytes == bytes.fromhex("00000002 ffff 0001") + b"n"
        assert decode(Names, 0, in_bytes, flexible=False).names == [None, "n"]

    def test_null_element_is_refused(self) -> None:
        @struct
        class Strict:
            names: Sequence[str] | None = array(string(), nullable_since=0)

        with pytest.raises(ProtocolError, match="is null"):
            decode(Strict, 0, bytes.fromhex("00000001 ffff"), flexible=False)

    @pytest.mark.parametrize(
        ("cursor", "mark"), [(None, "ff"), (Cursor(topic_name="t", partition_index=3), "01 0274 00000003 00")]
    )
    def test_nullable_struct(self, cursor: Cursor | None, mark: str) -> None:
        message = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="n")], response_partition_limit=1, cursor=cursor
        )
        in_bytes = encode(message, 0, flexible=True)
        assert in_bytes == bytes.fromhex(f"02 026e 00 00000001 {mark} 00")
        assert decode(DescribeTopicPartitionsRequest, 0, in_bytes, flexible=True) == message


class TestTags:
    def test_only_what_differs_from_its_default_is_written(self) -> None:
        assert encode(Tagged(), 0, flexible=True) == bytes.fromhex("01 00")
        equal_to_defaults = Tagged(label=None, sizes=[], cursor=Cursor(topic_name="", partition_index=0))
        assert encode(equal_to_defaults, 0, flexible=True) == bytes.fromhex("01 00")

    def test_tags_are_written_in_order(self) -> None:
        message = Tagged(name="n", label="l", sizes=[1], cursor=Cursor(topic_name="t", partition_index=2))
        in_bytes = encode(message, 0, flexible=True)
        assert in_bytes == bytes.fromhex("026e 03  00 02 026c  01 05 02 00000001  ac02 07 0274 00000002 00")
        assert decode(Tagged, 0, in_bytes, flexible=True) == message

    def test_there_are_none_before_the_flexible_versions(self) -> None:
        assert encode(Tagged(name="n", label="l"), 0, flexible=False) == bytes.fromhex("0001 6e")

    @pytest.mark.parametrize(
        ("tags", "expected"),
        [
            ("00", Tagged()),
            ("01 63 03 aabbcc", Tagged()),
            ("01 ffffffff0f 00", Tagged()),
            ("02 00 01 00  63 00", Tagged()),
            ("03 00 02 0261  01 01 01  63 01 00", Tagged(label="a", sizes=[])),
            ("02 01 05 02 00000001  00 02 0262", Tagged(label="b", sizes=[1])),
        ],
    )
    def test_known_and_unknown_tags_in_any_order_and_count(self, tags: str, expected: Tagged) -> None:
        """T09."""
        assert decode(Tagged, 0, b"\x01" + bytes.fromhex(tags), flexible=True) == expected

    @pytest.mark.parametrize("tags", ["01 00 03 0261 00", "01 00 01 0261", "01 63 05 00", "01 01 05 03 00000001", "ff"])
    def test_tag_of_another_size_is_refused(self, tags: str) -> None:
        with pytest.raises(ProtocolError):
            decode(Tagged, 0, b"\x01" + bytes.fromhex(tags), flexible=True)

    def test_features_are_left_out_of_api_versions_where_there_are_none(self) -> None:
        message = ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[], finalized_features=[])
        assert encode(message, 4, flexible=True) == bytes.fromhex("0000 01 00000000 00")


HUGE = 0x7FFFFFFF


class TestLimits:
    """T10: what a length or count promises is held against the bytes that are there before anything is made."""

    @pytest.mark.parametrize(
        "body",
        [
            "7fff",
            "0000 7fffffff",
            "0000 00000000 7fffffff",
            "0000 00000000 00000000 7fffffff",
            "0000 00000000 00000000 20000001 00000000",
        ],
    )
    def test_lengths_beyond_the_frame(self, body: str) -> None:
        self.refuses(Nullables, bytes.fromhex(body), flexible=False)

    @pytest.mark.parametrize("before", [b"", b"\x01", b"\x01\x01", b"\x01\x01\x01", b"\x01\x01\x01\x01\x01\x63"])
    def test_compact_lengths_beyond_the_frame(self, before: bytes) -> None:
        self.refuses(Nullables, before + encode_uvarint(HUGE) + bytes(64), flexible=True)

    def test_counts_of_structs_beyond_the_frame(self) -> None:
        self.refuses(MetadataRequest, bytes.fromhex("7fffffff") + bytes(64), flexible=False, version=1)
        self.refuses(MetadataRequest, encode_uvarint(HUGE) + bytes(64), flexible=True, version=9)

    def test_count_of_tags_beyond_the_frame(self) -> None:
        self.refuses(Tagged, b"\x01" + encode_uvarint(0xFFFFFFFF), flexible=True)

    @pytest.mark.parametrize("length", ["ffffffffff0f", "ffffffff1f", "8080808080808000"])
    def test_varints_beyond_32_bits(self, length: str) -> None:
        self.refuses(Tagged, bytes.fromhex(length) + bytes(64), flexible=True)

    @staticmethod
    def refuses(kind: type[Any], in_bytes: bytes, *, flexible: bool, version: int = 0) -> None:
        decode(kind, version, _smallest(kind, version, flexible), flexible=flexible)  # compiles outside of the measure
        tracemalloc.start()
        try:
            with pytest.raises(ProtocolError):
                decode(kind, version, in_bytes, flexible=flexible)
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()


def _smallest(kind: type[Any], version: int, flexible: bool) -> bytes:
    message = {Nullables: EMPTIES, Tagged: Tagged(), MetadataRequest: MetadataRequest(topics=[])}[kind]
    return encode(message, version, flexible=flexible)


class TestValuesThatDoNotFit:
    @pytest.mark.parametrize(
        "values",
        [
            {"short": 1 << 15},
            {"port": -1},
            {"number": "7"},
            {"long": None},
            {"id": None},
            {"numbers": None},
            {"numbers": [1 << 15]},
            {"ids": [7]},
        ],
    )
    def test_are_refused(self, values: dict[str, Any]) -> None:
        message = Everything(**{name: getattr(EVERYTHING, name) for name in Everything.__slots__} | values)
        with pytest.raises(ProtocolError, match="Everything"):
            encode(message, 0, flexible=False)

    @pytest.mark.parametrize("text", [None, 7, "\ud800", "o" * 32768])
    def test_text_is_refused(self, text: Any) -> None:
        with pytest.raises(ProtocolError, match="TopicRequest"):
            encode(TopicRequest(name=text), 0, flexible=False)

    def test_text_that_is_no_utf_8_is_refused(self) -> None:
        with pytest.raises(ProtocolError, match="TopicRequest"):
            decode(TopicRequest, 0, b"\x00\x01\xff", flexible=False)


def test_a_traceback_shows_the_lines_of_a_decoder() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(MetadataRequest, 1, b"", flexible=False)
    assert "<decode odradek_protocol.messages.metadata.MetadataRequest version 1>" in str(caught.traceback[-1].path)
    assert "raise ProtocolError" in str(caught.traceback[-1].statement)
