"""The codecs: what they write and read, how far they expand, and that broken input is a ProtocolError."""

import contextlib
import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.compression import Codec, compress, decompress, looks_compressed

from .kafka_records import codec as kafka_codec

LIMIT = 1 << 20
TEXT = b"Odradek, spool of thread. " * 5000
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]


def zstd_stream(data: bytes) -> bytes:
    """A frame that does not tell its size, as Kafka's and librdkafka's producers write it."""
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    return compressor.compress(data) + compressor.flush()


def raw_snappy(data: bytes) -> bytes:
    return bytes(snappy.compress(data))


OTHERS: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    "gzip": (Codec.GZIP, gzip.compress),
    "raw snappy": (Codec.SNAPPY, raw_snappy),
    "xerial": (Codec.SNAPPY, kafka_codec.snappy_encode),
    "linked lz4": (Codec.LZ4, lambda data: lz4.frame.compress(data, block_linked=True, content_checksum=True)),
    "lz4 of 4 MiB blocks": (Codec.LZ4, lambda data: lz4.frame.compress(data, block_size=7, store_size=True)),
    "zstd": (Codec.ZSTD, zstandard.ZstdCompressor(write_checksum=True).compress),
    "zstd stream": (Codec.ZSTD, zstd_stream),
}
READERS: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.GZIP: kafka_codec.gzip_decode,
    Codec.SNAPPY: kafka_codec.snappy_decode,
    Codec.LZ4: kafka_codec.lz4_decode,
    Codec.ZSTD: kafka_codec.zstd_decode,
}


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=1000), times=st.sampled_from([1, 3, 300]))
def test_what_is_written_is_read(codec: Codec, data: bytes, times: int) -> None:
    data *= times
    compressed = compress(codec, data)
    assert decompress(codec, compressed, len(data)) == data
    if data:
        assert looks_compressed(codec, compressed)
    if data and codec in READERS:
        assert READERS[codec](compressed) == data


@pytest.mark.parametrize("name", OTHERS)
@given(data=st.binary(min_size=1, max_size=1000), times=st.sampled_from([1, 3, 300]))
def test_what_others_write_is_read(name: str, data: bytes, times: int) -> None:
    codec, write = OTHERS[name]
    compressed = write(data * times)
    assert decompress(codec, bytearray(compressed), len(data) * times) == data * times
    assert looks_compressed(codec, memoryview(compressed))


@pytest.mark.parametrize("name", OTHERS)
def test_the_limit_is_a_limit(name: str) -> None:
    codec, write = OTHERS[name]
    compressed = write(TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 1, 0):
        with pytest.raises(ProtocolError):
            decompress(codec, compressed, limit)


def test_the_limit_holds_without_a_codec() -> None:
    assert decompress(Codec.NONE, b"abc", 3) == b"abc"
    with pytest.raises(ProtocolError):
        decompress(Codec.NONE, b"abc", 2)


@pytest.mark.parametrize("name", ["gzip", "xerial", "linked lz4", "lz4 of 4 MiB blocks", "zstd", "zstd stream"])
def test_a_bomb_is_not_expanded(name: str) -> None:
    codec, write = OTHERS[name]
    bomb = write(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decompress(codec, bomb, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 8 * LIMIT
    finally:
        tracemalloc.stop()


def test_a_claim_is_not_believed() -> None:
    """A few bytes that say they hold hundreds of MiB cost no such allocation."""
    claims = {
        Codec.SNAPPY: b"\xff\xff\xff\xff\x07" + bytes(20),
        Codec.ZSTD: b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00",
    }
    for codec, claim in claims.items():
        with pytest.raises(ProtocolError):
            decompress(codec, claim, 1 << 62)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_members_and_frames_follow_one_another(codec: Codec) -> None:
    parts = [b"one", b"", bytes(70000), b"three"]
    together = b"".join(compress(codec, part) for part in parts)
    assert decompress(codec, together, LIMIT) == b"".join(parts)
    with pytest.raises(ProtocolError):
        decompress(codec, together, sum(map(len, parts)) - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_many_small_members_cost_linear_time(codec: Codec) -> None:
    assert decompress(codec, compress(codec, b"x") * 20000, LIMIT) == b"x" * 20000


def test_xerial_streams_follow_one_another() -> None:
    together = compress(Codec.SNAPPY, b"one") + compress(Codec.SNAPPY, b"two")
    assert decompress(Codec.SNAPPY, together, LIMIT) == b"onetwo"


def test_skippable_zstd_frames_are_skipped() -> None:
    skippable = b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert decompress(Codec.ZSTD, skippable + compress(Codec.ZSTD, b"x") + skippable, LIMIT) == b"x"
    for broken in (skippable, skippable[:-1], compress(Codec.ZSTD, b"x") + skippable[:-1]):
        with pytest.raises(ProtocolError):
            decompress(Codec.ZSTD, broken, LIMIT)


@pytest.mark.parametrize("name", OTHERS)
def test_input_cut_anywhere_is_an_error(name: str) -> None:
    codec, write = OTHERS[name]
    compressed = write(b"It could be thought that this shape once had some purpose. " * 3)
    empty_stream = 16 if name == "xerial" else -1
    for end in range(len(compressed)):
        if end == empty_stream:
            continue
        with pytest.raises(ProtocolError):
            decompress(codec, compressed[:end], LIMIT)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("junk", [b"\x00", b"\x00" * 12, b"trailing bytes of no sense"])
def test_trailing_bytes_are_an_error(name: str, junk: bytes) -> None:
    codec, write = OTHERS[name]
    with pytest.raises(ProtocolError):
        decompress(codec, write(b"whole") + junk, LIMIT)


@pytest.mark.parametrize("codec", COMPRESSED)
@given(data=st.binary(max_size=200), head=st.booleans(), at=st.integers(0, 199), value=st.integers(0, 255))
def test_only_protocol_errors_escape(codec: Codec, data: bytes, head: bool, at: int, value: int) -> None:
    whole = bytearray(compress(codec, TEXT[:300]))
    whole[at % len(whole)] = value
    for broken in (bytes(whole), whole[:8] + data if head else data):
        looks_compressed(codec, broken)
        with contextlib.suppress(ProtocolError):
            assert len(decompress(codec, broken, 1000)) <= 1000


@pytest.mark.parametrize("number", [-1, 5, 6, 7])
def test_unknown_codecs_are_refused(number: int) -> None:
    assert not looks_compressed(number, b"\x1f\x8b\x08")
    with pytest.raises(ProtocolError):
        compress(number, b"")
    with pytest.raises(ProtocolError):
        decompress(number, b"", 1)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_garbage_does_not_look_compressed(codec: Codec) -> None:
    for garbage in (b"", b"\x00", b"broken gzip body", b"\xff" * 40, bytes(100)):
        assert not looks_compressed(codec, garbage)


def test_t31_snappy_is_framed_as_xerial_frames_it() -> None:
    data = bytes(range(256)) * 300
    framed = compress(Codec.SNAPPY, data)
    assert framed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")
    assert framed == kafka_codec.snappy_encode(data)


def test_t31_snappy_versions_in_the_other_order_are_read() -> None:
    framed = bytearray(compress(Codec.SNAPPY, b"little endian"))
    framed[8:16] = bytes.fromhex("0100000001000000")
    assert decompress(Codec.SNAPPY, framed, LIMIT) == b"little endian"


def test_lz4_frames_are_ones_that_java_reads() -> None:
    """Version 1, independent blocks of 64 KiB, no checksums and no size."""
    assert compress(Codec.LZ4, bytes(100000))[:6] == bytes.fromhex("04224d18 60 40")


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, [-1, 1, 9]), (Codec.LZ4, [1, 2, 8, 9, 10, 12, 17]), (Codec.ZSTD, [-131072, -1, 0, 1, 22])],
)
def test_levels_are_those_of_kafka(codec: Codec, levels: list[int]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level), len(TEXT)) == TEXT


def test_default_levels_are_those_of_kafka() -> None:
    data = zlib.compress(TEXT)
    assert compress(Codec.GZIP, data) == compress(Codec.GZIP, data, -1)
    assert compress(Codec.LZ4, data) == compress(Codec.LZ4, data, 9)
    assert compress(Codec.ZSTD, data) == compress(Codec.ZSTD, data, 3)
