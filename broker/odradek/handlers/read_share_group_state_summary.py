"""ReadShareGroupStateSummary (key 87), v0-1: where a share group is in partitions.

What is not known has the start offset -1. Order of the checks, for each partition: those of `ShareCoordinator.summary`.

KIP-932, KIP-1226 (v1, how many records are done with).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.share.stored_state import UNSET
from odradek_protocol.connection import Request
from odradek_protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryPartition,
    ReadStateSummaryResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(ReadShareGroupStateSummaryRequest)
async def read_share_group_state_summary(
    node: "Node", connection: "Connection", request: Request[ReadShareGroupStateSummaryRequest]
) -> ReadShareGroupStateSummaryResponse:
    """Answer a ReadShareGroupStateSummary request."""
    group_id = request.body.group_id
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
                topic_id=topic.topic_id,
                partitions=[
                    await _summarize(node, request, group_id, bytes(topic.topic_id), each) for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


async def _summarize(
    node: "Node",
    request: Request[ReadShareGroupStateSummaryRequest],
    group_id: str,
    topic_id: bytes,
    asked: ReadStateSummaryPartition,
) -> PartitionResult:
    try:
        state = node.share_coordinator.summary(group_id, topic_id, asked.partition)
        if state is None:
            return PartitionResult(partition=asked.partition, start_offset=UNSET, delivery_complete_count=UNSET)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return PartitionResult(partition=asked.partition, error_code=code, error_message=message or None)
    return PartitionResult(
        partition=asked.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )
