"""Record batches for tests: right ones, and ones that are wrong in one chosen field."""

import struct
import time
from collections.abc import Sequence

from odradek_protocol.records.batch import update_crc
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec

FIELDS = {
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "partition_leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] | None = None,
    timestamps: Sequence[int] | None = None,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    **changed: int,
) -> bytearray:
    """A batch of these values, by a producer (id, epoch, first sequence); `changed` header fields, then the CRC.

    A changed `crc` stays as it is told.
    """
    texts = values or (b"v",)
    records = [
        NewRecord(
            key=keys[index] if keys else None,
            value=value,
            timestamp_ms=timestamps[index] if timestamps else now_ms(),
        )
        for index, value in enumerate(texts)
    ]
    producer_id, epoch, sequence = producer
    data = build_batch(records, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    crc = changed.pop("crc", None)
    for name, value in changed.items():
        position, code = FIELDS[name]
        struct.pack_into(code, data, position, value)
    if changed:
        update_crc(data, 0, len(data))
    if crc is not None:
        struct.pack_into(">I", data, 17, crc)
    return data
