"""OffsetCommit (key 8), v0-10: store how far a group has read.

Everything that may be stored goes into one batch; the reply leaves when that is replicated and visible.
Order of the checks: for each topic UNKNOWN_TOPIC_ID (v10) or UNKNOWN_TOPIC_OR_PARTITION, for each partition
UNKNOWN_TOPIC_OR_PARTITION; then, for all that are left, coordinator and membership (the group's `check_commit`); for
each partition OFFSET_METADATA_TOO_LARGE. When nothing is left no coordinator is asked. Null metadata is stored as "".

Groups that are not there: a commit without a generation makes one, with a generation it is ILLEGAL_GENERATION, from v9
on GROUP_ID_NOT_FOUND. KIP-211 (v5: retention is the broker's), KIP-320 (v6), KIP-345 (v7), KIP-848 (v9, v10).
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from odradek.cluster.view import TopicView
from odradek.groups.shard import NewOffset
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_TOPIC_IDS = 10


@handles(OffsetCommitRequest)
def offset_commit(
    node: "Node",
    connection: "Connection",
    request: Request[OffsetCommitRequest],
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    """Answer an OffsetCommit request."""
    body, version = request.body, request.version
    by_id = version >= FIRST_WITH_TOPIC_IDS
    view = node.view
    admitted: list[OffsetCommitResponsePartition] = []
    offsets: list[NewOffset] = []
    topics = []
    for topic in body.topics:
        known = view.topics_by_id.get(topic.topic_id) if by_id else view.topics.get(topic.name)
        if known is None:
            error = Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
            partitions = [
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                for partition in topic.partitions
            ]
        else:
            partitions = _admit(topic, known, node.config.offset_metadata_max_bytes, admitted, offsets)
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    response = OffsetCommitResponse(topics=topics)
    if admitted:
        try:
            unfinished = node.groups.commit_offsets(
                body.group_id,
                body.member_id,
                body.group_instance_id,
                body.generation_id_or_member_epoch,
                offsets,
                retention_time_ms=body.retention_time_ms,
                version=version,
            )
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            _refuse(admitted, error, request)
        else:
            if unfinished is not None:
                return _finish(unfinished, admitted, response, request)
    return response


async def _finish(
    unfinished: Coroutine[Any, Any, None],
    admitted: list[OffsetCommitResponsePartition],
    response: OffsetCommitResponse,
    request: Request[OffsetCommitRequest],
) -> OffsetCommitResponse:
    """Answer when the offsets are replicated."""
    try:
        await unfinished
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        _refuse(admitted, error, request)
    return response


def _refuse(
    admitted: list[OffsetCommitResponsePartition], error: Exception, request: Request[OffsetCommitRequest]
) -> None:
    code, _ = answer_for(error, request)
    for reply in admitted:
        reply.error_code = code


def _admit(
    topic: OffsetCommitRequestTopic,
    known: TopicView,
    max_metadata: int,
    admitted: list[OffsetCommitResponsePartition],
    offsets: list[NewOffset],
) -> list[OffsetCommitResponsePartition]:
    """The replies for a topic that exists; what the coordinator is to answer for is added to `admitted`."""
    replies = []
    count = len(known.partitions)
    for partition in topic.partitions:
        index, metadata = partition.partition_index, partition.committed_metadata or ""
        reply = OffsetCommitResponsePartition(partition_index=index, error_code=Error.NONE)
        replies.append(reply)
        if not 0 <= index < count:
            reply.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
            continue
        admitted.append(reply)
        if len(metadata) > max_metadata:
            reply.error_code = Error.OFFSET_METADATA_TOO_LARGE
            continue
        offsets.append(
            (
                known.name,
                index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.commit_timestamp,
                metadata,
            )
        )
    return replies
