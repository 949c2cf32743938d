"""What is stored of share partitions: a snapshot and the updates since, as records of __share_group_state.

    key                                             value                 without a value
    ShareSnapshotKey (group, topic id, partition)   ShareSnapshotValue    the share partition is forgotten
    ShareUpdateKey, the same                        ShareUpdateValue

A snapshot holds all; an update what changed since: a start offset (-1: as it was), and batches that are laid over those
that are there. KIP-932, KIP-1226 (delivery complete count).
"""

import base64
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odradek.share.in_flight import StateBatch, merged
from odradek_protocol.errors import ProtocolError
from odradek_protocol.internal import share_group_state as stored
from odradek_protocol.internal.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

__all__ = ["UNSET", "SharePartitionKey", "StoredState", "Update", "combined", "decode_key", "decode_value"]

UNSET = -1
"""A start offset, an epoch or a count that is not known, or that an update leaves as it is."""

SNAPSHOT_KEY_VERSION = 0
UPDATE_KEY_VERSION = 1
VALUE_VERSION = 0


class SharePartitionKey(NamedTuple):
    """Which share partition: a group, and a partition of a topic."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def name(self) -> str:
        """What clients call it when they look for its coordinator: "group:topic id:partition"."""
        topic_id = base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        return f"{self.group_id}:{topic_id}:{self.partition}"

    def snapshot_key(self) -> bytes:
        """The key of a snapshot of it."""
        return encode_versioned(ShareSnapshotKey(**self._asdict()), SNAPSHOT_KEY_VERSION)

    def update_key(self) -> bytes:
        """The key of an update of it."""
        return encode_versioned(ShareUpdateKey(**self._asdict()), UPDATE_KEY_VERSION)


class Update(NamedTuple):
    """What changed since a snapshot."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]

    def value(self) -> bytes:
        """It as the value of a record."""
        value = ShareUpdateValue(
            snapshot_epoch=self.snapshot_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            state_batches=_encoded(self.batches),
        )
        return encode_versioned(value, VALUE_VERSION)


class StoredState(NamedTuple):
    """All that is known of a share partition.

    `state_epoch` is the group's epoch when the state was set, and goes up when an administrator sets it again;
    `leader_epoch` that of the partition's leader that read it last. `updates` counts the records since the snapshot.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    batches: Sequence[StateBatch]
    updates: int = 0

    def updated(self, update: Update) -> "StoredState":
        """The state with an update."""
        start_offset = self.start_offset if update.start_offset == UNSET else update.start_offset
        return self._replace(
            start_offset=start_offset,
            leader_epoch=self.leader_epoch if update.leader_epoch == UNSET else update.leader_epoch,
            delivery_complete_count=update.delivery_complete_count,
            batches=combined(self.batches, update.batches, start_offset),
            updates=self.updates + 1,
        )

    def snapshot(self, now_ms: int) -> "StoredState":
        """The state as the next snapshot."""
        return self._replace(
            snapshot_epoch=self.snapshot_epoch + 1,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
            updates=0,
        )

    def value(self) -> bytes:
        """It as the value of a record."""
        value = ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.create_timestamp_ms,
            write_timestamp=self.write_timestamp_ms,
            state_batches=_encoded(self.batches),
        )
        return encode_versioned(value, VALUE_VERSION)


def combined(old: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """All batches from `start_offset` (-1: from the first) on, in order, without overlaps.

    Where batches overlap, the one counts that was delivered more often, then the one with the higher state: a record
    never goes back to fewer deliveries.
    """
    batches = [
        batch._replace(first_offset=max(batch.first_offset, start_offset))
        for batch in (*old, *new)
        if batch.last_offset >= start_offset
    ]
    edges = sorted({edge for batch in batches for edge in (batch.first_offset, batch.last_offset + 1)})
    position = {edge: index for index, edge in enumerate(edges)}
    strongest: list[StateBatch | None] = [None] * len(edges)
    for batch in sorted(batches, key=lambda batch: (batch.delivery_count, batch.delivery_state)):
        for index in range(position[batch.first_offset], position[batch.last_offset + 1]):
            strongest[index] = batch
    return merged(
        batch._replace(first_offset=edges[index], last_offset=edges[index + 1] - 1)
        for index, batch in enumerate(strongest)
        if batch is not None
    )


def decode_key(key: bytes | memoryview) -> tuple[SharePartitionKey, bool] | None:
    """Which share partition a record is about, and whether it is a snapshot; None for what a newer broker adds.

    Raises ProtocolError when the bytes are no key.
    """
    version = read_version(key)
    if version not in (SNAPSHOT_KEY_VERSION, UPDATE_KEY_VERSION):
        return None
    decoded: ShareSnapshotKey | ShareUpdateKey
    is_snapshot = version == SNAPSHOT_KEY_VERSION
    decoded = decode_versioned(ShareSnapshotKey, key) if is_snapshot else decode_versioned(ShareUpdateKey, key)
    return SharePartitionKey(decoded.group_id, decoded.topic_id, decoded.partition), is_snapshot


def decode_value(value: bytes | memoryview, *, is_snapshot: bool) -> StoredState | Update:
    """A snapshot or an update from the value of its record. ProtocolError when it is none."""
    if not is_snapshot:
        update = decode_versioned(ShareUpdateValue, value)
        return Update(
            snapshot_epoch=update.snapshot_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=_decoded(update.state_batches),
        )
    snapshot = decode_versioned(ShareSnapshotValue, value)
    return StoredState(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        create_timestamp_ms=snapshot.create_timestamp,
        write_timestamp_ms=snapshot.write_timestamp,
        batches=_decoded(snapshot.state_batches),
    )


def _encoded(batches: Iterable[StateBatch]) -> list[stored.StateBatch]:
    return [stored.StateBatch(**batch._asdict()) for batch in batches]


def _decoded(batches: Iterable[stored.StateBatch]) -> list[StateBatch]:
    found = []
    for each in batches:
        if each.first_offset > each.last_offset:
            raise ProtocolError(f"a batch from {each.first_offset} to {each.last_offset}")
        found.append(StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count))
    return found
