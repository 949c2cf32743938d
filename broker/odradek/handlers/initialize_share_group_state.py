"""InitializeShareGroupState (key 83), v0: where a share group begins to read partitions.

Order of the checks, for each partition: those of `ShareCoordinator.initialize`.

KIP-932.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStatePartition,
    InitializeStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(InitializeShareGroupStateRequest)
async def initialize_share_group_state(
    node: "Node", connection: "Connection", request: Request[InitializeShareGroupStateRequest]
) -> InitializeShareGroupStateResponse:
    """Answer a InitializeShareGroupState request."""
    group_id = request.body.group_id
    return InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic_id=topic.topic_id,
                partitions=[
                    await _initialize(node, request, group_id, bytes(topic.topic_id), each) for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


async def _initialize(
    node: "Node",
    request: Request[InitializeShareGroupStateRequest],
    group_id: str,
    topic_id: bytes,
    asked: InitializeStatePartition,
) -> PartitionResult:
    try:
        await node.share_coordinator.initialize(
            group_id, topic_id, asked.partition, state_epoch=asked.state_epoch, start_offset=asked.start_offset
        )
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return PartitionResult(partition=asked.partition, error_code=code, error_message=message or None)
    return PartitionResult(partition=asked.partition)
