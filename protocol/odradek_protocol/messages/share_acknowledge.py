"""Share acknowledge (key 79): acknowledge records of a share group.

KIP-932 (1), KIP-1222 (2, renewed locks).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, int64, message, nested, string, struct, uuid


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=0)
    leader_epoch: int = int32(default=0)


UNNAMED_LEADER = LeaderIdAndEpoch()
"""What stands where no other leader is to be named; Kafka leaves the zeros of its encoder there."""


@struct
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, default=UNNAMED_LEADER)


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: bytes = uuid()
    partitions: Sequence[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)


@struct
class ShareAcknowledgeResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    acquisition_lock_timeout_ms: int = int32(since=2, default=0)
    responses: Sequence[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse, default=())
    node_endpoints: Sequence[NodeEndpoint] = array(NodeEndpoint, default=())


@struct
class AcknowledgementBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: Sequence[int] = array(int8())


@struct
class AcknowledgePartition:
    partition_index: int = int32()
    acknowledgement_batches: Sequence[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class AcknowledgeTopic:
    topic_id: bytes = uuid()
    partitions: Sequence[AcknowledgePartition] = array(AcknowledgePartition)


@message(key=79, versions=(1, 2), flexible=0, response=ShareAcknowledgeResponse)
class ShareAcknowledgeRequest:
    group_id: str | None = string(nullable_since=0, default=None)
    member_id: str | None = string(nullable_since=0)
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(since=2, default=False)
    topics: Sequence[AcknowledgeTopic] = array(AcknowledgeTopic)
