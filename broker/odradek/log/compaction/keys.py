"""The keys of a batch's records, read without the rest: compaction looks at every dirty record, so this is its speed.

`odradek_protocol.records.build` draws a record. Two ways lead through the records:

- One by one: varints of one and two bytes are read in place; values and headers are passed over.
- Where two neighbours have the same size, those behind them often have it too. Such a run is checked column by column,
  where a column is the same byte of every record: a few calls for the whole run, none for each record.

Raises ProtocolError when the records do not fill the bytes that they are in.
"""

from collections.abc import Iterator

from odradek_protocol.errors import ProtocolError
from odradek_protocol.varint import decode_varint, encode_varint

__all__ = ["Scan", "largest_timestamp_delta", "shift_timestamps"]

_NULL = 1
"""The byte that is the varint -1, a null's length."""
_LAST_BYTES, _OTHER_BYTES = bytes(range(0x80)), bytes(range(0x80, 0x100))
"""What a varint may end with, and what may stand before its end."""
_ONE_BYTE, _TWO_BYTES = 1 << 6, 1 << 13
"""From here on a number that is not negative takes more than one byte, and more than two."""
_DELTAS = bytes(range(0, 0x80, 2))
_LOW_DELTAS = bytes(delta << 1 & 0x7F | 0x80 for delta in range(_TWO_BYTES))
_HIGH_DELTAS = bytes(delta >> 6 for delta in range(_TWO_BYTES))
"""The columns of deltas that follow one another: those in one byte, and both of those in two."""
_SHORTEST_RUN = 4
_MOST_VAIN = 3
"""Searches for a run in one batch that find none: where sizes vary, neighbours of one size are a coincidence."""

_Place = tuple[int, int, int, int, int, int, int]
"""Where a record's attributes are; where its offset delta is, and that delta; where the size of its key is, where its
key, and that size, -1 for no key; where the record ends."""


class Scan:
    """What the `count` records in `records` are, whose offset deltas are at most `last_delta`.

    `starts` has where each begins, and where the last one ends; `keyless` are the numbers of those without a key, and
    `tombstones` of those whose value is null; `longest_key` is in bytes.
    """

    __slots__ = (
        "_count",
        "_last_delta",
        "_records",
        "deltas",
        "keyless",
        "keys",
        "longest_key",
        "starts",
        "tombstones",
    )

    def __init__(self, records: bytes, count: int, last_delta: int) -> None:
        self._records = records
        self._count = count
        self._last_delta = last_delta
        self.starts: list[int] = []
        self.deltas: list[int] = []
        self.keys: list[bytes] = []
        self.keyless: list[int] = []
        self.tombstones: list[int] = []
        self.longest_key = 0
        try:
            end = self._read()
        except IndexError:
            raise ProtocolError("the records end early") from None
        if end != len(records):
            raise ProtocolError(f"{len(records) - end} bytes behind the last record")
        self.starts.append(end)

    def _read(self) -> int:
        """Gives where the last record ends."""
        records, count, last_delta = self._records, self._count, self._last_delta
        starts, deltas, keys = self.starts, self.deltas, self.keys
        start = size = vain = 0
        while len(keys) < count:
            place = _read_place(records, start)
            _, _, delta, _, key_start, key_size, end = place
            behind_key = key_start + key_size if key_size > 0 else key_start
            if behind_key >= end or not 0 <= delta <= last_delta:
                raise ProtocolError(f"the record at {start} is broken")
            if records[behind_key] == _NULL:
                self.tombstones.append(len(keys))
            if key_size > self.longest_key:
                self.longest_key = key_size
            elif key_size < 0:
                self.keyless.append(len(keys))
            starts.append(start)
            deltas.append(delta)
            keys.append(records[key_start:behind_key])
            last_size, size = size, end - start
            if size == last_size and key_size >= 0 and vain < _MOST_VAIN:
                run = self._read_run(start, place)
                vain += not run
                end += run * size
            start = end
        return start

    def _read_run(self, start: int, place: _Place) -> int:
        """Read the records behind the one at `start` whose parts have the same sizes; gives how many there are."""
        attributes_at, delta_at, delta, size_at, key_start, key_size, end = place
        size, width, first = end - start, size_at - delta_at, delta + 1
        limit = min((_ONE_BYTE, _TWO_BYTES)[width > 1] - 1, self._last_delta)
        count = min(self._count - len(self.keys), (len(self._records) - end) // size, limit - delta)
        if count < _SHORTEST_RUN or width > 2:
            return 0
        # Beginning with the record at `start`, whose bytes the columns have to go on with.
        block = self._records[start : end + count * size]
        for column in (*range(attributes_at - start), *range(size_at - start, key_start - start)):
            count = _run_of(block, column, size, count, block[column : column + 1])
        for column in range(attributes_at + 1 - start, delta_at - start):
            count = _run_of(block, column, size, count, _LAST_BYTES if column == delta_at - start - 1 else _OTHER_BYTES)
        stop = (count + 1) * size
        column = size + delta_at - start
        columns = (_DELTAS,) if width == 1 else (_LOW_DELTAS, _HIGH_DELTAS)
        expected = [one[first : first + count] for one in columns]
        if count < _SHORTEST_RUN or [block[at:stop:size] for at in range(column, column + width)] != expected:
            return 0
        key_at = key_start - start
        nulls = block[size + key_at + key_size : stop : size]
        if _NULL in nulls:
            self.tombstones += [number for number, byte in enumerate(nulls, len(self.keys)) if byte == _NULL]
        self.starts += range(end, end + count * size, size)
        self.deltas += range(first, first + count)
        self.keys += [block[at : at + key_size] for at in range(size + key_at, stop, size)]
        return count


def _run_of(block: bytes, column: int, size: int, count: int, allowed: bytes) -> int:
    """How many of the `count` records behind the first one have an allowed byte in a column, up to one that has not."""
    found = block[size + column : (count + 1) * size : size]
    return count - len(found.lstrip(allowed))


def _read_place(records: bytes, position: int) -> _Place:
    start = position
    byte = records[position]
    position += 1
    if byte < 0x80:
        end = position + (byte >> 1)
    elif (more := records[position]) < 0x80:
        position += 1
        end = position + ((byte & 0x7F | more << 7) >> 1)
    else:
        length, position = decode_varint(records, start)
        end = position + length
    attributes_at = position
    position += 1
    while records[position] > 0x7F:
        position += 1
    delta_at = position + 1
    delta = records[delta_at]
    position += 2
    if delta < 0x80:
        delta >>= 1
    elif (more := records[position]) < 0x80:
        position += 1
        delta = (delta & 0x7F | more << 7) >> 1
    else:
        delta, position = decode_varint(records, delta_at)
    size_at = position
    size = records[position]
    if size < 0x80:
        size, position = size >> 1 ^ -(size & 1), position + 1
    else:
        size, position = decode_varint(records, position)
    return attributes_at, delta_at, delta, size_at, position, size, end


def largest_timestamp_delta(records: bytes) -> int:
    """The largest timestamp delta of records that `scan_keys` has been through."""
    return max(delta for _, _, delta, _ in _timestamp_deltas(records))


def shift_timestamps(records: bytes, shift_ms: int) -> bytes:
    """The same records with `shift_ms` added to each timestamp delta, for another base timestamp.

    They are some that `scan_keys` has been through.
    """
    parts: list[bytes] = []
    for start, behind, delta, end in _timestamp_deltas(records):
        shifted = encode_varint(delta + shift_ms)
        parts += (encode_varint(1 + len(shifted) + end - behind), records[start : start + 1], shifted)
        parts.append(records[behind:end])
    return b"".join(parts)


def _timestamp_deltas(records: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Of each record: where its attributes are, what comes behind its timestamp delta, that delta, and its end."""
    position = 0
    while position < len(records):
        length, position = decode_varint(records, position)
        delta, behind = decode_varint(records, position + 1)
        yield position, behind, delta, position + length
        position += length
