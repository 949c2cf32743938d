"""One partition of __consumer_offsets as a coordinator has it: the groups in memory, and the log that they come from.

Offsets of a transaction are applied by its commit marker, where that stands in the log, and dropped by its abort
marker.
"""

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from odradek.groups.commits import NewOffsets, encode_alone, encode_commits
from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.consumer_records import CONSUMER_RECORDS
from odradek.groups.consumer_state import Part
from odradek.groups.group import Group
from odradek.groups.member import Store
from odradek.groups.offsets import Commit, GroupOffsets
from odradek.groups.part_records import PartRecord, PartRecords, StoredRecord
from odradek.groups.pending import PendingOffsets
from odradek.groups.records import (
    decode_group,
    decode_key,
    decode_offset,
    group_key,
    group_value,
    offset_key,
)
from odradek.groups.share_group import ShareGroup
from odradek.groups.share_records import SHARE_RECORDS
from odradek.groups.share_state import SharePart
from odradek.groups.streams_group import StreamsGroup
from odradek.groups.streams_records import STREAMS_RECORDS
from odradek.groups.streams_state import StreamsPart
from odradek.groups.subscriptions import Topics
from odradek.groups.tables import Change
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

__all__ = ["AnyGroup", "AssignedGroup", "GroupShard"]

AssignedGroup = ConsumerGroup | ShareGroup | StreamsGroup
"""A group to whose members the broker assigns; see `tables`."""

AnyGroup = Group | AssignedGroup
"""A group of any kind: all have members, offsets and a deadline."""

A = TypeVar("A", ConsumerGroup, ShareGroup, StreamsGroup)

_NO_CODEC = Codec.NONE

RECORDS_OF_A_BATCH = 500
"""How many records of a consumer group go into one batch: a group of thousands of members fills several, each far
below the size limit of a topic."""


class _Kind(NamedTuple):
    """How a kind of assigned group is stored; without `epoch` there is no group."""

    group: type[AssignedGroup]
    records: PartRecords[Any, Any]
    epoch: Part | SharePart | StreamsPart


KINDS = (
    _Kind(ConsumerGroup, CONSUMER_RECORDS, Part.EPOCH),
    _Kind(ShareGroup, SHARE_RECORDS, SharePart.EPOCH),
    _Kind(StreamsGroup, STREAMS_RECORDS, StreamsPart.EPOCH),
)
RECORDS = {kind.group: kind.records for kind in KINDS}


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

    def new(self, kind: type[A], group_id: str) -> A:
        """A new group to whose members the broker assigns; it is there when it is put."""
        return kind(group_id, self._limits, self._topics)

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
            committed = decode_offset(record.value, record.offset)
            self.pending.put(producer_id, subject.group, subject.topic, [(subject.partition, committed)])

    def apply(self, record: Record) -> None:
        """See `Shard.apply`."""
        key, value = record.key, record.value
        if key is None:
            return
        subject = decode_key(key)
        if subject is None:
            self._apply_part(key, value)
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

    def _apply_part(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of a group to whose members the broker assigns; others are passed over."""
        for kind in KINDS:
            record = kind.records.decode(key, value)
            if record is not None:
                self._put_part(kind, record)
                return

    def _put_part(self, kind: _Kind, record: PartRecord[Any, Any]) -> None:
        group = self.groups.get(record.group_id)
        if not isinstance(group, kind.group):
            if record.value is None:
                return
            former, group = group, kind.group(record.group_id, self._limits, self._topics)
            group.offsets = group.offsets if former is None else former.offsets
            self.groups[record.group_id] = group
        group.tables.put(record.part, record.name, record.value)
        if record.part is kind.epoch and record.value is None:
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
        offsets: Sequence[NewOffsets],
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
        count = 0
        for new in offsets:
            commits.append(new.committed(now_ms, expire_ms, record_offset + count))
            count += len(new.partitions)
        if len(commits) == 1 and producer is NO_PRODUCER and self._codec is _NO_CODEC:
            alone = encode_alone(group_id, commits[0], now_ms)
            if alone is not None:
                return commits, self.append_batch(*alone, now_ms)
        body, first = bytearray(), 0
        for commit in commits:
            encode_commits(body, first, group_id, commit)
            first += len(commit.partitions)
        last_offset = self.append_body(body, count, now_ms, producer)
        if producer is not NO_PRODUCER:
            for commit in commits:
                self.pending.put(producer[0], group_id, commit.topic, commit.by_partition())
        return commits, last_offset

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer is in the log: make its offsets visible, or drop them."""
        for group_id, rows in self.pending.end(producer_id):
            if committed:
                offsets = self._offsets(group_id)
                for (topic, partition), row in rows.items():
                    offsets.put(topic, partition, row)

    def put_offsets(self, group_id: str, commits: Sequence[Commit]) -> None:
        """Make commits visible; a group that is not there comes to be."""
        offsets = self._offsets(group_id)
        for commit in commits:
            offsets.put_commit(commit)

    def _offsets(self, group_id: str) -> GroupOffsets:
        return (self.groups.get(group_id) or self.create(group_id)).offsets

    def append_group(self, group: Group, store: Store) -> int:
        """Append what a group wants stored; give the offset."""
        group.state_timestamp_ms = self._clock.now_ms()
        return self.append_records([(group_key(group.group_id), group_value(store, group.state_timestamp_ms))])

    def append_changes(
        self, group: AssignedGroup, changes: Sequence[Change[Any, Any]], *, replaced: Group | None = None
    ) -> int:
        """Append the changes of a group, which is there from now on; give the offset of the last record.

        It may take the place of a classic group.
        """
        records: list[StoredRecord] = [] if replaced is None else [(group_key(group.group_id), None)]
        encode = RECORDS[type(group)].encode
        last_offset = self._append_all([*records, *(encode(group.group_id, change) for change in changes)])
        self.groups[group.group_id] = group
        return last_offset

    def replace_by_classic(self, group: ConsumerGroup | StreamsGroup, classic: Group, store: Store | None) -> int:
        """Append that a group is a classic one from now on, with members where there is something stored."""
        records = RECORDS[type(group)].tombstones(group.group_id, group.tables)
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
        records: list[StoredRecord] = [
            (offset_key(group.group_id, topic, index), None) for topic, index in group.offsets.partitions()
        ]
        if isinstance(group, Group):
            last_offset = self._append_all([*records, (group_key(group.group_id), None)])
            group.kill(Error.COORDINATOR_NOT_AVAILABLE)
        else:
            last_offset = self._append_all([*records, *RECORDS[type(group)].tombstones(group.group_id, group.tables)])
            group.kill()
        del self.groups[group.group_id]
        return last_offset

    def _append_all(self, records: Sequence[StoredRecord]) -> int:
        """Append any number of records; give the offset of the last one."""
        last_offset = -1
        for start in range(0, len(records), RECORDS_OF_A_BATCH):
            last_offset = self.append_records(records[start : start + RECORDS_OF_A_BATCH])
        return last_offset
