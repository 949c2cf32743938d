"""ReadShareGroupState (key 84), v0: how far a share group has come in partitions.

The leader epoch of who asks is remembered, and fences those with an older one. Order of the checks, for each partition:
those of `ShareCoordinator.read`.

KIP-932.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStatePartition,
    ReadStateResult,
    StateBatch,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(ReadShareGroupStateRequest)
async def read_share_group_state(
    node: "Node", connection: "Connection", request: Request[ReadShareGroupStateRequest]
) -> ReadShareGroupStateResponse:
    """Answer a ReadShareGroupState request."""
    group_id = request.body.group_id
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(
                topic_id=topic.topic_id,
                partitions=[
                    await _read(node, request, group_id, bytes(topic.topic_id), each) for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


async def _read(
    node: "Node",
    request: Request[ReadShareGroupStateRequest],
    group_id: str,
    topic_id: bytes,
    asked: ReadStatePartition,
) -> PartitionResult:
    try:
        state, unwritten = node.share_coordinator.read(group_id, topic_id, asked.partition, asked.leader_epoch)
        if unwritten is not None:
            await unwritten.wait()
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return PartitionResult(partition=asked.partition, error_code=code, error_message=message or None)
    return PartitionResult(
        partition=asked.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[StateBatch(**batch._asdict()) for batch in state.batches],
    )
