"""DeleteRecords (key 21), v0-2: let partitions start at a later offset (KIP-107).

Order of the checks, for each partition: an internal topic (INVALID_TOPIC_EXCEPTION), topic and partition
(UNKNOWN_TOPIC_OR_PARTITION), leadership, a `cleanup.policy` that only compacts (POLICY_VIOLATION), offset
(OFFSET_OUT_OF_RANGE above the high watermark). Offset -1 is the high watermark. The files of segments that are wholly
before the new start go with the next round of retention.
"""

from typing import TYPE_CHECKING

from odradek.cluster.topics import INTERNAL_TOPICS
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DeleteRecordsRequest)
async def delete_records(
    node: "Node", connection: "Connection", request: Request[DeleteRecordsRequest]
) -> DeleteRecordsResponse:
    """Answer a DeleteRecords."""
    topics = []
    for topic in request.body.topics:
        results = []
        for asked in topic.partitions:
            low_watermark, code = -1, Error.NONE
            try:
                low_watermark = _delete(node, topic.name, asked)
            except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
                code, _ = answer_for(error, request)
            results.append(
                DeleteRecordsPartitionResult(
                    partition_index=asked.partition_index, low_watermark=low_watermark, error_code=code
                )
            )
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _delete(node: "Node", topic: str, asked: DeleteRecordsPartition) -> int:
    if topic in INTERNAL_TOPICS:
        raise BrokerError(Error.INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
    partition = node.partitions.get(topic, asked.partition_index)
    if partition is None:
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    partition.check_leader()
    policy = partition.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise BrokerError(Error.POLICY_VIOLATION, f"cleanup.policy of {topic} does not delete")
    return partition.delete_records(asked.offset)
