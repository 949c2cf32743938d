"""Transactional ids as records of __transaction_state: Kafka's keys and values.

key                      value                                       without a value
TransactionLogKey 0      TransactionLogValue 1, which tells the      the id is forgotten
(transactional id)       protocol of the client; 0 where the
                         cluster's transaction.version is 0
"""

from collections.abc import Iterable

from odradek.transactions.state import TopicPartition, TransactionMetadata, TransactionState
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

__all__ = ["by_topic", "decode_key", "decode_value", "encode_key", "encode_value"]

KEY_VERSION = 0


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions by their topics, in order."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics


def encode_key(transactional_id: str) -> bytes:
    """The key of a transactional id. INVALID_REQUEST for one that is too long to be stored."""
    try:
        return encode_versioned(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)
    except ProtocolError as error:
        raise BrokerError(Error.INVALID_REQUEST, str(error)) from error


def encode_value(metadata: TransactionMetadata, server_version: int) -> bytes:
    """The value of a transactional id, in the version that the cluster's `transaction.version` allows."""
    partitions = None
    if metadata.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic(metadata.partitions).items()
        ]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_version,
    )
    return encode_versioned(value, min(server_version, 1))


def decode_key(key: bytes | memoryview) -> str | None:
    """The transactional id that a record is about; None for a kind of record that this broker does not know.

    Raises ProtocolError when the bytes are no key.
    """
    if read_version(key) != KEY_VERSION:
        return None
    return decode_versioned(TransactionLogKey, key).transactional_id


def decode_value(value: bytes | memoryview) -> TransactionMetadata:
    """What a record tells of its transactional id. ProtocolError when the bytes are no such value."""
    decoded = decode_versioned(TransactionLogValue, value)
    try:
        state = TransactionState(decoded.transaction_status)
    except ValueError as error:
        raise ProtocolError(f"{decoded.transaction_status} is no state of a transaction") from error
    return TransactionMetadata(
        producer_id=decoded.producer_id,
        producer_epoch=decoded.producer_epoch,
        timeout_ms=decoded.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (topic.topic, index) for topic in decoded.transaction_partitions or () for index in topic.partition_ids
        ),
        start_ms=decoded.transaction_start_timestamp_ms,
        last_update_ms=decoded.transaction_last_update_timestamp_ms,
        previous_producer_id=decoded.previous_producer_id,
        next_producer_id=decoded.next_producer_id,
        client_version=decoded.client_transaction_version,
    )
