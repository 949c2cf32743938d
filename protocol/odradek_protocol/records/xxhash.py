"""XXH32 with seed 0, of short inputs: the checksum in the header of an LZ4 frame.

Source: xxHash fast digest algorithm, version 0.1.1, section "XXH32".
"""

__all__ = ["xxh32"]

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_WORD = 0xFFFFFFFF
_STRIPE = 16


def xxh32(data: bytes) -> int:
    """The hash of `data`."""
    position = 0
    if len(data) >= _STRIPE:
        lanes = [_PRIME_1 + _PRIME_2 & _WORD, _PRIME_2, 0, -_PRIME_1 & _WORD]
        while position + _STRIPE <= len(data):
            for lane in range(4):
                word = int.from_bytes(data[position : position + 4], "little")
                lanes[lane] = _rotate(lanes[lane] + word * _PRIME_2, 13) * _PRIME_1 & _WORD
                position += 4
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        value = _PRIME_5
    value += len(data)
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        value = _rotate(value + word * _PRIME_3, 17) * _PRIME_4
        position += 4
    for byte in data[position:]:
        value = _rotate(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _WORD
    value = (value ^ value >> 15) * _PRIME_2 & _WORD
    value = (value ^ value >> 13) * _PRIME_3 & _WORD
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= _WORD
    return (value << bits | value >> 32 - bits) & _WORD
