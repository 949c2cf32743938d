"""AlterPartitionReassignments (key 45), v0-1: let the replicas of partitions live on other brokers.

One broker has all of them, so what it can be asked for is how things are: that is done at once, and nothing is ever in
progress that could be listed or cancelled. kafka-reassign-partitions asks for it before it moves a log to another
folder (AlterReplicaLogDirs). With one replica at the most, `allow_replication_factor_change` decides nothing.

Order of the checks, for each partition: UNKNOWN_TOPIC_OR_PARTITION; a null list, which cancels,
NO_REASSIGNMENT_IN_PROGRESS; a list that names a broker that is not there or twice, or is empty,
INVALID_REPLICA_ASSIGNMENT.

KIP-455; KIP-860.
"""

from typing import TYPE_CHECKING

from odradek.cluster.plans import check_reassignment
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(AlterPartitionReassignmentsRequest)
def alter_partition_reassignments(
    node: "Node", connection: "Connection", request: Request[AlterPartitionReassignmentsRequest]
) -> AlterPartitionReassignmentsResponse:
    """Answer an AlterPartitionReassignments."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.body.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_judge(node, request, topic.name, partition) for partition in topic.partitions],
            )
            for topic in request.body.topics
        ],
    )


def _judge(
    node: "Node", request: Request[AlterPartitionReassignmentsRequest], topic: str, wanted: ReassignablePartition
) -> ReassignablePartitionResponse:
    code, message = Error.NONE, ""
    try:
        check_reassignment(node.view, topic, wanted.partition_index, wanted.replicas)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
    return ReassignablePartitionResponse(
        partition_index=wanted.partition_index, error_code=code, error_message=message or None
    )
