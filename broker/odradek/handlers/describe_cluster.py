"""DescribeCluster (key 60), v0-2: the cluster's id, controller and brokers.

The brokers are told as in Metadata. There is no broker that is registered and fenced, so v2's wish to see those adds
none.

Order of the checks: an endpoint type that nobody knows is UNSUPPORTED_ENDPOINT_TYPE, and controllers (type 2), which a
cluster with ZooKeeper's roles has none of, MISMATCHED_ENDPOINT_TYPE.

KIP-700, KIP-919 (v1), KIP-1073 (v2).
"""

from typing import TYPE_CHECKING

from odradek.cluster.advertised import reachable_brokers
from odradek.cluster.authorized_operations import CLUSTER_OPERATIONS
from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.describe_cluster import (
    NOT_ASKED,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

BROKERS = 1
CONTROLLERS = 2


@handles(DescribeClusterRequest)
async def describe_cluster(
    node: "Node", connection: "Connection", request: Request[DescribeClusterRequest]
) -> DescribeClusterResponse:
    """Answer a DescribeCluster request."""
    kind = request.body.endpoint_type
    if kind == CONTROLLERS:
        text = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return _refuse(Error.MISMATCHED_ENDPOINT_TYPE, text)
    if kind != BROKERS:
        return _refuse(Error.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}")
    asked = request.body.include_cluster_authorized_operations
    reachable = reachable_brokers(node, connection)
    brokers = [
        DescribeClusterBroker(broker_id=broker.node_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        for broker, endpoint in reachable.values()
    ]
    controller = node.view.controller_id
    return DescribeClusterResponse(
        error_code=Error.NONE,
        cluster_id=node.view.cluster_id,
        controller_id=controller if controller in reachable else -1,
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )


def _refuse(error: Error, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error, error_message=message, cluster_id="", brokers=())
