"""Message sets of formats 0 and 1 beside the last Kafka that takes and gives them: Produce v0-2 and Fetch v0-3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from wire.comparison import compared
from wire.messages import message, wrapper
from wire.questions import fetch, list_offsets
from wire.records import NOW_MS, batch

if TYPE_CHECKING:
    from wire.client import Wire

OLD = (0, 1, 2, 3)
HOUR_MS = 3_600_000


def set_of(magic: int, *values: bytes | None, codec: int = 0, relative: bool = True) -> bytes:
    """A set of messages of these values, with keys and ascending timestamps, in a wrapper where there is a codec."""
    inside = b"".join(
        message(
            magic,
            value,
            b"k%d" % number,
            offset=number if relative else 0,
            timestamp=NOW_MS + number,
        )
        for number, value in enumerate(values)
    )
    if not codec:
        return inside
    last = len(values) - 1
    return wrapper(magic, codec, inside, offset=last if relative else 0, timestamp=NOW_MS + last)


def read_back(wire: Wire, name: str, *offsets: int) -> None:
    """Fetch from each of the offsets in versions with every format."""
    for offset in offsets or (0,):
        for version in (*OLD, 4, 11, 12):
            wire.note("offset", offset)
            fetch(wire, name, offset, version=version)


class TestProduce:
    @pytest.mark.parametrize("magic", [0, 1])
    @compared("beside_kafka_3")
    def test_what_is_sent_in_an_old_format_is_stored_as_one_batch(self, wire: Wire, name: str, magic: int) -> None:
        wire.create_topic(name)
        for version in (0, 1, 2):
            wire.produce(name, set_of(magic, b"a", None, b""), version=version)
        wire.produce(name, batch(b"a", b"b"), version=2)
        for timestamp in (-1, -2, -3, NOW_MS + 1):
            list_offsets(wire, 7, name, timestamp)
        fetch(wire, name, 0)
        fetch(wire, name, 4, version=4)

    @pytest.mark.parametrize("codec", [1, 2])
    @pytest.mark.parametrize("magic", [0, 1])
    @compared("beside_kafka_3")
    def test_t29_wrappers(self, wire: Wire, name: str, magic: int, codec: int) -> None:
        for relative in (True, False):
            topic = f"{name}-{relative}"
            wire.create_topic(topic, compression_type="uncompressed")
            wire.produce(topic, set_of(magic, b"a", None, b"c" * 500, codec=codec, relative=relative), version=2)
            read_back(wire, topic, 0, 1, 2)

    @pytest.mark.parametrize(
        "records",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"\0", id="one byte"),
            pytest.param(message(1)[:-1], id="cut short"),
            pytest.param(message(1) + message(1)[:-1], id="second cut short"),
            pytest.param(message(1, crc=1), id="crc"),
            pytest.param(message(1) + message(1, crc=1), id="second crc"),
            pytest.param(message(0) + message(1), id="two formats"),
            pytest.param(message(1) + message(0), id="two formats, the other way"),
            pytest.param(message(1) + batch(), id="a batch behind it"),
            pytest.param(message(1, size=13), id="size of no message"),
            pytest.param(message(1, size=14), id="size too small"),
            pytest.param(message(1, size=1000), id="size too large"),
            pytest.param(message(1, size=-1), id="negative size"),
            pytest.param(message(1, attributes=0x08, timestamp=5), id="log append time"),
            pytest.param(message(0, attributes=0x08), id="log append time in format 0"),
            pytest.param(message(1, attributes=0x70), id="unknown attributes"),
            pytest.param(message(1, offset=777), id="an offset"),
            pytest.param(message(1, timestamp=NOW_MS + 2 * HOUR_MS), id="future timestamp"),
            pytest.param(message(1, timestamp=0), id="timestamp 0"),
            pytest.param(message(1, b"x" * 2000), id="too large"),
            pytest.param(b"".join(message(1, b"x" * 600) for _ in range(3)), id="too large together"),
            pytest.param(message(1, b"nonsense", attributes=1), id="gzip of nonsense"),
            pytest.param(message(1, b"nonsense", attributes=2), id="snappy of nonsense"),
            pytest.param(message(1, b"nonsense", attributes=4), id="zstd"),
            pytest.param(message(1, b"nonsense", attributes=5), id="codec 5"),
            pytest.param(message(1, None, attributes=1), id="wrapper of null"),
            pytest.param(wrapper(1, 1, b""), id="wrapper of nothing"),
            pytest.param(wrapper(1, 1, message(1)) * 2, id="two wrappers"),
            pytest.param(message(1) + wrapper(1, 1, message(1)), id="a wrapper behind a message"),
            pytest.param(wrapper(1, 1, wrapper(1, 1, message(1))), id="a wrapper in a wrapper"),
            pytest.param(wrapper(1, 1, message(0)), id="format 0 in a wrapper of 1"),
            pytest.param(wrapper(0, 1, message(1)), id="format 1 in a wrapper of 0"),
            pytest.param(wrapper(1, 1, message(1, crc=1)), id="crc in a wrapper"),
            pytest.param(wrapper(1, 1, message(1) + message(1)[:-1]), id="cut short in a wrapper"),
            pytest.param(wrapper(1, 1, message(1, offset=5), offset=3), id="wrapper offset too small"),
            pytest.param(wrapper(1, 1, message(1, offset=5) + message(1, offset=2)), id="offsets in disorder"),
            pytest.param(wrapper(1, 1, message(1, timestamp=7), attributes=0x08, timestamp=9), id="wrapper's time"),
            pytest.param(wrapper(1, 1, message(1, b"x" * 5000)), id="inflates to too much uncompressed"),
        ],
    )
    @compared("beside_kafka_3")
    def test_t29_sets_that_are_wrong_in_one_way(self, wire: Wire, name: str, records: bytes) -> None:
        limits = {"max_message_bytes": "1000", "message_timestamp_after_max_ms": str(HOUR_MS)}
        wire.create_topic(name, compression_type="uncompressed", **limits)
        wire.produce(name, records, version=2)
        wire.produce(name, records, version=3)
        fetch(wire, name, 0)

    @pytest.mark.parametrize("magic", [0, 1])
    @compared("beside_kafka_3")
    def test_log_append_time(self, wire: Wire, name: str, magic: int) -> None:
        wire.create_topic(name, message_timestamp_type="LogAppendTime")
        wire.produce(name, set_of(magic, b"a", b"b"), version=2)
        wire.produce(name, message(1, attributes=0x08, timestamp=5), version=2)
        for version in (3, 8, 11):
            wire.produce(name, batch(b"a", b"b", attributes=0x08), version=version)

    @compared("beside_kafka_3")
    def test_keys_of_a_compacted_topic(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, cleanup_policy="compact")
        wire.produce(name, set_of(1, b"a", b"b"), version=2)
        wire.produce(name, message(1, b"keyless"), version=2)
        fetch(wire, name, 0)


class TestFetch:
    @compared("beside_kafka_3")
    def test_batches_are_lowered(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.produce(name, batch(b"a", None, b"c", keys=[None, b"k", b""], timestamps=[NOW_MS, NOW_MS + 9, NOW_MS + 3]))
        read_back(wire, name, 0, 1, 2, 3)

    @compared("beside_kafka_3")
    def test_log_append_time(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.produce(name, batch(b"a", b"b", attributes=0x08))
        wire.produce(name, batch(b"a", b"b", attributes=0x08, base_timestamp=-1, max_timestamp=-1))
        read_back(wire, name, 0, 1)

    @compared("beside_kafka_3")
    def test_down_conversion_may_be_forbidden(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, message_downconversion_enable="false")
        fetch(wire, name, 0, version=2)
        wire.produce(name, batch(b"a"))
        read_back(wire, name, 0)

    @compared("beside_kafka_3")
    def test_zstd(self, wire: Wire, name: str) -> None:
        wire.create_topic(name, compression_type="zstd")
        wire.produce(name, batch(b"a" * 100, b"b"))
        for version in (0, 2, 4, 9):
            fetch(wire, name, 0, version=version)

    @compared("beside_kafka_3")
    def test_errors(self, wire: Wire, name: str) -> None:
        wire.create_topic(name)
        wire.produce(name, batch(b"a"))
        for version in OLD:
            for offset in (-1, 1, 2, 77):
                fetch(wire, name, offset, version=version)
            fetch(wire, name, 0, 0, version=version)
            fetch(wire, "unknown", 0, version=version)
