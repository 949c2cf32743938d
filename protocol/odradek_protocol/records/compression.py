"""The five codecs of a record batch, and how far each may be trusted.

What is compressed is the run of records behind the batch header. Rules:

- Reading is bounded: no more than `limit` bytes are made, whatever the input claims or expands to, and the time is
  linear in the bytes read and made. Whatever the input, only ProtocolError is raised.
- Reading is complete: input that ends early, or goes on behind its end, is an error. Several gzip members, LZ4 frames
  or zstd frames one behind the other are read as one.
- What is written, Java's and librdkafka's readers take: LZ4 frames have independent blocks and no content checksum,
  and snappy has the framing of the xerial library, which is

      0  82 'SNAPPY' 00
      8  version             int32   1
     12  compatible version  int32   1
     16  blocks: size (int32), raw snappy of up to 32 KiB

  Raw snappy is read too. All integers of the framing are big-endian; the two versions are not judged, as there are
  producers that write them in the other order.

The codec modules are imported when they are first needed, which keeps the start of a broker short.

Sources: Kafka documentation, "Record Batch"; KIP-110 (zstd), KIP-390 (levels); RFC 1952 (gzip), RFC 8878 (zstd),
LZ4 Frame Format 1.6.
"""

import enum
import struct
import zlib
from collections.abc import Callable

from odradek_protocol.errors import ProtocolError
from odradek_protocol.varint import Buffer, decode_uvarint

__all__ = ["MAX_RECORDS_BYTES", "Codec", "compress", "decompress", "looks_compressed"]


class Codec(enum.IntEnum):
    """The codec numbers of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


MAX_RECORDS_BYTES = 128 * 1024 * 1024
"""How far a batch's records may grow where nothing tighter is known: above `socket.request.max.bytes`, so that whatever
could be sent uncompressed can also be read compressed."""

_GZIP_MAGIC = b"\x1f\x8b\x08"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_XERIAL_MAGIC = b"\x82SNAPPY\x00"

_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_SNAPPY_RATIO = 22
"""No snappy input grows more: its densest element makes 64 bytes of 3."""

_GZIP_WINDOW = zlib.MAX_WBITS | 16
_CHUNK = 64 * 1024
"""How much is fed to gzip and LZ4 at once: they copy what is left behind a member's end, so many small members in one
big piece would cost quadratic time."""
_LZ4_STEP = 1024 * 1024
"""How much LZ4 is asked for at once: it allocates that much for each call."""
_LZ4_DEFAULT_LEVEL = 9
_LZ4_HIGH = 3
"""The lowest level of LZ4's high compression."""
_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_BLOCK = 128 * 1024
"""The most that one zstd block makes."""
_ZSTD_RUN, _ZSTD_COMPRESSED = 1, 2
"""Kinds of zstd blocks: one byte repeated, and compressed; the others are stored."""
_ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
"""First words of zstd frames that hold none of the content."""

_int32 = struct.Struct(">i")
_uint32_little = struct.Struct("<I")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` in the form that Kafka's readers take.

    `level` as in Kafka's `compression.gzip.level` (-1, 1 to 9), `compression.lz4.level` (1 to 17; 9 is the fast
    compressor, all others are the high one) and `compression.zstd.level` (-131072 to 22); None is Kafka's default.
    Snappy has no levels. Raises ProtocolError for a codec that there is not.
    """
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return _compress_gzip(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level)
    if codec == Codec.SNAPPY:
        return _compress_snappy(data)
    if codec == Codec.LZ4:
        return _compress_lz4(data, _LZ4_DEFAULT_LEVEL if level is None else level)
    if codec == Codec.ZSTD:
        return _compress_zstd(data, _ZSTD_DEFAULT_LEVEL if level is None else level)
    raise ProtocolError(f"{codec} is no compression codec")


def decompress(codec: int, data: Buffer, limit: int) -> bytes:
    """Undo `compress`, and read whatever else Kafka's clients write.

    Raises ProtocolError when the codec is unknown, the input is broken, or there would be more than `limit` bytes.
    """
    if codec == Codec.NONE:
        if len(data) > limit:
            raise _too_much(limit)
        return bytes(data)
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise ProtocolError(f"{codec} is no compression codec")
    return decompressor(memoryview(data), limit)


def looks_compressed(codec: int, data: Buffer) -> bool:
    """Whether the first bytes are those of `codec`: a check that costs no inflating and refuses obvious garbage."""
    head = bytes(data[:16])
    if codec == Codec.GZIP:
        return head.startswith(_GZIP_MAGIC)
    if codec == Codec.SNAPPY:
        return head.startswith(_XERIAL_MAGIC) or _looks_like_raw_snappy(head, len(data))
    if codec == Codec.LZ4:
        return head.startswith(_LZ4_MAGIC)
    if codec == Codec.ZSTD:
        return head.startswith(_ZSTD_MAGIC)
    return codec == Codec.NONE


def _too_much(limit: int) -> ProtocolError:
    return ProtocolError(f"the records take more than {limit} bytes")


def _compress_gzip(data: Buffer, level: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)
    return stream.compress(data) + stream.flush()


def _decompress_gzip(data: memoryview, limit: int) -> bytes:
    parts, left, position = [], limit, 0
    stream = None
    while position < len(data):
        stream = stream or zlib.decompressobj(_GZIP_WINDOW)
        chunk = data[position : position + _CHUNK]
        try:
            part = stream.decompress(chunk, left + 1)
        except zlib.error as error:
            raise ProtocolError(f"broken gzip: {error}") from error
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise _too_much(limit)
        position += len(chunk)
        if stream.eof:
            position -= len(stream.unused_data)
            stream = None
    if stream is not None or not parts:
        raise ProtocolError("gzip ends early")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: Buffer) -> bytes:
    import snappy  # noqa: PLC0415 - imported when needed: start-up time

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for position in range(0, len(view), _XERIAL_BLOCK):
        block = snappy.compress(view[position : position + _XERIAL_BLOCK])
        parts += (_int32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit: int) -> bytes:
    if data[:8] != _XERIAL_MAGIC:
        return _decompress_raw_snappy(data, limit, limit)
    parts, left, position = [], limit, 0
    while position < len(data):
        if data[position : position + 8] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        block = data[position + 4 :]
        size = int.from_bytes(data[position : position + 4], "big")
        if size > len(block):
            raise ProtocolError(f"a snappy block of {size} bytes has {len(block)}")
        part = _decompress_raw_snappy(block[:size], left, limit)
        parts.append(part)
        left -= len(part)
        position += 4 + size
    if position > len(data):
        raise ProtocolError("snappy ends in its header")
    return b"".join(parts)


def _decompress_raw_snappy(data: memoryview, left: int, limit: int) -> bytes:
    import snappy  # noqa: PLC0415 - imported when needed: start-up time

    try:
        size, _ = decode_uvarint(data, 0)
    except IndexError:
        raise ProtocolError("snappy ends in its length") from None
    if size > left:
        raise _too_much(limit)
    if size > len(data) * _SNAPPY_RATIO:
        raise ProtocolError(f"{len(data)} bytes of snappy cannot make {size}")
    try:
        return bytes(snappy.decompress(data))
    except snappy.UncompressError as error:
        raise ProtocolError("broken snappy") from error


def _looks_like_raw_snappy(head: bytes, size: int) -> bool:
    """Whether `head` opens with a length that `size` bytes can make, and with a literal as every snappy has to."""
    try:
        length, position = decode_uvarint(head, 0)
        return 0 < length <= size * _SNAPPY_RATIO and head[position] & 3 == 0
    except (IndexError, ProtocolError):
        return False


def _compress_lz4(data: Buffer, level: int) -> bytes:
    import lz4.frame  # noqa: PLC0415 - imported when needed: start-up time

    compressed = lz4.frame.compress(
        data,
        compression_level=0 if level == _LZ4_DEFAULT_LEVEL else max(level, _LZ4_HIGH),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return bytes(compressed)


def _decompress_lz4(data: memoryview, limit: int) -> bytes:
    import lz4.frame  # noqa: PLC0415 - imported when needed: start-up time

    parts, left, position = [], limit, 0
    stream = lz4.frame.LZ4FrameDecompressor()
    while position < len(data):
        chunk = data[position : position + _CHUNK]
        position += len(chunk)
        more = True
        while more:
            try:
                part = stream.decompress(chunk, min(left + 1, _LZ4_STEP))
            except RuntimeError as error:
                raise ProtocolError(f"broken LZ4: {error}") from error
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise _too_much(limit)
            chunk = data[:0]
            more = not (stream.eof or stream.needs_input)
        if stream.eof:
            position -= len(stream.unused_data or b"")
    if not stream.eof:
        raise ProtocolError("LZ4 ends early")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_zstd(data: Buffer, level: int) -> bytes:
    import zstandard  # noqa: PLC0415 - imported when needed: start-up time

    return zstandard.ZstdCompressor(level=level).compress(data)


def _decompress_zstd(data: memoryview, limit: int) -> bytes:
    """Frame by frame, because the library's streams do not tell that the last frame is cut short."""
    import zstandard  # noqa: PLC0415 - imported when needed: start-up time

    decompressor = zstandard.ZstdDecompressor()
    parts, left, position = [], limit, 0
    while position < len(data):
        frame = data[position:]
        if len(frame) >= 8 and _uint32_little.unpack_from(frame)[0] in _ZSTD_SKIPPABLE:
            position += 8 + _uint32_little.unpack_from(frame, 4)[0]
            continue
        try:
            parameters = zstandard.get_frame_parameters(frame)
            end, most = _walk_zstd_blocks(frame, zstandard.frame_header_size(frame))
            if parameters.content_size != zstandard.CONTENTSIZE_UNKNOWN and parameters.content_size > min(most, left):
                raise ProtocolError(f"a zstd frame says {parameters.content_size} bytes, more than it can make or may")
            end += 4 if parameters.has_checksum else 0
            part = decompressor.decompress(frame[:end], max_output_size=max(min(most, left + 1), 1))
        except zstandard.ZstdError as error:
            raise ProtocolError(f"broken zstd: {error}") from error
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise _too_much(limit)
        position += end
    if position > len(data) or not parts:
        raise ProtocolError("zstd ends early")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _walk_zstd_blocks(frame: memoryview, position: int) -> tuple[int, int]:
    """Where the blocks that start at `position` end, and how many bytes they can make at the most."""
    most, last = 0, False
    while not last:
        if position + 3 > len(frame):
            raise ProtocolError("zstd ends early")
        header = frame[position] | frame[position + 1] << 8 | frame[position + 2] << 16
        last, kind, size = header & 1 == 1, header >> 1 & 3, header >> 3
        most += _ZSTD_BLOCK if kind == _ZSTD_COMPRESSED else size
        position += 3 + (1 if kind == _ZSTD_RUN else size)
    return position, most


_DECOMPRESSORS: dict[int, Callable[[memoryview, int], bytes]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
