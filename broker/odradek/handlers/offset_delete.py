"""OffsetDelete (key 47), v0: forget the offsets of a group for topics that it does not consume.

Order of the checks: for each partition UNKNOWN_TOPIC_OR_PARTITION; group id (INVALID_GROUP_ID), coordinator,
GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for a group of members that are no consumers, each for the whole request; for each
partition GROUP_SUBSCRIBED_TO_TOPIC. A partition without an offset is no error.

KIP-496.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(OffsetDeleteRequest)
async def offset_delete(
    node: "Node",
    connection: "Connection",
    request: Request[OffsetDeleteRequest],
) -> OffsetDeleteResponse:
    """Answer an OffsetDelete request."""
    body = request.body
    known = []
    for topic in body.topics:
        view = node.view.topics.get(topic.name)
        count = 0 if view is None else len(view.partitions)
        known += [(topic.name, each.partition_index) for each in topic.partitions if 0 <= each.partition_index < count]
    try:
        errors = dict(zip(known, await node.groups.delete_offsets(body.group_id, known), strict=True))
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        return OffsetDeleteResponse(error_code=answer_for(error, request)[0], topics=[])
    return OffsetDeleteResponse(
        error_code=Error.NONE,
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors.get((topic.name, each.partition_index), Error.UNKNOWN_TOPIC_OR_PARTITION),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
            if topic.partitions
        ],
    )
