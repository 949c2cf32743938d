"""Keys and values of the records in `__share_group_state`, as `versioned` writes them (KIP-932).

The version of a key tells what the record is:

    0   ShareSnapshotKey   the value is a ShareSnapshotValue: all that is known of a share partition
    1   ShareUpdateKey     the value is a ShareUpdateValue: what changed since the snapshot of that epoch

A snapshot without a value deletes the state of the share partition. Timestamps are wall-clock milliseconds.
KIP-1226 (how many records behind the start offset are done with).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, int64, message, string, struct, uuid


@message(versions=(0, 0))
class ShareSnapshotKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@message(versions=(0, 0), flexible=0)
class ShareSnapshotValue:
    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(tag=0, default=-1)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: Sequence[StateBatch] = array(StateBatch)


@message(versions=(1, 1))
class ShareUpdateKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


@message(versions=(0, 0), flexible=0)
class ShareUpdateValue:
    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(tag=0, default=-1)
    state_batches: Sequence[StateBatch] = array(StateBatch)
