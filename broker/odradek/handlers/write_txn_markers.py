"""WriteTxnMarkers (key 27), v0-2: end transactions in partitions that this broker leads.

Coordinators send it, and an administrator who ends a transaction that no coordinator knows of any more. A marker is
answered for each of its partitions when it is replicated: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
INVALID_PRODUCER_EPOCH for an older epoch (v2, for a transaction of KIP-890: for one that is not newer),
TRANSACTION_COORDINATOR_FENCED, NOT_ENOUGH_REPLICAS, and what else an append may answer.

KIP-98, KIP-664, KIP-1228 (v2).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek.transactions.markers import Marker
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(WriteTxnMarkersRequest)
async def write_txn_markers(
    node: "Node", connection: "Connection", request: Request[WriteTxnMarkersRequest]
) -> WriteTxnMarkersResponse:
    """Answer a WriteTxnMarkers request."""
    return WriteTxnMarkersResponse(markers=[await _write(node, marker) for marker in request.body.markers])


async def _write(node: "Node", asked: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = Marker(
        asked.producer_id,
        asked.producer_epoch,
        asked.transaction_result,
        asked.coordinator_epoch,
        asked.transaction_version,
    )
    partitions = [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
    results = {
        (name, index): Error.NONE if error is None else error.error
        for name, index, error in await node.markers.write_each(marker, partitions)
    }
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=results[topic.name, index])
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ],
    )
