"""Batches of records, with the CRC that belongs to them: what a producer may send, and a consumer may find.

Invariant: only ProtocolError escapes from reading, and only BrokerError from appending to a log. Records that are
read take no more than the limit; `scan` tells of a batch what `read_records` does; what is read can be built anew and
is read the same. What a log took is there afterwards, byte for byte but for the offset and the leader epoch in it.
"""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from support.logs import NOW_MS, LogSettings, Opener, marker, records

from fuzzing.folders import folder
from odradek.log.log import Log, Origin
from odradek_protocol.errors import BrokerError, ProtocolError
from odradek_protocol.records.batch import HEADER_SIZE, iter_batches, read_header, stamp, update_crc
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType
from odradek_protocol.records.read import Record, read_records, scan

LIMIT = 1 << 20
"""Bytes that the records of a batch may take."""


def seeds() -> Iterator[bytes]:
    """Batches of each codec, of producers and of transactions."""
    values = (b"first", b"second" * 20, b"")
    for codec in Codec:
        yield bytes(records(*values, codec=codec))
        yield bytes(records(*values, codec=codec, producer=(7, 0, 0)))
    headers = [(b"trace", b"1"), (b"empty", b""), (b"none", None)]
    yield bytes(build_batch([NewRecord(None, None, timestamp_ms=NOW_MS, headers=headers)]))
    yield bytes(records(b"undone", producer=(8, 0, 0), attributes=0x10))
    yield bytes(marker(ControlType.COMMIT, 8, 0))
    yield bytes(records(b"one")) + bytes(records(b"two"))


def check(data: bytes) -> None:
    """Hold the invariant for one input, as it is and with the CRC put right."""
    check_reading(data)
    repaired = bytearray(data)
    if len(data) >= HEADER_SIZE:
        update_crc(repaired, 0, len(data))
    check_append(repaired)


def check_reading(data: bytes) -> None:
    with suppress(ProtocolError):
        for position, batch in iter_batches(data):
            check_batch(memoryview(data)[position : position + batch.size])


def check_batch(batch: memoryview) -> None:
    try:
        read = list(itertools.islice(read_records(batch, limit=LIMIT), LIMIT))
    except ProtocolError:
        return
    header = read_header(batch)
    assert sum(len(record.key or b"") + len(record.value or b"") for record in read) <= LIMIT
    scanned = list(scan(batch, limit=LIMIT))
    assert [(header.base_offset + delta, keyed) for delta, _, keyed in scanned] == [
        (record.offset, record.key is not None) for record in read
    ]
    if not header.is_log_append_time:
        assert [timestamp_ms for _, timestamp_ms, _ in scanned] == [record.timestamp_ms for record in read]
    if read:
        check_rebuilt(read)


def check_rebuilt(read: list[Record]) -> None:
    new = [
        NewRecord(record.key, record.value, timestamp_ms=record.timestamp_ms, headers=record.headers) for record in read
    ]
    try:
        built = build_batch(new)
    except ProtocolError:
        return
    again = list(read_records(built, limit=2 * LIMIT))
    assert [(one.timestamp_ms, one.key, one.value, list(one.headers)) for one in again] == [
        (one.timestamp_ms, one.key, one.value, list(one.headers)) for one in read
    ]


SETTINGS = (
    LogSettings(),
    LogSettings(cleanup_policy=["compact"]),
    LogSettings(message_timestamp_type="LogAppendTime"),
    LogSettings(compression_type="zstd"),
)
"""Of topics that take a batch as it is, read its keys, write its time, and write it anew."""

CHANGING = SETTINGS[2:]


@cache
def logs() -> list[Log]:
    """A log with each of the settings."""
    found = []
    for number, settings in enumerate(SETTINGS):
        opener = Opener(folder("records"))
        opener.config = settings
        found.append(opener(f"t-{number}"))
    return found


def check_append(data: bytearray) -> None:
    """Append to each log, which is emptied again."""
    for log in logs():
        check_append_to(log, bytearray(data))
        log.truncate_fully_and_start_at(0)


def check_append_to(log: Log, data: bytearray) -> None:
    end_offset = log.log_end_offset
    try:
        result = log.append_as_leader(memoryview(data), 0, NOW_MS, Origin.CLIENT)
    except BrokerError:
        assert log.log_end_offset == end_offset
        return
    assert log.log_end_offset == result.last_offset + 1 > result.base_offset == end_offset
    piece = log.read(end_offset, len(data), log.log_end_offset, at_least_one=True)
    assert piece is not None
    kept = piece.read_bytes()
    if log.config not in CHANGING:
        stamp(data, 0, end_offset, 0)
        assert kept == data
    assert read_header(kept).last_offset == result.last_offset
