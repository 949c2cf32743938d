"""The address of a broker that a client is told.

It is the endpoint of the listener that the client came through, so that who dials an inside address is sent to inside
addresses. A broker without `advertised.listeners` tells of itself the very address that the client dialled: the one
address that certainly works.
"""

from typing import TYPE_CHECKING

from odradek.cluster.view import BrokerView, Endpoint

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

__all__ = ["endpoint_of", "reachable_brokers"]


def endpoint_of(node: "Node", connection: "Connection", node_id: int) -> Endpoint | None:
    """Where this client reaches a broker; None when the broker is not alive or does not have the listener."""
    broker = node.view.brokers.get(node_id)
    if broker is None:
        return None
    endpoint = broker.endpoints.get(connection.listener)
    if endpoint is None or node_id != node.node_id or node.config.advertised_listeners is not None:
        return endpoint
    return Endpoint(connection.local_host, connection.local_port, endpoint.security_protocol)


def reachable_brokers(node: "Node", connection: "Connection") -> dict[int, tuple[BrokerView, Endpoint]]:
    """The brokers that this client can reach, in the order of their ids, and where."""
    found = ((broker, endpoint_of(node, connection, node_id)) for node_id, broker in sorted(node.view.brokers.items()))
    return {broker.node_id: (broker, endpoint) for broker, endpoint in found if endpoint is not None}
