"""One partition of __transaction_state as a coordinator has it: the transactional ids, and the log that they come from.

Memory follows the log: loading applies record after record, and later each change is appended before it is applied.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.log.log import Origin
from odradek.transactions.markers import commits_at_once
from odradek.transactions.records import decode_key, decode_value, encode_key, encode_value
from odradek.transactions.state import TransactionalId, TransactionMetadata
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.read import read_records

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["Shard"]


class Shard:
    """The transactional ids of one partition. `loaded` is false until `load_some` has read the log to its end."""

    def __init__(self, partition: "Partition", config: "BrokerConfig", clock: "Clock") -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        """The coordinator's epoch, which its markers carry: that of the lead of the partition."""
        self.transactions: dict[str, TransactionalId] = {}
        self._config = config
        self._clock = clock
        self._next_offset = partition.log.log_start_offset
        self._end_offset = partition.log.log_end_offset

    @property
    def loaded(self) -> bool:
        """Whether all that was in the log when this broker took over is in memory."""
        return self._next_offset >= self._end_offset

    def load_some(self) -> None:
        """Read and apply about `transaction.state.log.load.buffer.size` bytes; for a thread, until `loaded`.

        Raises BrokerError or ProtocolError when the log cannot be read or holds what is no record of a coordinator.
        """
        found = self.partition.log.read(
            self._next_offset, self._config.transaction_state_log_load_buffer_size, self._end_offset, at_least_one=True
        )
        if found is None:
            self._next_offset = self._end_offset
            return
        data = memoryview(found.read_bytes())
        for position, batch in iter_batches(data):
            if not batch.is_control:
                for record in read_records(data[position : position + batch.size]):
                    self._restore(record.key, record.value)
            self._next_offset = batch.last_offset + 1

    def _restore(self, key: bytes | memoryview | None, value: bytes | memoryview | None) -> None:
        transactional_id = None if key is None else decode_key(key)
        if transactional_id is None:
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = TransactionalId(transactional_id, decode_value(value))

    def append(self, transactional_id: str, metadata: TransactionMetadata, server_version: int) -> int:
        """Append what is to be true of an id; give the offset. Raises what `Partition.append` raises."""
        return self._append([(encode_key(transactional_id), encode_value(metadata, server_version))])

    def append_tombstones(self, transactional_ids: Sequence[str]) -> int:
        """Append that ids are forgotten, as one batch; give the offset of the last record."""
        return self._append([(encode_key(transactional_id), None) for transactional_id in transactional_ids])

    def _append(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        now_ms = self._clock.now_ms()
        batch = build_batch([NewRecord(key, value, timestamp_ms=now_ms) for key, value in records])
        self.partition.check_enough_replicas()
        return self.partition.append(batch, origin=Origin.COORDINATOR).last_offset

    @property
    def commits_at_once(self) -> bool:
        """Whether an append is all that it takes: no replica and no disk is to be waited for."""
        return commits_at_once(self.partition)

    def is_committed(self, last_offset: int) -> bool:
        """Whether nothing has to be waited for: what was appended is replicated, and flushed where that is asked."""
        return self.partition.high_watermark > last_offset and self.partition.is_flushed(last_offset)

    async def wait_committed(self, last_offset: int, timeout_ms: int) -> None:
        """Wait until a record is replicated, and flushed where that is asked. As `Partition.wait_committed`."""
        await self.partition.wait_flushed(last_offset)
        if self.partition.high_watermark <= last_offset:
            await self.partition.wait_committed(last_offset, timeout_ms / 1000)
