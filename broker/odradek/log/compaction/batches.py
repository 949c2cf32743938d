"""What is left of one batch. The questions, their order and the answers are those of Kafka's `MemoryRecords.filterTo`.

A batch of which everything is left, and whose header stays as it is, is passed on as the bytes that it came in. One
that lost records keeps its base timestamp, so that the others are copied without being read; only a delete horizon that
is set, once for each batch with tombstones, changes every record's timestamp delta.
"""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.log.compaction.keys import Scan, largest_timestamp_delta, shift_timestamps
from odradek.log.compaction.offset_map import OffsetMap
from odradek.log.compaction.survivors import Survivors
from odradek.log.compaction.transactions import TransactionPass
from odradek.log.validation import read_end_marker
from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    RecordBatch,
    update_crc,
)
from odradek_protocol.records.compression import MAX_RECORDS_BYTES, Codec, compress, decompress
from odradek_protocol.records.legacy import Message, build_message_set, read_messages

__all__ = ["BatchFilter", "Kept", "LastRecord", "open_messages", "records_of"]

NO_TIMESTAMP = -1


class LastRecord(NamedTuple):
    """The last offset of a producer's last batch (-1: only a marker is known), and its epoch."""

    last_offset: int
    producer_epoch: int


class Kept(NamedTuple):
    """What is left of a batch: its bytes, how many records, their largest timestamp, and its last offset."""

    data: bytes | bytearray | memoryview
    records: int
    max_timestamp: int
    last_offset: int


class BatchFilter:
    """The rules of one round: `offsets` and `survivors` know the keys up to `latest_offset`; what is behind it stays.

    `end_offset` is the one behind the round's last batch, `now_ms` when the round began, `horizon_ms` the delete
    horizon of what gets one in this round.
    """

    def __init__(
        self,
        offsets: OffsetMap,
        survivors: Survivors,
        latest_offset: int,
        transactions: TransactionPass,
        producers: Mapping[int, LastRecord],
        *,
        end_offset: int,
        now_ms: int,
        horizon_ms: int,
    ) -> None:
        self._offsets = offsets
        self._survivors = survivors
        self._latest_offset = latest_offset
        self._transactions = transactions
        self._producers = producers
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._horizon_ms = horizon_ms
        self.keeps_old_tombstones = True
        """Whether those of formats 0 and 1 stay: they have no horizon, so it is a question of their segment."""

    def apply(self, data: memoryview, batch: RecordBatch) -> Kept | None:
        """What is left of the batch in `data`; None when nothing is. Raises ProtocolError, BrokerError."""
        if batch.magic < MAGIC:
            return self._filter_messages(data, batch)
        horizon = batch.base_timestamp if batch.attributes & DELETE_HORIZON else None
        horizon_is_past = horizon is not None and horizon <= self._now_ms
        if batch.is_control:
            unneeded = self._transactions.read_marker(batch, read_end_marker(data))
            gone = unneeded and horizon_is_past
        else:
            gone = self._transactions.read_batch(batch)
        if gone or not batch.record_count:
            return self._empty(batch)
        if not batch.is_control:
            return self._filter(data, batch, horizon is not None, horizon_is_past)
        if unneeded and horizon is None:
            return self._rebuild(batch, bytes(data[HEADER_SIZE:]), 1, sets_horizon=True)
        return _whole(data, batch)

    def _filter(self, data: memoryview, batch: RecordBatch, has_horizon: bool, horizon_is_past: bool) -> Kept | None:
        survivors = self._survivors
        is_covered = survivors.cover(batch.base_offset, batch.last_offset)
        if is_covered:
            kept, tombstones = survivors.count(batch.base_offset, batch.last_offset)
            if horizon_is_past:
                kept, tombstones = kept - tombstones, 0
            if not kept:
                return self._empty(batch)
            if kept == batch.record_count and (has_horizon or not tombstones):
                return _whole(data, batch)
        records = records_of(data, batch)
        scan = Scan(records, batch.record_count, batch.last_offset_delta)
        offsets = [batch.base_offset + delta for delta in scan.deltas]
        wanted = [offset in survivors for offset in offsets] if is_covered else self._ask(scan, offsets)
        for number in scan.tombstones if horizon_is_past else ():
            wanted[number] = offsets[number] > self._latest_offset
        kept = sum(wanted)
        if not kept:
            return self._empty(batch)
        sets_horizon = not has_horizon and any(wanted[number] for number in scan.tombstones)
        if kept == batch.record_count and not sets_horizon:
            return _whole(data, batch)
        return self._rebuild(batch, _pick(records, scan.starts, bytes(wanted)), kept, sets_horizon=sets_horizon)

    def _ask(self, scan: Scan, offsets: list[int]) -> list[bool]:
        """Of each record: whether no later one of its key is known."""
        found = self._offsets.get(scan.keys, scan.longest_key)
        wanted = [last <= offset for last, offset in zip(found, offsets, strict=True)]
        for number in scan.keyless:
            wanted[number] = False
        if offsets[-1] > self._latest_offset:
            wanted = [one or offset > self._latest_offset for one, offset in zip(wanted, offsets, strict=True)]
        return wanted

    def _filter_messages(self, data: memoryview, batch: RecordBatch) -> Kept | None:
        """What is left of a message of format 0 or 1, which keeps its format; of a wrapper, that of what it wraps."""
        messages = open_messages(data)
        keys = [message.key or b"" for message in messages]
        found = self._offsets.get(keys, max(map(len, keys)))
        kept = [
            message
            for message, last in zip(messages, found, strict=True)
            if message.offset > self._latest_offset
            or (
                message.key is not None
                and last <= message.offset
                and (message.value is not None or self.keeps_old_tombstones)
            )
        ]
        if not kept:
            return None
        if len(kept) < len(messages):
            data = memoryview(
                build_message_set(kept, batch.magic, codec=Codec(batch.codec), log_append_time=batch.is_log_append_time)
            )
        return Kept(data, len(kept), max(message.timestamp_ms for message in kept), kept[-1].offset)

    def _rebuild(self, batch: RecordBatch, records: bytes, count: int, *, sets_horizon: bool) -> Kept:
        """The batch with only these records."""
        attributes, base_timestamp, max_timestamp = batch.attributes, batch.base_timestamp, batch.max_timestamp
        if count < batch.record_count and not batch.is_log_append_time:
            max_timestamp = base_timestamp + largest_timestamp_delta(records)
        if sets_horizon:
            records = shift_timestamps(records, base_timestamp - self._horizon_ms)
            attributes |= DELETE_HORIZON
            base_timestamp = self._horizon_ms
        packed = compress(batch.codec, records) if batch.codec else records
        data = _with_header(batch, attributes, base_timestamp, max_timestamp, count, packed)
        return Kept(data, count, max_timestamp, batch.last_offset)

    def _empty(self, batch: RecordBatch) -> Kept | None:
        """The batch without records, where it says something without them."""
        last = self._producers.get(batch.producer_id)
        if last is None:
            is_last = False
        elif last.last_offset >= 0:
            is_last = batch.last_offset == last.last_offset
        else:
            is_last = batch.is_control and batch.producer_epoch == last.producer_epoch
        if not is_last and batch.last_offset + 1 != self._end_offset:
            return None
        attributes = batch.attributes & ~(CODEC_MASK | DELETE_HORIZON)
        data = _with_header(batch, attributes, NO_TIMESTAMP, batch.max_timestamp, 0, b"")
        return Kept(data, 0, batch.max_timestamp, batch.last_offset)


def _whole(data: memoryview, batch: RecordBatch) -> Kept:
    return Kept(data, batch.record_count, batch.max_timestamp, batch.last_offset)


def open_messages(data: memoryview) -> list[Message]:
    """The records of a message of format 0 or 1, its own or those that it wraps. Raises ProtocolError."""
    messages = read_messages(data)
    if not all(message.is_valid for message in messages):
        raise ProtocolError("the CRC of a message in a wrapper is wrong")
    return messages


def records_of(data: memoryview, batch: RecordBatch) -> bytes:
    """The records in the bytes of a batch, decompressed. Raises ProtocolError."""
    return decompress(batch.codec, data[HEADER_SIZE : batch.size], MAX_RECORDS_BYTES)


def _pick(records: bytes, starts: list[int], wanted: bytes) -> bytes:
    """The records, which begin at `starts`, that have a 1 in `wanted`; neighbours in one piece."""
    pieces, first = [], wanted.find(1)
    while first >= 0:
        behind = wanted.find(0, first)
        if behind < 0:
            behind = len(wanted)
        pieces.append(records[starts[first] : starts[behind]])
        first = wanted.find(1, behind)
    return b"".join(pieces)


def _with_header(
    batch: RecordBatch, attributes: int, base_timestamp: int, max_timestamp: int, count: int, records: bytes
) -> bytearray:
    data = bytearray(HEADER_SIZE)
    data += records
    HEADER.pack_into(
        data,
        0,
        batch.base_offset,
        len(data) - LOG_OVERHEAD,
        batch.partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    update_crc(data, 0, len(data))
    return data
