"""DescribeShareGroupOffsets (key 90), v0-1: where share groups are in partitions, and how much is left.

Without topics: in all partitions where the group is anywhere. A topic that does not exist, and a partition in which the
group never was, have the start offset -1. The lag is what lies between the start offset and the high watermark and is
not done with; -1 where it is not known.

Order of the checks: the coordinator of the group where it is asked for all, then for each partition what the share
coordinator says.

KIP-932, KIP-1226 (v1, lag).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.describe_share_group_offsets import (
    AskedGroup,
    DescribedShareGroup,
    DescribedSharePartition,
    DescribedShareTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

UNKNOWN = -1


@handles(DescribeShareGroupOffsetsRequest)
async def describe_share_group_offsets(
    node: "Node", connection: "Connection", request: Request[DescribeShareGroupOffsetsRequest]
) -> DescribeShareGroupOffsetsResponse:
    """Answer a DescribeShareGroupOffsets request."""
    groups = [await _describe(node, request, asked) for asked in request.body.groups]
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe(
    node: "Node", request: Request[DescribeShareGroupOffsetsRequest], asked: AskedGroup
) -> DescribedShareGroup:
    group_id = asked.group_id
    try:
        node.features.check_share_groups()
        wanted = _wanted(node, asked)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return DescribedShareGroup(group_id=group_id, error_code=code, error_message=message or None)
    topics = []
    for name, indexes in wanted.items():
        topic = node.view.topics.get(name)
        if topic is None:
            nowhere = [DescribedSharePartition(partition_index=index, start_offset=UNKNOWN) for index in indexes]
            topics.append(DescribedShareTopic(topic_name=name, partitions=nowhere))
            continue
        partitions = [await _describe_partition(node, request, group_id, topic.topic_id, index) for index in indexes]
        topics.append(DescribedShareTopic(topic_name=name, topic_id=topic.topic_id, partitions=partitions))
    return DescribedShareGroup(group_id=group_id, topics=topics)


def _wanted(node: "Node", asked: AskedGroup) -> Mapping[str, Sequence[int]]:
    """The partitions that a request means, by topic."""
    if asked.topics is not None:
        return {topic.topic_name: topic.partitions for topic in asked.topics}
    known = node.groups.shared_partitions(asked.group_id)
    return {name: sorted(indexes) for topic_id, (name, indexes) in known.items() if topic_id in node.view.topics_by_id}


async def _describe_partition(
    node: "Node", request: Request[DescribeShareGroupOffsetsRequest], group_id: str, topic_id: bytes, index: int
) -> DescribedSharePartition:
    try:
        summary = await node.share_coordinator.summarize(group_id, topic_id, index)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return DescribedSharePartition(
            partition_index=index, start_offset=UNKNOWN, error_code=code, error_message=message or None
        )
    lag = UNKNOWN
    partition = node.partitions.get_by_id(topic_id, index)
    if partition is not None and UNKNOWN not in (summary.start_offset, summary.delivery_complete_count):
        lag = partition.high_watermark - summary.start_offset - summary.delivery_complete_count
    return DescribedSharePartition(
        partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=lag
    )
