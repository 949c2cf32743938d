"""WriteShareGroupState (key 85), v0-1: what a share group did with records of partitions.

Order of the checks, for each partition: those of `ShareCoordinator.write`.

KIP-932, KIP-1226 (v1, how many records are done with).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.share.in_flight import StateBatch
from odradek_protocol.connection import Request
from odradek_protocol.messages.write_share_group_state import (
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStatePartition,
    WriteStateResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(WriteShareGroupStateRequest)
async def write_share_group_state(
    node: "Node", connection: "Connection", request: Request[WriteShareGroupStateRequest]
) -> WriteShareGroupStateResponse:
    """Answer a WriteShareGroupState request."""
    group_id = request.body.group_id
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(
                topic_id=topic.topic_id,
                partitions=[
                    await _write(node, request, group_id, bytes(topic.topic_id), each) for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


async def _write(
    node: "Node",
    request: Request[WriteShareGroupStateRequest],
    group_id: str,
    topic_id: bytes,
    asked: WriteStatePartition,
) -> PartitionResult:
    try:
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in asked.state_batches
        ]
        unwritten = node.share_coordinator.write(
            group_id,
            topic_id,
            asked.partition,
            state_epoch=asked.state_epoch,
            leader_epoch=asked.leader_epoch,
            start_offset=asked.start_offset,
            delivery_complete_count=asked.delivery_complete_count,
            batches=batches,
        )
        if unwritten is not None:
            await unwritten.wait()
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return PartitionResult(partition=asked.partition, error_code=code, error_message=message or None)
    return PartitionResult(partition=asked.partition)
