"""Key -> offset of its last record, in a bounded number of bytes.

A dict as long as its keys fit into the memory. When they do not, they move into a table with open addressing in three
arrays, 24 bytes a slot: 16 of the key's hash, 8 of the offset. It takes eight times as many keys, and several times as
long for each.

A key of up to 36 bytes (a UUID in its long form) stands for itself in the dict, longer ones are told apart by a hash of
37 bytes. That two of ten million keys share their 16 bytes of hash in the table has a chance of one in 10^24; Kafka
takes the same one.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import repeat
from math import isqrt

__all__ = ["SLOT_BYTES", "OffsetMap"]

SLOT_BYTES = 24
"""What a slot of the table takes, and a key on its way from the dict into the table."""
_DICT_ENTRY_BYTES = 208
"""What an entry of the dict takes at the most: the key 80, the offset 32, and its place while the dict grows."""
_SELF_BYTES = 36
_NOWHERE = -1

_halves = struct.Struct("<QQ").unpack_from


class OffsetMap:
    """Takes at most `memory_bytes`, and `capacity` keys; its table is filled up to `load_factor`.

    Whoever puts in more keys is at fault. There will be `most_keys` at the most.
    """

    __slots__ = ("_dict", "_dict_capacity", "_load_factor", "_slots", "_table", "capacity")

    def __init__(self, memory_bytes: int, load_factor: float, most_keys: int) -> None:
        self._dict: dict[bytes, int] = {}
        self._table: _Table | None = None
        self._load_factor = load_factor
        self._dict_capacity = memory_bytes // _DICT_ENTRY_BYTES
        table_bytes = memory_bytes - self._dict_capacity * SLOT_BYTES
        self._slots = _prime_up_to(max(min(table_bytes // SLOT_BYTES, int(most_keys / load_factor) + 2), 2))
        self.capacity = max(_capacity(self._slots, load_factor), self._dict_capacity)

    def __len__(self) -> int:
        return len(self._dict) if self._table is None else len(self._table)

    def put(self, keys: Sequence[bytes], offsets: Sequence[int], longest_key: int) -> None:
        """Note the offset of each key, the last one of a key that is there twice.

        No key has more than `longest_key` bytes.
        """
        short = keys if longest_key <= _SELF_BYTES else [_shortened(key) for key in keys]
        if self._table is None and len(self._dict) + len(keys) > self._dict_capacity:
            self._move()
        if self._table is None:
            self._dict.update(zip(short, offsets, strict=True))
        else:
            self._table.update(short, offsets)

    def get(self, keys: Sequence[bytes], longest_key: int) -> list[int]:
        """The offset of each key, -1 for none. No key has more than `longest_key` bytes."""
        short = keys if longest_key <= _SELF_BYTES else [_shortened(key) for key in keys]
        if self._table is None:
            return list(map(self._dict.get, short, repeat(_NOWHERE)))
        return [self._table.get(key) for key in short]

    def offsets(self) -> Iterable[int]:
        """The offsets of all keys, in any order."""
        return self._dict.values() if self._table is None else self._table.offsets()

    def _move(self) -> None:
        """Go from the dict to the table; what is on its way takes no more than a slot each."""
        hashes, offsets = bytearray(), array("q")
        while self._dict:
            key, offset = self._dict.popitem()
            hashes += _hash(key)
            offsets.append(offset)
        self._dict = {}
        self._table = _Table(self._slots)
        for number, offset in enumerate(offsets):
            self._table.put(hashes[16 * number : 16 * number + 16], offset)


class _Table:
    """Double hashing: the halves of the hash give the first slot and the step, which a prime size makes visit all."""

    __slots__ = ("_count", "_highs", "_lows", "_offsets", "_slots")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._lows = array("Q", bytes(8 * slots))
        self._highs = array("Q", bytes(8 * slots))
        self._offsets = array("q", bytes(8 * slots))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def update(self, keys: Iterable[bytes], offsets: Iterable[int]) -> None:
        for key, offset in zip(keys, offsets, strict=True):
            self.put(_hash(key), offset)

    def put(self, hashed: bytes | bytearray, offset: int) -> None:
        slot, low, high = self._find(hashed)
        if not self._lows[slot]:
            self._lows[slot], self._highs[slot] = low, high
            self._count += 1
        self._offsets[slot] = offset

    def get(self, key: bytes) -> int:
        slot, _, _ = self._find(_hash(key))
        return self._offsets[slot] if self._lows[slot] else _NOWHERE

    def offsets(self) -> Iterator[int]:
        return (offset for low, offset in zip(self._lows, self._offsets, strict=True) if low)

    def _find(self, hashed: bytes | bytearray) -> tuple[int, int, int]:
        """The slot that the key has or would get, and the halves of its hash; a low half of 0 marks a free slot."""
        low, high = _halves(hashed)
        low = low or 1
        lows, highs, slots = self._lows, self._highs, self._slots
        slot, step = low % slots, high % (slots - 1) + 1
        while (found := lows[slot]) and (found != low or highs[slot] != high):
            slot = (slot + step) % slots
        return slot, low, high


def _shortened(key: bytes) -> bytes:
    return key if len(key) <= _SELF_BYTES else blake2b(key, digest_size=_SELF_BYTES + 1).digest()


def _hash(key: bytes) -> bytes:
    """The 16 bytes that stand for a shortened key in the table."""
    return key[:16] if len(key) > _SELF_BYTES else blake2b(key, digest_size=16).digest()


def _capacity(slots: int, load_factor: float) -> int:
    return min(max(int(slots * load_factor), 1), slots - 1)


def _prime_up_to(number: int) -> int:
    """The largest prime up to `number`, which is at least 2."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
