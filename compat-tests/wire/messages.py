"""Message sets of formats 0 and 1, right ones and ones that are wrong in one chosen way."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import TYPE_CHECKING

import snappy

if TYPE_CHECKING:
    from collections.abc import Callable

    from wire.records import Value

CODECS: dict[int, Callable[[bytes], bytes]] = {
    1: lambda data: gzip.compress(data, mtime=0),
    2: lambda data: b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(snappy.compress(data))) + snappy.compress(data),
}


def message(
    magic: int,
    value: Value = b"v",
    key: Value = None,
    *,
    offset: int = 0,
    timestamp: int = -1,
    attributes: int = 0,
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    """Write one message. A `crc` or `size` that is not given fits the rest."""
    checked = struct.pack(">bb", magic, attributes)
    if magic > 0:
        checked += struct.pack(">q", timestamp)
    for part in (key, value):
        checked += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    body = struct.pack(">I", zlib.crc32(checked) if crc is None else crc) + checked
    return struct.pack(">qi", offset, len(body) if size is None else size) + body


def wrapper(
    magic: int, codec: int, messages: bytes, *, offset: int = 0, timestamp: int = -1, attributes: int = 0
) -> bytes:
    """Write a message that holds compressed messages."""
    value = CODECS[codec](messages)
    return message(magic, value, offset=offset, timestamp=timestamp, attributes=attributes | codec)
