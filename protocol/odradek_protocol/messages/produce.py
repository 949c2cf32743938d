"""Produce (key 0): append record batches to partitions.

Versions 0 and 1 carry message sets of format 0, version 2 those of format 1, all others a RecordBatch v2.
KIP-98 (transactional id), KIP-467 (record errors), KIP-951 (leader hints), KIP-890 (12), KIP-516 (13, topic ids).
"""

from collections.abc import Sequence

from odradek_protocol.schema import (
    NULL_UUID,
    array,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uuid,
)


@struct
class RecordError:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable_since=0, default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


NO_LEADER = LeaderIdAndEpoch()


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(since=2, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    record_errors: Sequence[RecordError] = array(RecordError, since=8, default=())
    error_message: str | None = string(since=8, nullable_since=8, default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, since=10, tag=0, default=NO_LEADER)


@struct
class TopicProduceResponse:
    name: str = string(until=12, default="")
    topic_id: bytes = uuid(since=13, default=NULL_UUID)
    partition_responses: Sequence[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)


@struct
class ProduceResponse:
    responses: Sequence[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(since=1, default=0)
    node_endpoints: Sequence[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0, default=())


@struct
class PartitionProduceData:
    index: int = int32()
    records: memoryview | None = records(nullable_since=0)


@struct
class TopicProduceData:
    name: str = string(until=12, default="")
    topic_id: bytes = uuid(since=13, default=NULL_UUID)
    partition_data: Sequence[PartitionProduceData] = array(PartitionProduceData)


@message(key=0, versions=(0, 13), flexible=9, response=ProduceResponse)
class ProduceRequest:
    transactional_id: str | None = string(since=3, nullable_since=3, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: Sequence[TopicProduceData] = array(TopicProduceData)
