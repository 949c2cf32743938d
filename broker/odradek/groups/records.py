"""Groups and their offsets as records of __consumer_offsets: Kafka's keys and values, in the versions Kafka writes.

key                                 value                    without a value
OffsetCommitKey 1                   OffsetCommitValue 3      the offset is forgotten
(group, topic, partition)           1 with an expiry time
GroupMetadataKey 2 (group)          GroupMetadataValue 3     the group is deleted
"""

from functools import lru_cache

from odradek.groups.member import Member, Store
from odradek.groups.offsets import CommittedOffset
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

__all__ = ["decode_group", "decode_key", "decode_offset", "group_key", "group_value", "offset_key", "offset_value"]

OFFSET_KEY_VERSIONS = (0, 1)
GROUP_KEY_VERSION = 2
OFFSET_VALUE_WITH_EXPIRY = 1
VALUE_VERSION = 3
"""The highest version without tagged fields: brokers from 2.1 on read it (KIP-915)."""

KEYS_KEPT = 8192
"""Consumers commit the same partitions again and again; this many encoded keys take about 2 MB."""


def _encode(value: object, version: int) -> bytes:
    """Raise INVALID_REQUEST for text that these versions cannot hold: requests may carry more than 32767 bytes."""
    try:
        return encode_versioned(value, version)
    except ProtocolError as error:
        raise BrokerError(Error.INVALID_REQUEST, str(error)) from error


@lru_cache(maxsize=KEYS_KEPT)
def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """The key of a committed offset."""
    return _encode(OffsetCommitKey(group=group_id, topic=topic, partition=partition), OFFSET_KEY_VERSIONS[1])


def offset_value(committed: CommittedOffset) -> bytes:
    """The value of a committed offset. One with its own expiry time has no leader epoch: no version has both."""
    offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, _ = committed
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
    )
    return _encode(value, VALUE_VERSION if expire_timestamp_ms < 0 else OFFSET_VALUE_WITH_EXPIRY)


def group_key(group_id: str) -> bytes:
    """The key of a group's metadata."""
    return _encode(GroupMetadataKey(group=group_id), GROUP_KEY_VERSION)


def group_value(store: Store, timestamp_ms: int) -> bytes:
    """The value of a group's metadata."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=metadata,
            assignment=assignment,
        )
        for member, metadata, assignment in store.members
    ]
    value = GroupMetadataValue(
        protocol_type=store.protocol_type or "",
        generation=store.generation,
        protocol=store.protocol_name,
        leader=store.leader,
        current_state_timestamp=timestamp_ms,
        members=members,
    )
    return _encode(value, VALUE_VERSION)


def decode_key(key: bytes | memoryview) -> OffsetCommitKey | GroupMetadataKey | None:
    """What a record is about; None for kinds of groups that this broker does not have.

    Raises ProtocolError when the bytes are no key.
    """
    version = read_version(key)
    if version in OFFSET_KEY_VERSIONS:
        return decode_versioned(OffsetCommitKey, key)
    if version == GROUP_KEY_VERSION:
        return decode_versioned(GroupMetadataKey, key)
    return None


def decode_offset(value: bytes | memoryview, record_offset: int) -> CommittedOffset:
    """A committed offset from the value of the record at `record_offset`. ProtocolError when it is none."""
    decoded = decode_versioned(OffsetCommitValue, value)
    return CommittedOffset(
        offset=decoded.offset,
        leader_epoch=decoded.leader_epoch,
        metadata=decoded.metadata,
        commit_timestamp_ms=decoded.commit_timestamp,
        expire_timestamp_ms=decoded.expire_timestamp,
        record_offset=record_offset,
    )


def decode_group(value: bytes | memoryview) -> tuple[Store, int]:
    """A group and its timestamp from the value of its record. ProtocolError when it is none.

    Values of version 0 have no rebalance timeout; the session timeout stands for it, as it did then.
    """
    decoded = decode_versioned(GroupMetadataValue, value)
    rows = []
    for stored in decoded.members:
        member = Member(
            member_id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout,
            rebalance_timeout_ms=stored.session_timeout if stored.rebalance_timeout < 0 else stored.rebalance_timeout,
            protocols=((decoded.protocol or "", bytes(stored.subscription)),),
        )
        rows.append((member, bytes(stored.subscription), bytes(stored.assignment)))
    store = Store(decoded.generation, decoded.protocol_type or None, decoded.protocol, decoded.leader, rows)
    return store, decoded.current_state_timestamp
