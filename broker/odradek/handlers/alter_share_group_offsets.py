"""AlterShareGroupOffsets (key 91), v0: let a share group without members go on elsewhere.

Order of the checks: those of the whole group, INVALID_GROUP_ID, coordinator, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a
group of another kind; for each partition UNKNOWN_TOPIC_OR_PARTITION, and what the share coordinator says.

KIP-932.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.alter_share_group_offsets import (
    AlteredSharePartition,
    AlteredShareTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from odradek_protocol.schema import NULL_UUID

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(AlterShareGroupOffsetsRequest)
async def alter_share_group_offsets(
    node: "Node", connection: "Connection", request: Request[AlterShareGroupOffsetsRequest]
) -> AlterShareGroupOffsetsResponse:
    """Answer an AlterShareGroupOffsets request."""
    body = request.body
    offsets = {
        topic.topic_name: {each.partition_index: each.start_offset for each in topic.partitions}
        for topic in body.topics
    }
    try:
        node.features.check_share_groups()
        results = await node.groups.alter_share_offsets(body.group_id, offsets)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return AlterShareGroupOffsetsResponse(error_code=code, error_message=message or None)
    responses = []
    for name, partitions in offsets.items():
        topic = node.view.topics.get(name)
        altered = []
        for index in partitions:
            fault = results[name, index]
            if fault is None:
                altered.append(AlteredSharePartition(partition_index=index))
            else:
                altered.append(
                    AlteredSharePartition(partition_index=index, error_code=fault.error, error_message=fault.message)
                )
        topic_id = NULL_UUID if topic is None else topic.topic_id
        responses.append(AlteredShareTopic(topic_name=name, topic_id=topic_id, partitions=altered))
    return AlterShareGroupOffsetsResponse(responses=responses)
