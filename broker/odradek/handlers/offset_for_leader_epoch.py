"""OffsetForLeaderEpoch (key 23), v0-4: where the records of a leader epoch end.

The answer is the greatest epoch up to the asked one and the offset behind its last record; -1 and -1 when the log knows
of none. Order of the checks, for each partition: topic and partition (UNKNOWN_TOPIC_OR_PARTITION), leadership, leader
epoch (-1 is not compared). Who asks, a replica, a consumer (-1) or a debugger (-2), makes no difference.

KIP-101, KIP-279 (v1: the epoch in the answer), KIP-320 (v2: the asker's leader epoch).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

UNKNOWN = (-1, -1)


@handles(OffsetForLeaderEpochRequest)
async def offset_for_leader_epoch(
    node: "Node", connection: "Connection", request: Request[OffsetForLeaderEpochRequest]
) -> OffsetForLeaderEpochResponse:
    """Answer an OffsetForLeaderEpoch."""
    topics = []
    for topic in request.body.topics:
        results = []
        for asked in topic.partitions:
            (epoch, end_offset), code = UNKNOWN, Error.NONE
            try:
                epoch, end_offset = _end_of_epoch(node, topic.topic, asked)
            except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
                code, _ = answer_for(error, request)
            results.append(
                EpochEndOffset(error_code=code, partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
            )
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    return OffsetForLeaderEpochResponse(topics=topics)


def _end_of_epoch(node: "Node", topic: str, asked: OffsetForLeaderPartition) -> tuple[int, int]:
    partition = node.partitions.get(topic, asked.partition)
    if partition is None:
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    partition.check_leader()
    partition.check_epoch(asked.current_leader_epoch)
    return partition.log.end_offset_for_epoch(asked.leader_epoch) or UNKNOWN
