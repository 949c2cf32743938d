"""One partition of __consumer_offsets as a coordinator has it: the groups in memory, and the log that they come from.

Memory follows the log. Loading applies record after record; later each change is appended first and applied then, by
the same rules, so that a restart finds what was there. Offsets of a transaction are applied by its commit marker, where
that stands in the log, and dropped by its abort marker.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.groups.group import Group
from odradek.groups.member import Store
from odradek.groups.offsets import CommittedOffset
from odradek.groups.pending import Commit, PendingOffsets
from odradek.groups.records import (
    decode_group,
    decode_key,
    decode_offset,
    group_key,
    group_value,
    offset_key,
    offset_value,
)
from odradek.log.log import Origin
from odradek.log.validation import read_end_marker
from odradek_protocol.errors import Error
from odradek_protocol.internal.consumer_offsets import OffsetCommitKey
from odradek_protocol.records.batch import NO_PRODUCER_ID, TRANSACTIONAL, RecordBatch
from odradek_protocol.records.build import NewRecord, build_batch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.formats import iter_any, read_any

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["NewOffset", "Shard"]

NewOffset = tuple[str, int, int, int, int, str]
"""What is to be committed: topic, partition, offset, leader epoch, commit timestamp (-1: now), metadata."""

NO_PRODUCER = (NO_PRODUCER_ID, -1)
"""The producer id and epoch of who commits outside a transaction."""


class Shard:
    """The groups of one partition. `loaded` is false until `load_some` has read the log to its end."""

    def __init__(self, partition: "Partition", config: "BrokerConfig", clock: "Clock") -> None:
        self.partition = partition
        self.groups: dict[str, Group] = {}
        self.pending = PendingOffsets()
        self._config = config
        self._clock = clock
        self._next_offset = partition.log.log_start_offset
        self._end_offset = partition.log.log_end_offset

    @property
    def loaded(self) -> bool:
        """Whether all that was in the log when this broker took over is in memory."""
        return self._next_offset >= self._end_offset

    def create(self, group_id: str) -> Group:
        """A new, empty group. It is in the log when it has a generation, or offsets.

        Raises INVALID_REQUEST for a name that cannot be stored.
        """
        group_key(group_id)
        group = self.groups[group_id] = Group(group_id, self._config)
        return group

    # Loading

    def load_some(self) -> None:
        """Read and apply about `offsets.load.buffer.size` bytes; for a thread, until `loaded`.

        Raises BrokerError or ProtocolError when the log cannot be read or holds what is no record of a coordinator.
        """
        found = self.partition.log.read(
            self._next_offset, self._config.offsets_load_buffer_size, self._end_offset, at_least_one=True
        )
        if found is None:
            self._next_offset = self._end_offset
            return
        data = memoryview(found.read_bytes())
        for position, batch in iter_any(data):
            self._apply_batch(batch, data[position : position + batch.size])
            self._next_offset = batch.last_offset + 1

    def _apply_batch(self, batch: RecordBatch, data: memoryview) -> None:
        if batch.is_control:
            marker = read_end_marker(data)
            if marker is not None:
                self.end_transaction(batch.producer_id, committed=marker.committed)
            return
        for record in read_any(data):
            if batch.is_transactional:
                self._hold(batch.producer_id, record.key, record.value, record.offset)
            else:
                self._apply(record.key, record.value, record.offset)

    def _hold(
        self, producer_id: int, key: bytes | memoryview | None, value: bytes | memoryview | None, offset: int
    ) -> None:
        """Keep an offset of a transaction for its marker."""
        subject = None if key is None else decode_key(key)
        if isinstance(subject, OffsetCommitKey) and value is not None:
            commit = (subject.topic, subject.partition, decode_offset(value, offset))
            self.pending.put(producer_id, subject.group, [commit])

    def _apply(self, key: bytes | memoryview | None, value: bytes | memoryview | None, offset: int) -> None:
        subject = None if key is None else decode_key(key)
        if subject is None:
            return
        group = self.groups.get(subject.group)
        if isinstance(subject, OffsetCommitKey):
            if value is not None:
                group = group or self.create(subject.group)
                group.offsets.put(subject.topic, subject.partition, decode_offset(value, offset))
            elif group is not None:
                group.offsets.remove(subject.topic, subject.partition)
        elif value is None:
            self.groups.pop(subject.group, None)
        else:
            store, timestamp_ms = decode_group(value)
            restored = self.groups[subject.group] = Group.restored(subject.group, self._config, store)
            restored.state_timestamp_ms = timestamp_ms
            if group is not None:
                restored.offsets = group.offsets

    # Changes

    def append_commits(
        self,
        group_id: str,
        offsets: Sequence[NewOffset],
        retention_time_ms: int = -1,
        *,
        producer: tuple[int, int] = NO_PRODUCER,
    ) -> tuple[list[Commit], int]:
        """Append commits as one batch; give them for `put_offsets`, and the offset of the last one.

        Those of a transaction are pending from now on. `producer` is its producer's id and epoch.
        """
        now_ms = self._clock.now_ms()
        expire_ms = -1 if retention_time_ms < 0 else now_ms + retention_time_ms
        record_offset = self.partition.log.log_end_offset
        commits: list[Commit] = []
        records: list[tuple[bytes, bytes | None]] = []
        for topic, index, offset, leader_epoch, timestamp_ms, metadata in offsets:
            time_ms = now_ms if timestamp_ms < 0 else timestamp_ms
            committed = CommittedOffset(offset, leader_epoch, metadata, time_ms, expire_ms, record_offset)
            record_offset += 1
            commits.append((topic, index, committed))
            records.append((offset_key(group_id, topic, index), offset_value(committed)))
        last_offset = self._append(records, producer)
        if producer is not NO_PRODUCER:
            self.pending.put(producer[0], group_id, commits)
        return commits, last_offset

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer is in the log: make its offsets visible, or drop them."""
        for group_id, commits in self.pending.end(producer_id):
            if committed:
                self.put_offsets(group_id, commits)

    def put_offsets(self, group_id: str, commits: Sequence[Commit]) -> None:
        """Make commits visible; a group that is not there comes to be."""
        group = self.groups.get(group_id) or self.create(group_id)
        for topic, index, committed in commits:
            group.offsets.put(topic, index, committed)

    def append_group(self, group: Group, store: Store) -> int:
        """Append what a group wants stored; give the offset."""
        group.state_timestamp_ms = self._clock.now_ms()
        return self._append([(group_key(group.group_id), group_value(store, group.state_timestamp_ms))])

    def remove_offsets(self, group: Group, partitions: Sequence[tuple[str, int]]) -> int:
        """Append that offsets are forgotten, and forget them; give the offset of the last record."""
        last_offset = self._append([(offset_key(group.group_id, topic, index), None) for topic, index in partitions])
        for topic, index in partitions:
            group.offsets.remove(topic, index)
        return last_offset

    def remove_group(self, group: Group) -> int:
        """Append that a group and its offsets are forgotten, and forget them; give the offset of the last record."""
        records: list[tuple[bytes, bytes | None]] = [
            (offset_key(group.group_id, topic, index), None) for topic, index in group.offsets.partitions()
        ]
        last_offset = self._append([*records, (group_key(group.group_id), None)])
        del self.groups[group.group_id]
        group.kill(Error.COORDINATOR_NOT_AVAILABLE)
        return last_offset

    def is_committed(self, last_offset: int) -> bool:
        """Whether nothing has to be waited for: what was appended is replicated, and flushed where that is asked."""
        return self.partition.high_watermark > last_offset and self.partition.is_flushed(last_offset)

    async def wait_committed(self, last_offset: int) -> None:
        """Wait until a record is replicated. Raises as `Partition.wait_committed` does."""
        await self.partition.wait_flushed(last_offset)
        if self.partition.high_watermark <= last_offset:
            await self.partition.wait_committed(last_offset, self._config.offsets_commit_timeout_ms / 1000)

    def _append(self, records: Sequence[tuple[bytes, bytes | None]], producer: tuple[int, int] = NO_PRODUCER) -> int:
        now_ms = self._clock.now_ms()
        batch = build_batch(
            [NewRecord(key, value, timestamp_ms=now_ms) for key, value in records],
            codec=Codec(self._config.offsets_topic_compression_codec),
            producer_id=producer[0],
            producer_epoch=producer[1],
            attributes=0 if producer is NO_PRODUCER else TRANSACTIONAL,
        )
        self.partition.check_enough_replicas()
        return self.partition.append(batch, origin=Origin.COORDINATOR).last_offset
