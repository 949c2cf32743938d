"""Share acknowledge (key 79): acknowledge records of a share group.

What it has in common with ShareFetch is described there. KIP-932 (1), KIP-1222 (2, renewed locks).
"""

from collections.abc import Sequence

from odradek_protocol.messages.share_fetch import UNNAMED_LEADER, AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from odradek_protocol.schema import array, boolean, int16, int32, message, nested, string, struct, uuid


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
class ShareAcknowledgeResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(nullable_since=0, default=None)
    acquisition_lock_timeout_ms: int = int32(since=2, default=0)
    responses: Sequence[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse, default=())
    node_endpoints: Sequence[NodeEndpoint] = array(NodeEndpoint, default=())


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
