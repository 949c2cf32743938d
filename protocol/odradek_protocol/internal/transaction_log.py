"""Keys and values of the records in `__transaction_state`, as `versioned` writes them.

A record tells all that there is to know of one transactional id; without a value the id is forgotten. States are
numbers of `TransactionState`, timestamps wall-clock milliseconds. KIP-98; KIP-890 (1, tagged fields: the producer ids
before and behind a change of the id, and the protocol of the client), KIP-939 (1, the epoch of the next producer id).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int8, int16, int32, int64, message, string, struct


@message(versions=(0, 0))
class TransactionLogKey:
    transactional_id: str = string()


@struct
class PartitionsSchema:
    topic: str = string()
    partition_ids: Sequence[int] = array(int32())


@message(versions=(0, 1), flexible=1)
class TransactionLogValue:
    producer_id: int = int64()
    previous_producer_id: int = int64(since=1, tag=0, default=-1)
    next_producer_id: int = int64(since=1, tag=1, default=-1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16(since=1, tag=3, default=-1)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: Sequence[PartitionsSchema] | None = array(PartitionsSchema, nullable_since=0)
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(since=1, tag=2, default=0)
