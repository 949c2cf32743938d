"""Metadata (key 3): brokers, controller, and the leaders and replicas of topics.

Version 0 asks for all topics with an empty array, later ones with null. KIP-78 (2, cluster id), KIP-112 (5, offline
replicas), KIP-320 (7, leader epochs), KIP-430 (8, authorized operations), KIP-516 (10, topic ids; 12, topics asked for
by id), KIP-700 (11, the cluster's operations move to DescribeCluster), KIP-1102 (13, top-level error).
"""

from collections.abc import Sequence

from odradek_protocol.schema import NULL_UUID, array, boolean, int16, int32, message, string, struct, uuid

NOT_ASKED = -(1 << 31)
"""Authorized operations that the request did not ask for (KIP-430)."""


@struct
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(since=1, nullable_since=1, default=None)


@struct
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(since=7, default=-1)
    replica_nodes: Sequence[int] = array(int32())
    isr_nodes: Sequence[int] = array(int32())
    offline_replicas: Sequence[int] = array(int32(), since=5, default=())


@struct
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable_since=12)
    topic_id: bytes = uuid(since=10, default=NULL_UUID)
    is_internal: bool = boolean(since=1, default=False)
    partitions: Sequence[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(since=8, default=NOT_ASKED)


@struct
class MetadataResponse:
    throttle_time_ms: int = int32(since=3, default=0)
    brokers: Sequence[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable_since=2, default=None)
    controller_id: int = int32(since=1, default=-1)
    topics: Sequence[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=NOT_ASKED)
    error_code: int = int16(since=13, default=0)


@struct
class MetadataRequestTopic:
    topic_id: bytes = uuid(since=10, default=NULL_UUID)
    name: str | None = string(nullable_since=10)


@message(key=3, versions=(0, 13), flexible=9, response=MetadataResponse)
class MetadataRequest:
    topics: Sequence[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10, default=False)
    include_topic_authorized_operations: bool = boolean(since=8, default=False)
