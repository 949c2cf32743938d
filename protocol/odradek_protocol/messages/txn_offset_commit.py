"""Transactional offset commit (key 28): positions of a group that are stored if the transaction is committed.

KIP-320 (2, leader epochs), KIP-447 (3, members), KIP-890 (4, TRANSACTION_ABORTABLE; 5, implies AddOffsetsToTxn),
KIP-1319 (6, topic ids).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, int16, int32, int64, message, string, struct, uuid


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic:
    name: str = string(until=5, default="")
    topic_id: bytes = uuid(since=6, default=NULL_UUID)
    partitions: Sequence[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition, by_column=True)


@struct
class TxnOffsetCommitResponse:
    throttle_time_ms: int = int32(default=0)
    topics: Sequence[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=2, default=-1)
    committed_metadata: str | None = string(nullable_since=0)


@struct
class TxnOffsetCommitRequestTopic:
    name: str = string(until=5, default="")
    topic_id: bytes = uuid(since=6, default=NULL_UUID)
    partitions: Sequence[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition, by_column=True)


@message(key=28, versions=(0, 6), flexible=3, response=TxnOffsetCommitResponse)
class TxnOffsetCommitRequest:
    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id_or_member_epoch: int = int32(since=3, default=-1)
    member_id: str = string(since=3, default="")
    group_instance_id: str | None = string(since=3, nullable_since=3, default=None)
    topics: Sequence[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)
