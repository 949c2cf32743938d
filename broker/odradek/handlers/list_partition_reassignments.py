"""ListPartitionReassignments (key 46), v0: the partitions whose replicas are on their way to other brokers.

There are none: one broker has all replicas. Topics and partitions that are not there are passed over, too.

KIP-455.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    node: "Node", connection: "Connection", request: Request[ListPartitionReassignmentsRequest]
) -> ListPartitionReassignmentsResponse:
    """Answer a ListPartitionReassignments."""
    return ListPartitionReassignmentsResponse(topics=[])
