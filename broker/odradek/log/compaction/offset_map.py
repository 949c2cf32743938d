"""Key -> offset of its last record, in a bounded number of bytes.

Two forms with the same two operations. Where all keys that there may be fit into the memory as a dict, it is one.
Else it is a table with open addressing in three arrays, 24 bytes a slot: 16 of the key's hash, 8 of the offset. The
table takes seven times as many keys, and several times as long for each.

A key of up to 30 bytes stands for itself in the dict, longer ones are told apart by a hash of 31 bytes. That two of ten
million keys share their 16 bytes of hash in the table has a chance of one in 10^24; Kafka takes the same one.
"""

import struct
from array import array
from hashlib import blake2b
from math import isqrt
from typing import Protocol

__all__ = ["SLOT_BYTES", "OffsetMap", "make_offset_map"]

SLOT_BYTES = 24
"""What a slot of the table takes."""
_DICT_ENTRY_BYTES = 200
"""What an entry of the dict takes at the most: the key 64, the offset 32, and its place while the dict grows."""
_SELF_BYTES = 30

_halves = struct.Struct("<QQ").unpack


class OffsetMap(Protocol):
    """`capacity` is how many keys there may be; who puts in more is at fault."""

    capacity: int

    def __len__(self) -> int: ...
    def put(self, key: bytes, offset: int) -> None: ...
    def get(self, key: bytes) -> int:
        """The offset of a key, -1 for none."""


class _Dict:
    __slots__ = ("_offsets", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[key if len(key) <= _SELF_BYTES else blake2b(key, digest_size=_SELF_BYTES + 1).digest()] = offset

    def get(self, key: bytes) -> int:
        return self._offsets.get(
            key if len(key) <= _SELF_BYTES else blake2b(key, digest_size=_SELF_BYTES + 1).digest(), -1
        )


class _Table:
    """Double hashing: the halves of the hash give the first slot and the step, which a prime size makes visit all."""

    __slots__ = ("_count", "_highs", "_lows", "_offsets", "_slots", "capacity")

    def __init__(self, slots: int, load_factor: float) -> None:
        self._slots = _prime_up_to(slots)
        self.capacity = min(max(int(self._slots * load_factor), 1), self._slots - 1)
        self._lows = array("Q", bytes(8 * self._slots))
        self._highs = array("Q", bytes(8 * self._slots))
        self._offsets = array("q", bytes(8 * self._slots))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, key: bytes, offset: int) -> None:
        slot, low, high = self._find(key)
        if not self._lows[slot]:
            self._lows[slot], self._highs[slot] = low, high
            self._count += 1
        self._offsets[slot] = offset

    def get(self, key: bytes) -> int:
        slot, _, _ = self._find(key)
        return self._offsets[slot] if self._lows[slot] else -1

    def _find(self, key: bytes) -> tuple[int, int, int]:
        """The slot that the key has or would get, and the halves of its hash; a low half of 0 marks a free slot."""
        low, high = _halves(blake2b(key, digest_size=16).digest())
        low = low or 1
        lows, highs, slots = self._lows, self._highs, self._slots
        slot, step = low % slots, high % (slots - 1) + 1
        while (found := lows[slot]) and (found != low or highs[slot] != high):
            slot = (slot + step) % slots
        return slot, low, high


def make_offset_map(memory_bytes: int, load_factor: float, most_keys: int) -> OffsetMap:
    """A map in at most `memory_bytes` for up to `most_keys` keys; a table is filled up to `load_factor`."""
    if most_keys * _DICT_ENTRY_BYTES <= memory_bytes:
        return _Dict(max(most_keys, 1))
    return _Table(max(min(memory_bytes // SLOT_BYTES, int(most_keys / load_factor) + 2), 2), load_factor)


def _prime_up_to(number: int) -> int:
    """The largest prime up to `number`, which is at least 2."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
