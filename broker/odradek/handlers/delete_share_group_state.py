"""DeleteShareGroupState (key 86), v0: forget how far a share group has come in partitions.

Order of the checks, for each partition: those of `ShareCoordinator.delete`. What is not known is forgotten already.

KIP-932.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStatePartition,
    DeleteStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DeleteShareGroupStateRequest)
async def delete_share_group_state(
    node: "Node", connection: "Connection", request: Request[DeleteShareGroupStateRequest]
) -> DeleteShareGroupStateResponse:
    """Answer a DeleteShareGroupState request."""
    group_id = request.body.group_id
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic_id=topic.topic_id,
                partitions=[
                    await _delete(node, request, group_id, bytes(topic.topic_id), each) for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


async def _delete(
    node: "Node",
    request: Request[DeleteShareGroupStateRequest],
    group_id: str,
    topic_id: bytes,
    asked: DeleteStatePartition,
) -> PartitionResult:
    try:
        await node.share_coordinator.delete(group_id, topic_id, asked.partition)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return PartitionResult(partition=asked.partition, error_code=code, error_message=message or None)
    return PartitionResult(partition=asked.partition)
