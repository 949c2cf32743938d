"""DeleteTopics (key 20), v0-6: delete topics, named or (v6) by id; one row for each topic.

When the reply comes, the topic is gone and its name free: it may be created again at once.

Order of the checks: delete.topic.enable=false fails every row with TOPIC_DELETION_DISABLED (INVALID_REQUEST below v3,
which knows no such code); a row with neither name nor id, or with both, INVALID_REQUEST; so is a topic that is named
twice, by name or by id or once by each; UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION.

KIP-4, KIP-516 (v6).
"""

from collections import Counter
from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from odradek_protocol.schema import NULL_UUID

if TYPE_CHECKING:
    from odradek.cluster.view import ClusterView, TopicView
    from odradek.node import Node
    from odradek.server import Connection

FIRST_THAT_NAMES_DELETION_DISABLED = 3


@handles(DeleteTopicsRequest)
async def delete_topics(
    node: "Node",
    connection: "Connection",
    request: Request[DeleteTopicsRequest],
) -> DeleteTopicsResponse:
    """Answer a DeleteTopics request."""
    body = request.body
    wanted = [
        *((name, NULL_UUID) for name in body.topic_names),
        *((topic.name, topic.topic_id) for topic in body.topics),
    ]
    mentions = Counter(wanted)
    if not node.config.delete_topic_enable:
        known = request.version >= FIRST_THAT_NAMES_DELETION_DISABLED
        error = Error.TOPIC_DELETION_DISABLED if known else Error.INVALID_REQUEST
        return DeleteTopicsResponse(responses=[_row(*each, error, "Topic deletion is disabled.") for each in mentions])
    responses = []
    meant: dict[bytes, list[TopicView]] = {}
    for mention, times in mentions.items():
        try:
            topic = _find(node.view, *mention, times)
        except BrokerError as refusal:
            responses.append(_row(*mention, refusal.error, refusal.message))
        else:
            meant.setdefault(topic.topic_id, []).append(topic)
    for topic, *again in meant.values():
        error, message = Error.NONE, ""
        try:
            if again:
                raise BrokerError(  # noqa: TRY301 - answered with the others
                    Error.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
                )
            await node.controller.delete_topic(topic.name, timeout_ms=body.timeout_ms)
        except Exception as failure:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            error, message = answer_for(failure, request)
        responses.append(_row(topic.name, topic.topic_id, error, message))
    return DeleteTopicsResponse(responses=responses)


def _row(name: str | None, topic_id: bytes, error: Error, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error, error_message=message or None)


def _find(view: "ClusterView", name: str | None, topic_id: bytes, times: int) -> "TopicView":
    """The topic of that name or id, which the request has so many `times`.

    BrokerError when there is none, or the request makes no sense.
    """
    by_id = topic_id != NULL_UUID
    if name is None and not by_id:
        raise BrokerError(Error.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and by_id:
        raise BrokerError(Error.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if times > 1:
        raise BrokerError(Error.INVALID_REQUEST, f"Duplicate topic {'id' if by_id else 'name'}.")
    if name is None:
        topic = view.topics_by_id.get(topic_id)
        if topic is None:
            raise BrokerError(Error.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    topic = view.topics.get(name)
    if topic is None:
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return topic
