"""One partition of __share_group_state as the share coordinator has it: states in memory, and the log they come from.

Memory follows the log: loading applies record after record, and each change is appended first and applied then, by the
same rules. The log is not compacted, as an update is nothing without those before it: what the newest snapshots have
made superfluous is deleted from its start.
"""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from odradek.log.log import Origin
from odradek.share.stored_state import (
    SharePartitionKey,
    StoredState,
    Update,
    decode_key,
    decode_value,
)
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.read import read_records

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["StateShard"]


class StateShard:
    """The states of one partition. `loaded` is false until `load_some` has read the log to its end."""

    def __init__(self, partition: "Partition", config: "BrokerConfig", clock: "Clock") -> None:
        self.partition = partition
        self.states: dict[SharePartitionKey, StoredState] = {}
        self._snapshots: dict[SharePartitionKey, int] = {}
        """The offset of the newest snapshot of each share partition."""
        self._config = config
        self._clock = clock
        self._next_offset = partition.log.log_start_offset
        self._end_offset = partition.log.log_end_offset

    @property
    def loaded(self) -> bool:
        """Whether all that was in the log when this broker took over is in memory."""
        return self._next_offset >= self._end_offset

    def load_some(self) -> None:
        """Read and apply about `share.coordinator.load.buffer.size` bytes; for a thread, until `loaded`.

        Raises BrokerError or ProtocolError when the log cannot be read or holds what is no record of a coordinator.
        """
        size = self._config.share_coordinator_load_buffer_size
        found = self.partition.log.read(self._next_offset, size, self._end_offset, at_least_one=True)
        if found is None:
            self._next_offset = self._end_offset
            return
        data = memoryview(found.read_bytes())
        for position, batch in iter_batches(data):
            if not batch.is_control:
                for record in read_records(data[position : position + batch.size]):
                    self._apply_record(record.key, record.value, record.offset)
            self._next_offset = batch.last_offset + 1

    def _apply_record(self, key: bytes | memoryview | None, value: bytes | memoryview | None, offset: int) -> None:
        subject = None if key is None else decode_key(key)
        if subject is None:
            return
        share_partition, is_snapshot = subject
        self._apply(share_partition, None if value is None else decode_value(value, is_snapshot=is_snapshot), offset)

    def _apply(self, key: SharePartitionKey, value: StoredState | Update | None, offset: int) -> None:
        if value is None:
            self.states.pop(key, None)
            self._snapshots.pop(key, None)
        elif isinstance(value, StoredState):
            self.states[key] = value
            self._snapshots[key] = offset
        elif key in self.states:
            self.states[key] = self.states[key].updated(value)

    def put(self, key: SharePartitionKey, state: StoredState) -> int:
        """Append a snapshot; give its offset."""
        return self._change([(key, key.snapshot_key(), state)])

    def update(self, key: SharePartitionKey, update: Update) -> int:
        """Append an update, or a snapshot with it when there were many; give the offset."""
        state = self.states[key]
        if state.updates >= self._config.share_coordinator_snapshot_update_records_per_snapshot:
            return self.put(key, state.updated(update).snapshot(self._clock.now_ms()))
        return self._change([(key, key.update_key(), update)])

    def remove(self, key: SharePartitionKey) -> int:
        """Append that a share partition is forgotten; give the offset."""
        return self._change([(key, key.snapshot_key(), None)])

    def keep_topics(self, topic_ids: Container[bytes]) -> None:
        """Append that the share partitions of other topics are forgotten."""
        gone = [key for key in self.states if key.topic_id not in topic_ids]
        if gone:
            self._change([(key, key.snapshot_key(), None) for key in gone])

    def prune(self) -> None:
        """Snapshot what has none that is young enough, and delete what is superfluous."""
        now_ms = self._clock.now_ms()
        oldest_ms = now_ms - self._config.share_coordinator_cold_partition_snapshot_interval_ms
        cold = [
            (key, key.snapshot_key(), state.snapshot(now_ms))
            for key, state in self.states.items()
            if state.updates and state.write_timestamp_ms <= oldest_ms
        ]
        if cold:
            self._change(cold)
        start_offset = min(self._snapshots.values(), default=self.partition.high_watermark)
        if self.partition.log_start_offset < start_offset <= self.partition.high_watermark:
            self.partition.delete_records(start_offset)

    def is_committed(self, last_offset: int) -> bool:
        """Whether nothing has to be waited for: what was appended is replicated, and flushed where that is asked."""
        return self.partition.high_watermark > last_offset and self.partition.is_flushed(last_offset)

    async def wait_committed(self, last_offset: int) -> None:
        """Wait until a record is replicated. Raises as `Partition.wait_committed` does."""
        await self.partition.wait_flushed(last_offset)
        if self.partition.high_watermark <= last_offset:
            timeout_s = self._config.share_coordinator_write_timeout_ms / 1000
            await self.partition.wait_committed(last_offset, timeout_s)

    def _change(self, changes: Sequence[tuple[SharePartitionKey, bytes, StoredState | Update | None]]) -> int:
        """Append changes as one batch, and apply them; give the offset of the last one."""
        now_ms = self._clock.now_ms()
        records = [
            NewRecord(key, None if value is None else value.value(), timestamp_ms=now_ms) for _, key, value in changes
        ]
        codec = Codec(self._config.share_coordinator_state_topic_compression_codec)
        self.partition.check_enough_replicas()
        result = self.partition.append(build_batch(records, codec=codec), origin=Origin.COORDINATOR)
        for offset, (key, _, value) in enumerate(changes, result.base_offset):
            self._apply(key, value, offset)
        return result.last_offset
