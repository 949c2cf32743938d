"""Describe producers (key 61): who writes to partitions, and since when a transaction is open there. KIP-664."""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, int64, message, string, struct


@struct
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@struct
class PartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    active_producers: Sequence[ProducerState] = array(ProducerState)


@struct
class TopicResponse:
    name: str = string()
    partitions: Sequence[PartitionResponse] = array(PartitionResponse)


@struct
class DescribeProducersResponse:
    throttle_time_ms: int = int32(default=0)
    topics: Sequence[TopicResponse] = array(TopicResponse)


@struct
class TopicRequest:
    name: str = string()
    partition_indexes: Sequence[int] = array(int32())


@message(key=61, versions=(0, 0), flexible=0, response=DescribeProducersResponse)
class DescribeProducersRequest:
    topics: Sequence[TopicRequest] = array(TopicRequest)
