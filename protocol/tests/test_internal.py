"""Stored messages: their versions, and the bytes that Kafka writes."""

from typing import Any

import pytest

from odradek_protocol.errors import ProtocolError
from odradek_protocol.internal.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek_protocol.internal.consumer_protocol import ConsumerProtocolSubscription, subscribed_topics
from odradek_protocol.internal.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=5)
OFFSET_VALUE = OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9)
GROUP_KEY = GroupMetadataKey(group="g")
GROUP_VALUE = GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None, members=[])
SUBSCRIPTION = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
TRANSACTION_KEY = TransactionLogKey(transactional_id="t")
TRANSACTION_VALUE = TransactionLogValue(
    producer_id=5,
    producer_epoch=2,
    transaction_timeout_ms=60000,
    transaction_status=1,
    transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[3])],
    transaction_last_update_timestamp_ms=9,
    transaction_start_timestamp_ms=8,
)
TRANSACTION_BYTES = "0000000000000005 0002 0000ea60 01"
TAGGED_TRANSACTION = TransactionLogValue(
    **{field.name: getattr(TRANSACTION_VALUE, field.name) for field in TransactionLogValue.FIELDS if field.tag is None},
    client_transaction_version=2,
)


@pytest.mark.parametrize(
    ("value", "version", "in_bytes"),
    [
        (OFFSET_KEY, 1, "0001 000167 000174 00000005"),
        (GROUP_KEY, 2, "0002 000167"),
        (OFFSET_VALUE, 3, "0003 0000000000000007 00000002 00016d 0000000000000009"),
        (OFFSET_VALUE, 4, "0004 0000000000000007 00000002 026d 0000000000000009 00"),
        (GROUP_VALUE, 3, "0003 0008636f6e73756d6572 00000001 ffff ffff ffffffffffffffff 00000000"),
        (TRANSACTION_KEY, 0, "0000 000174"),
        (
            TRANSACTION_VALUE,
            0,
            f"0000 {TRANSACTION_BYTES} 00000001 000174 00000001 00000003 0000000000000009 0000000000000008",
        ),
        (
            TAGGED_TRANSACTION,
            1,
            f"0001 {TRANSACTION_BYTES} 02 0274 02 00000003 00 0000000000000009 0000000000000008 01 02 02 0002",
        ),
        (SUBSCRIPTION, 3, "0003 00000001 000174 ffffffff 00000000 00000004 000172"),
    ],
)
def test_bytes(value: Any, version: int, in_bytes: str) -> None:
    assert encode_versioned(value, version) == bytes.fromhex(in_bytes)
    assert read_version(bytes.fromhex(in_bytes)) == version
    assert decode_versioned(type(value), bytes.fromhex(in_bytes)) == value


@pytest.mark.parametrize(
    ("kind", "version"), [(OffsetCommitKey, 2), (GroupMetadataKey, 1), (OffsetCommitValue, 5), (GroupMetadataValue, -1)]
)
def test_unknown_version_is_refused(kind: type[Any], version: int) -> None:
    in_bytes = version.to_bytes(2, "big", signed=True) + bytes(64)
    with pytest.raises(ProtocolError, match=f"not {version}"):
        decode_versioned(kind, in_bytes)


def test_version_that_a_message_lacks_is_not_written() -> None:
    with pytest.raises(ProtocolError, match="GroupMetadataKey has versions 2 to 2, not 3"):
        encode_versioned(GROUP_KEY, 3)


@pytest.mark.parametrize("in_bytes", [b"", b"\x00", b"\x00\x01", b"\x00\x01\x00"])
def test_cut_short_is_refused(in_bytes: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_versioned(OffsetCommitKey, in_bytes)
    with pytest.raises(ProtocolError):
        subscribed_topics(in_bytes)


@pytest.mark.parametrize("version", ["0000", "0003", "7fff"])
def test_topics_of_a_subscription_of_any_version(version: str) -> None:
    in_bytes = bytes.fromhex(version) + encode_versioned(SUBSCRIPTION, 3)[2:]
    assert subscribed_topics(in_bytes) == ["t"]
