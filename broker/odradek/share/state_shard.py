"""One partition of __share_group_state as the share coordinator has it: states in memory, and the log they come from.

The log is not compacted, as an update is nothing without those before it: what the newest snapshots have made
superfluous is deleted from its start.
"""

from collections.abc import Container, Sequence, Sized
from typing import TYPE_CHECKING

from odradek.sharding import Shard
from odradek.share.stored_state import (
    SharePartitionKey,
    StoredState,
    Update,
    decode_key,
    decode_value,
)
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.read import Record

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["StateShard"]


class StateShard(Shard):
    """The states of one partition."""

    def __init__(self, partition: "Partition", config: "BrokerConfig", clock: "Clock") -> None:
        super().__init__(
            partition,
            clock,
            load_bytes=config.share_coordinator_load_buffer_size,
            write_timeout_ms=config.share_coordinator_write_timeout_ms,
            codec=Codec(config.share_coordinator_state_topic_compression_codec),
        )
        self.states: dict[SharePartitionKey, StoredState] = {}
        self._snapshots: dict[SharePartitionKey, int] = {}
        """The offset of the newest snapshot of each share partition."""
        self._config = config

    @property
    def kept(self) -> Sized:
        return self.states

    def apply(self, record: Record) -> None:
        """See `Shard.apply`."""
        subject = None if record.key is None else decode_key(record.key)
        if subject is not None:
            key, is_snapshot = subject
            value = None if record.value is None else decode_value(record.value, is_snapshot=is_snapshot)
            self._put(key, value, record.offset)

    def _put(self, key: SharePartitionKey, value: StoredState | Update | None, offset: int) -> None:
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

    def _change(self, changes: Sequence[tuple[SharePartitionKey, bytes, StoredState | Update | None]]) -> int:
        """Append changes as one batch, and apply them; give the offset of the last one."""
        last_offset = self.append_records(
            [(key, None if value is None else value.value()) for _, key, value in changes]
        )
        for offset, (key, _, value) in enumerate(changes, last_offset - len(changes) + 1):
            self._put(key, value, offset)
        return last_offset
