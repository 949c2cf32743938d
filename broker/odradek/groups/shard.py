"""One partition of __consumer_offsets as a coordinator has it: the groups in memory, and the log that they come from.

Offsets of a transaction are applied by its commit marker, where that stands in the log, and dropped by its abort
marker.
"""

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING

from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.consumer_records import (
    ConsumerRecord,
    consumer_record,
    consumer_tombstones,
    decode_consumer_record,
)
from odradek.groups.consumer_state import Change, Part
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
from odradek.groups.share_group import ShareGroup
from odradek.groups.share_records import ShareRecord, decode_share_record, share_record, share_tombstones
from odradek.groups.share_state import ShareChange, SharePart
from odradek.groups.streams_group import StreamsGroup
from odradek.groups.streams_records import (
    StreamsRecord,
    decode_streams_record,
    streams_record,
    streams_tombstones,
)
from odradek.groups.streams_state import StreamsChange, StreamsPart
from odradek.groups.subscriptions import Topics
from odradek.log.validation import read_end_marker
from odradek.sharding import NO_PRODUCER, Shard
from odradek_protocol.errors import Error
from odradek_protocol.internal.consumer_offsets import OffsetCommitKey
from odradek_protocol.records.batch import RecordBatch
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.formats import read_any
from odradek_protocol.records.read import Record

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import BrokerConfig
    from odradek.groups.limits import GroupSettings
    from odradek.partition import Partition

__all__ = ["AnyGroup", "GroupShard", "NewOffset"]

AnyGroup = Group | ConsumerGroup | ShareGroup | StreamsGroup
"""A group of any kind: all have members, offsets and a deadline."""

NewOffset = tuple[str, int, int, int, int, str]
"""What is to be committed: topic, partition, offset, leader epoch, commit timestamp (-1: now), metadata."""

RECORDS_OF_A_BATCH = 500
"""How many records of a consumer group go into one batch: a group of thousands of members fills several, each far
below the size limit of a topic."""


class GroupShard(Shard):
    """The groups of one partition."""

    def __init__(
        self, partition: "Partition", config: "BrokerConfig", clock: "Clock", limits: "GroupSettings", topics: Topics
    ) -> None:
        super().__init__(
            partition,
            clock,
            load_bytes=config.offsets_load_buffer_size,
            write_timeout_ms=config.offsets_commit_timeout_ms,
            codec=Codec(config.offsets_topic_compression_codec),
        )
        self._config = config
        self.groups: dict[str, AnyGroup] = {}
        self.pending = PendingOffsets()
        self._limits = limits
        self._topics = topics

    @property
    def kept(self) -> Sized:
        return self.groups

    def create(self, group_id: str) -> Group:
        """A new, empty group. It is in the log when it has a generation, or offsets.

        Raises INVALID_REQUEST for a name that cannot be stored.
        """
        group_key(group_id)
        group = self.groups[group_id] = Group(group_id, self._config)
        return group

    def new_consumer_group(self, group_id: str) -> ConsumerGroup:
        """A new consumer group; it is there when it is put."""
        return ConsumerGroup(group_id, self._limits, self._topics)

    def new_share_group(self, group_id: str) -> ShareGroup:
        """A new share group; it is there when it is put."""
        return ShareGroup(group_id, self._limits, self._topics)

    def new_streams_group(self, group_id: str) -> StreamsGroup:
        """A new streams group; it is there when it is put."""
        return StreamsGroup(group_id, self._limits, self._topics)

    # Loading

    def apply_batch(self, batch: RecordBatch, data: memoryview) -> None:
        """Apply a batch; what is of a transaction is kept until its marker comes."""
        if batch.is_control:
            marker = read_end_marker(data)
            if marker is not None:
                self.end_transaction(batch.producer_id, committed=marker.committed)
        elif batch.is_transactional:
            for record in read_any(data):
                self._hold(batch.producer_id, record)
        else:
            super().apply_batch(batch, data)

    def _hold(self, producer_id: int, record: Record) -> None:
        """Keep an offset of a transaction for its marker."""
        subject = None if record.key is None else decode_key(record.key)
        if isinstance(subject, OffsetCommitKey) and record.value is not None:
            commit = (subject.topic, subject.partition, decode_offset(record.value, record.offset))
            self.pending.put(producer_id, subject.group, [commit])

    def apply(self, record: Record) -> None:
        """See `Shard.apply`."""
        key, value = record.key, record.value
        if key is None:
            return
        subject = decode_key(key)
        if subject is None:
            if (of_consumer_group := decode_consumer_record(key, value)) is not None:
                self._apply_consumer_record(of_consumer_group)
            elif (of_share_group := decode_share_record(key, value)) is not None:
                self._apply_share_record(of_share_group)
            elif (of_streams_group := decode_streams_record(key, value)) is not None:
                self._apply_streams_record(of_streams_group)
            return
        group = self.groups.get(subject.group)
        if isinstance(subject, OffsetCommitKey):
            if value is not None:
                group = group or self.create(subject.group)
                group.offsets.put(subject.topic, subject.partition, decode_offset(value, record.offset))
            elif group is not None:
                group.offsets.remove(subject.topic, subject.partition)
        elif value is None:
            if isinstance(group, Group):
                self._forget(group)
        else:
            store, timestamp_ms = decode_group(value)
            restored = self.groups[subject.group] = Group.restored(subject.group, self._config, store)
            restored.state_timestamp_ms = timestamp_ms
            if group is not None:
                restored.offsets = group.offsets

    def _apply_consumer_record(self, record: ConsumerRecord) -> None:
        group = self.groups.get(record.group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            offsets = None if group is None else group.offsets
            group = self.groups[record.group_id] = self.new_consumer_group(record.group_id)
            group.offsets = offsets or group.offsets
        group.tables.put(record.part, record.name, record.value)
        if record.part is Part.EPOCH and record.value is None:
            self._forget(group)

    def _apply_share_record(self, record: ShareRecord) -> None:
        group = self.groups.get(record.group_id)
        if not isinstance(group, ShareGroup):
            if record.value is None:
                return
            group = self.groups[record.group_id] = self.new_share_group(record.group_id)
        group.tables.put(record.part, record.name, record.value)
        if record.part is SharePart.EPOCH and record.value is None:
            del self.groups[record.group_id]

    def _apply_streams_record(self, record: StreamsRecord) -> None:
        group = self.groups.get(record.group_id)
        if not isinstance(group, StreamsGroup):
            if record.value is None:
                return
            offsets = None if group is None else group.offsets
            group = self.groups[record.group_id] = self.new_streams_group(record.group_id)
            group.offsets = offsets or group.offsets
        group.tables.put(record.part, record.name, record.value)
        if record.part is StreamsPart.EPOCH and record.value is None:
            self._forget(group)

    def _forget(self, group: AnyGroup) -> None:
        """A group is deleted; offsets that are not stay, in a group that is nothing else."""
        del self.groups[group.group_id]
        if group.offsets:
            self.create(group.group_id).offsets = group.offsets

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
        last_offset = self.append_records(records, producer)
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
        return self.append_records([(group_key(group.group_id), group_value(store, group.state_timestamp_ms))])

    def append_changes(self, group: ConsumerGroup, changes: Sequence[Change]) -> int:
        """Append the changes of a consumer group; give the offset of the last record."""
        return self._append_all([consumer_record(group.group_id, change) for change in changes])

    def append_share_changes(self, group: ShareGroup, changes: Sequence[ShareChange]) -> int:
        """Append the changes of a share group, which is there from now on; give the offset of the last record."""
        last_offset = self._append_all([share_record(group.group_id, change) for change in changes])
        self.groups[group.group_id] = group
        return last_offset

    def append_streams_changes(self, group: StreamsGroup, changes: Sequence[StreamsChange]) -> int:
        """Append the changes of a streams group; give the offset of the last record."""
        return self._append_all([streams_record(group.group_id, change) for change in changes])

    def put_streams_group(self, group: StreamsGroup, changes: Sequence[StreamsChange], classic: Group | None) -> int:
        """Append what a new streams group is made of, and let it be, in the place of `classic` if that is there."""
        records = [] if classic is None else [(group_key(group.group_id), None)]
        last_offset = self._append_all([*records, *(streams_record(group.group_id, change) for change in changes)])
        self.groups[group.group_id] = group
        return last_offset

    def put_consumer_group(self, group: ConsumerGroup, changes: Sequence[Change], classic: Group | None) -> int:
        """Append what a new consumer group is made of, and let it be, in the place of `classic` if that is there."""
        records = [] if classic is None else [(group_key(group.group_id), None)]
        last_offset = self._append_all([*records, *(consumer_record(group.group_id, change) for change in changes)])
        self.groups[group.group_id] = group
        return last_offset

    def replace_by_classic(self, group: ConsumerGroup | StreamsGroup, classic: Group, store: Store | None) -> int:
        """Append that a group is a classic one from now on, with members where there is something stored."""
        records = _tombstones(group)
        classic.state_timestamp_ms = self._clock.now_ms()
        if store is not None:
            records.append((group_key(group.group_id), group_value(store, classic.state_timestamp_ms)))
        last_offset = self._append_all(records)
        self.groups[group.group_id] = classic
        group.kill()
        return last_offset

    def remove_offsets(self, group: AnyGroup, partitions: Sequence[tuple[str, int]]) -> int:
        """Append that offsets are forgotten, and forget them; give the offset of the last record."""
        last_offset = self.append_records(
            [(offset_key(group.group_id, topic, index), None) for topic, index in partitions]
        )
        for topic, index in partitions:
            group.offsets.remove(topic, index)
        return last_offset

    def remove_group(self, group: AnyGroup) -> int:
        """Append that a group and its offsets are forgotten, and forget them; give the offset of the last record."""
        records: list[tuple[bytes, bytes | None]] = [
            (offset_key(group.group_id, topic, index), None) for topic, index in group.offsets.partitions()
        ]
        if isinstance(group, Group):
            last_offset = self._append_all([*records, (group_key(group.group_id), None)])
            group.kill(Error.COORDINATOR_NOT_AVAILABLE)
        else:
            last_offset = self._append_all([*records, *_tombstones(group)])
            group.kill()
        del self.groups[group.group_id]
        return last_offset

    def _append_all(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        """Append any number of records; give the offset of the last one."""
        last_offset = -1
        for start in range(0, len(records), RECORDS_OF_A_BATCH):
            last_offset = self.append_records(records[start : start + RECORDS_OF_A_BATCH])
        return last_offset


def _tombstones(group: ConsumerGroup | ShareGroup | StreamsGroup) -> list[tuple[bytes, bytes | None]]:
    """The records that delete a group that has records of its own kind."""
    if isinstance(group, ShareGroup):
        return share_tombstones(group)
    return streams_tombstones(group) if isinstance(group, StreamsGroup) else consumer_tombstones(group)
