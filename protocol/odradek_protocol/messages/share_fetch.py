"""Share fetch (key 78): acknowledge records of a share group, and acquire more of them.

KIP-932 (1), KIP-1206 and KIP-1222 (2, how many records are acquired; renewed locks).
"""

from collections.abc import Sequence

from odradek_protocol.schema import (
    Records,
    array,
    boolean,
    int8,
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
class LeaderIdAndEpoch:
    leader_id: int = int32(default=0)
    leader_epoch: int = int32(default=0)


UNNAMED_LEADER = LeaderIdAndEpoch()
"""What stands where no other leader is to be named; Kafka leaves the zeros of its encoder there."""


@struct
class AcquiredRecords:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@struct
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    acknowledge_error_code: int = int16(default=0)
    acknowledge_error_message: str | None = string(nullable_since=0, default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, default=UNNAMED_LEADER)
    records: bytes | memoryview | Records = records()
    acquired_records: Sequence[AcquiredRecords] = array(AcquiredRecords, default=())


@struct
class ShareFetchableTopicResponse:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)


@struct
class ShareFetchResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    acquisition_lock_timeout_ms: int = int32(since=1, default=0)
    responses: Sequence[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse, default=())
    node_endpoints: Sequence[NodeEndpoint] = array(NodeEndpoint, default=())


@struct
class AcknowledgementBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: Sequence[int] = array(int8())


@struct
class ShareFetchPartition:
    partition_index: int = int32()
    acknowledgement_batches: Sequence[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class ShareFetchTopic:
    topic_id: bytes = uuid()
    partitions: Sequence[ShareFetchPartition] = array(ShareFetchPartition)


@struct
class ForgottenTopic:
    topic_id: bytes = uuid()
    partitions: Sequence[int] = array(int32())


@message(key=78, versions=(1, 2), flexible=0, response=ShareFetchResponse)
class ShareFetchRequest:
    group_id: str | None = string(nullable_since=0, default=None)
    member_id: str | None = string(nullable_since=0)
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    max_records: int = int32(since=1)
    batch_size: int = int32(since=1)
    share_acquire_mode: int = int8(since=2, default=0)
    is_renew_ack: bool = boolean(since=2, default=False)
    topics: Sequence[ShareFetchTopic] = array(ShareFetchTopic)
    forgotten_topics_data: Sequence[ForgottenTopic] = array(ForgottenTopic)
