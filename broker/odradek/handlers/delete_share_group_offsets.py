"""DeleteShareGroupOffsets (key 92), v0: let a share group without members forget topics.

Order of the checks: those of the whole group, INVALID_GROUP_ID, coordinator, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; for
each topic UNKNOWN_TOPIC_OR_PARTITION, also where the group is nowhere in it, and what the share coordinator says.

KIP-932.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.delete_share_group_offsets import (
    DeletedShareTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from odradek_protocol.schema import NULL_UUID

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DeleteShareGroupOffsetsRequest)
async def delete_share_group_offsets(
    node: "Node", connection: "Connection", request: Request[DeleteShareGroupOffsetsRequest]
) -> DeleteShareGroupOffsetsResponse:
    """Answer a DeleteShareGroupOffsets request."""
    body = request.body
    try:
        node.features.check_share_groups()
        results = await node.groups.delete_share_offsets(body.group_id, [topic.topic_name for topic in body.topics])
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message or None)
    responses = []
    for name, fault in results.items():
        topic = node.view.topics.get(name)
        if fault is None:
            topic_id = NULL_UUID if topic is None else topic.topic_id
            responses.append(DeletedShareTopic(topic_name=name, topic_id=topic_id))
        else:
            responses.append(DeletedShareTopic(topic_name=name, error_code=fault.error, error_message=fault.message))
    return DeleteShareGroupOffsetsResponse(responses=responses)
