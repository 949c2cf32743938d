"""Describe cluster (key 60): the cluster's id, controller and brokers.

KIP-700; KIP-919 (1, endpoint type: 1 brokers, 2 controllers), KIP-1073 (2, fenced brokers).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, message, string, struct

NOT_ASKED = -(1 << 31)
"""Authorized operations that the request did not ask for (KIP-430)."""


@struct
class DescribeClusterBroker:
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)
    is_fenced: bool = boolean(since=2, default=False)


@struct
class DescribeClusterResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: Sequence[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=NOT_ASKED)


@message(key=60, versions=(0, 2), flexible=0, response=DescribeClusterResponse)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2, default=False)
