"""Fetch (key 1): read record batches, waiting for them where there are none yet.

Versions 0 and 1 carry message sets of format 0, versions 2 and 3 those of format 1, all others whatever format the
log has. KIP-74 (3, a limit for the whole reply), KIP-98 (4, isolation level), KIP-227 (7, sessions), KIP-320 (9, leader
epochs), KIP-392 (11, rack and preferred replica), KIP-595 (12, divergence), KIP-516 (13, topic ids), KIP-903 (15),
KIP-951 (16, leader hints), KIP-853 (17), KIP-1166 (18, the high watermark that a replica knows).
"""

from collections.abc import Sequence

from odradek_protocol.schema import (
    NULL_UUID,
    Records,
    array,
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
class EpochEndOffset:
    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class SnapshotId:
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


NO_DIVERGENCE = EpochEndOffset()
NO_LEADER = LeaderIdAndEpoch()
NO_SNAPSHOT = SnapshotId()


@struct
class AbortedTransaction:
    producer_id: int = int64()
    first_offset: int = int64()


@struct
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(since=4, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    diverging_epoch: EpochEndOffset = nested(EpochEndOffset, since=12, tag=0, default=NO_DIVERGENCE)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, since=12, tag=1, default=NO_LEADER)
    snapshot_id: SnapshotId = nested(SnapshotId, since=12, tag=2, default=NO_SNAPSHOT)
    aborted_transactions: Sequence[AbortedTransaction] | None = array(
        AbortedTransaction, since=4, nullable_since=4, default=()
    )
    preferred_read_replica: int = int32(since=11, default=-1)
    records: bytes | memoryview | Records | None = records(nullable_since=0)


@struct
class FetchableTopicResponse:
    topic: str = string(until=12, default="")
    topic_id: bytes = uuid(since=13, default=NULL_UUID)
    partitions: Sequence[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)


@struct
class FetchResponse:
    throttle_time_ms: int = int32(since=1, default=0)
    error_code: int = int16(since=7, default=0)
    session_id: int = int32(since=7, default=0)
    responses: Sequence[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: Sequence[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0, default=())


@struct
class ReplicaState:
    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


CONSUMER = ReplicaState()


@struct
class FetchPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(since=9, default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(since=17, tag=0, default=NULL_UUID)
    high_watermark: int = int64(since=18, tag=1, default=(1 << 63) - 1)


@struct
class FetchTopic:
    topic: str = string(until=12, default="")
    topic_id: bytes = uuid(since=13, default=NULL_UUID)
    partitions: Sequence[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic:
    topic: str = string(until=12, default="")
    topic_id: bytes = uuid(since=13, default=NULL_UUID)
    partitions: Sequence[int] = array(int32())


@message(key=1, versions=(0, 18), flexible=12, response=FetchResponse)
class FetchRequest:
    cluster_id: str | None = string(since=12, nullable_since=12, tag=0, default=None)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState = nested(ReplicaState, since=15, tag=1, default=CONSUMER)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(since=3, default=0x7FFFFFFF)
    isolation_level: int = int8(since=4, default=0)
    session_id: int = int32(since=7, default=0)
    session_epoch: int = int32(since=7, default=-1)
    topics: Sequence[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: Sequence[ForgottenTopic] = array(ForgottenTopic, since=7, default=())
    rack_id: str = string(since=11, default="")
