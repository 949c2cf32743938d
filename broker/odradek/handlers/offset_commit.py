"""OffsetCommit (key 8), v0-10: store how far a group has read.

Everything that may be stored goes into one batch; the reply leaves when that is replicated and visible.
Order of the checks: topics (from v10 on by id) and partitions, see `commit_requests`; then, for all that are left,
coordinator and membership (the group's `check_commit`); for each partition OFFSET_METADATA_TOO_LARGE. When nothing is
left no coordinator is asked.

Groups that are not there: a commit without a generation makes one, with a generation it is ILLEGAL_GENERATION, from v9
on GROUP_ID_NOT_FOUND. KIP-211 (v5: retention is the broker's), KIP-320 (v6), KIP-345 (v7), KIP-848 (v9, v10).
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from odradek.groups.commit_requests import COMMIT_WITH_TIME, CommitReplies
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_TOPIC_IDS = 10

Replies = CommitReplies[OffsetCommitResponsePartition]


@handles(OffsetCommitRequest)
def offset_commit(
    node: "Node",
    connection: "Connection",
    request: Request[OffsetCommitRequest],
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    """Answer an OffsetCommit request."""
    body, version = request.body, request.version
    by_id = version >= FIRST_WITH_TOPIC_IDS
    replies = CommitReplies(
        COMMIT_WITH_TIME, OffsetCommitResponsePartition, node.view, node.config.offset_metadata_max_bytes
    )
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=replies.of_topic(topic, by_id=by_id)
        )
        for topic in body.topics
    ]
    response = OffsetCommitResponse(topics=topics)
    if replies.admitted:
        try:
            unfinished = node.groups.commit_offsets(
                body.group_id,
                body.member_id,
                body.group_instance_id,
                body.generation_id_or_member_epoch,
                replies.offsets,
                retention_time_ms=body.retention_time_ms,
                version=version,
            )
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            _refuse(replies, error, request)
        else:
            if unfinished is not None:
                return _finish(unfinished, replies, response, request)
    return response


async def _finish(
    unfinished: Coroutine[Any, Any, None],
    replies: Replies,
    response: OffsetCommitResponse,
    request: Request[OffsetCommitRequest],
) -> OffsetCommitResponse:
    """Answer when the offsets are replicated."""
    try:
        await unfinished
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        _refuse(replies, error, request)
    return response


def _refuse(replies: Replies, error: Exception, request: Request[OffsetCommitRequest]) -> None:
    code, _ = answer_for(error, request)
    replies.refuse(code)
