"""Record batches, right ones and ones that are wrong in one chosen way (format: RecordBatch v2)."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

from crc32c import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOW_MS = int(time.time() * 1000)
"""The timestamp of the first record of a batch: one for both brokers, so that what they keep is the same bytes."""

HEADER_BYTES = 61
_HEADER = struct.Struct(">qiibIhiqqqhii")
_MAGIC_AT = 16
_CHECKED_FROM = 21  # what the CRC covers begins at the attributes
_NAMES = (
    *("base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count"),
)

Value = bytes | None


def batch(
    *values: Value,
    keys: Sequence[Value] | None = None,
    timestamps: Sequence[int] | None = None,
    body: bytes | None = None,
    **header: int,
) -> bytes:
    """Write a batch of these values (one "v" when none is given).

    `timestamps` are NOW_MS and the milliseconds after it. `body` stands for the written records. `header` sets fields
    by the names above; a `length`, `crc` or `count` that is not given fits the rest.
    """
    values = values or (b"v",)
    times = timestamps or [NOW_MS + index for index in range(len(values))]
    written = b"".join(
        _record(index, times[index] - times[0], keys[index] if keys else None, value)
        for index, value in enumerate(values)
    )
    records = written if body is None else body
    fields = {
        **dict.fromkeys(_NAMES, 0),
        "length": HEADER_BYTES - 12 + len(records),
        "magic": 2,
        "last_offset_delta": len(values) - 1,
        "base_timestamp": times[0],
        "max_timestamp": max(times),
        **dict.fromkeys(("leader_epoch", "producer_id", "producer_epoch", "base_sequence"), -1),
        "count": len(values),
        **header,
    }
    data = bytearray(_HEADER.pack(*(fields[name] for name in _NAMES)) + records)
    if "crc" not in header:
        struct.pack_into(">I", data, 17, crc32c(bytes(data[_CHECKED_FROM:])))
    return bytes(data)


def whole_batches(data: bytes) -> Iterator[tuple[dict[str, int], bytes]]:
    """Give the header and the bytes of each batch, or message of an older format, that is there to its end."""
    while len(data) > _MAGIC_AT:
        size = int.from_bytes(data[8:12], "big", signed=True) + 12
        if not _MAGIC_AT < size <= len(data):
            return
        header = {"base_offset": int.from_bytes(data[:8], "big"), "magic": data[_MAGIC_AT]}
        if header["magic"] == 2:
            header = dict(zip(_NAMES, _HEADER.unpack_from(data), strict=True))
        yield header, data[:size]
        data = data[size:]


def _record(offset_delta: int, timestamp_delta: int, key: Value, value: Value) -> bytes:
    body = b"\0" + _varint(timestamp_delta) + _varint(offset_delta) + _sized(key) + _sized(value) + _varint(0)
    return _varint(len(body)) + body


def _sized(data: Value) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
