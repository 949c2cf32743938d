"""Keys and values of the records in `__consumer_offsets`, as `versioned` writes them.

The version of a key tells what the record is about:

    0, 1   OffsetCommitKey    the value is an OffsetCommitValue: a position of a group
    2      GroupMetadataKey   the value is a GroupMetadataValue: a generation of a classic group
    3...   keys of other kinds of groups

A record without a value deletes what its key names. Timestamps are wall-clock milliseconds.
Offset values: KIP-211 (2, no expiry time of their own), KIP-320 (3, leader epochs). Group values: KIP-345 (3, static
members). Both: KIP-915 (4, tagged fields, so that older brokers can read what newer ones add).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, data, int32, int64, message, string, struct, uuid


@message(versions=(0, 1))
class OffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(versions=(0, 4), flexible=4)
class OffsetCommitValue:
    offset: int = int64()
    leader_epoch: int = int32(since=3, default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1)
    topic_id: bytes = uuid(since=4, tag=0, default=NULL_UUID)


@message(versions=(2, 2))
class GroupMetadataKey:
    group: str = string()


@struct
class MemberMetadata:
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=3, default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(since=1, default=-1)
    session_timeout: int = int32()
    subscription: bytes = data()
    assignment: bytes = data()


@message(versions=(0, 4), flexible=4)
class GroupMetadataValue:
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable_since=0)
    leader: str | None = string(nullable_since=0)
    current_state_timestamp: int = int64(since=2, default=-1)
    members: Sequence[MemberMetadata] = array(MemberMetadata)
