"""Variable-length integers: unsigned (KIP-482 lengths and tags) and zig-zag (records).

Seven bits a byte, least significant group first, the top bit set on every byte but the last (the encoding of
Protocol Buffers). Lengths and tags are 32 bit wide (five bytes at the most), record fields 32 or 64 (ten bytes).
"""

from odradek_protocol.errors import ProtocolError

__all__ = ["UVARINTS", "decode_uvarint", "decode_varint", "encode_uvarint", "encode_varint"]

Buffer = bytes | bytearray | memoryview


def decode_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint at `position`; give the value and the position behind it.

    Raises ProtocolError when it runs past five bytes or 32 bits, IndexError when it runs past the data.
    """
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise ProtocolError("varint is longer than 32 bits")


def encode_uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint; `value` is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


UVARINTS = tuple(encode_uvarint(value) for value in range(256))
"""The encodings of the small values that nearly every length and count has."""


def decode_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Read a zig-zag varint of up to 64 bits (a record's lengths and deltas).

    Raises ProtocolError when it runs past ten bytes or 64 bits, IndexError when it runs past the data.
    """
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position
    value = byte & 0x7F
    shift = 7
    while shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFFFFFFFFFF:
                break
            return value >> 1 ^ -(value & 1), position
        shift += 7
    raise ProtocolError("varint is longer than 64 bits")


def encode_varint(value: int) -> bytes:
    """The zig-zag bytes of a signed 64-bit `value`."""
    return encode_uvarint(value << 1 if value >= 0 else (-value << 1) - 1)
