"""DescribeTopicPartitions (key 75), v0: topics in the order of their names, a page of partitions at a time.

A page holds as many partitions as the request allows, at most max.request.partition.size.limit and at least one. When
there are more, `next_cursor` names the first one that is left out: the next request carries it. An empty list of topics
asks for all.

Order of the checks: a cursor on a topic that the list does not name, or on a negative partition, is an error of the
whole request (INVALID_REQUEST), which this reply cannot carry: each topic that was asked for gets it. A topic that is
not there has a row with INVALID_TOPIC_EXCEPTION or UNKNOWN_TOPIC_OR_PARTITION, unless all are asked for.

KIP-966. The authorized operations are always told, but in an error of the whole request.
"""

from collections.abc import Container
from typing import TYPE_CHECKING

from odradek.cluster.advertised import reachable_brokers
from odradek.cluster.authorized_operations import TOPIC_OPERATIONS
from odradek.cluster.election import NO_LEADER
from odradek.cluster.topics import INTERNAL_TOPICS, is_legal
from odradek.cluster.view import PartitionView, TopicView
from odradek.handlers.registry import handles
from odradek_protocol.connection import EncodedReply, Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.describe_topic_partitions import (
    NOT_ASKED,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from odradek_protocol.schema import NULL_UUID

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DescribeTopicPartitionsRequest)
async def describe_topic_partitions(
    node: "Node", connection: "Connection", request: Request[DescribeTopicPartitionsRequest]
) -> DescribeTopicPartitionsResponse | EncodedReply:
    """Answer a DescribeTopicPartitions request."""
    body = request.body
    cursor = body.cursor
    asked = (
        tuple([topic.name for topic in body.topics]),
        body.response_partition_limit,
        None if cursor is None else (cursor.topic_name, cursor.partition_index),
    )
    known = node.metadata_replies.find(connection, request, asked)
    if known is not None:
        return known
    revision = node.view.revision
    response = _answer(node, connection, body)
    if any(topic.error_code for topic in response.topics):
        return response
    return node.metadata_replies.keep(connection, request, asked, revision, response)


def _answer(
    node: "Node", connection: "Connection", body: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    named = dict.fromkeys(topic.name for topic in body.topics)
    cursor = body.cursor
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        rows = [_failed(Error.INVALID_REQUEST, name, NOT_ASKED) for name in named or (cursor.topic_name,)]
        return DescribeTopicPartitionsResponse(topics=rows)
    start = cursor or Cursor(topic_name="", partition_index=0)
    names = sorted(name for name in named or node.view.topics if name >= start.topic_name)
    left = max(1, min(body.response_partition_limit, node.config.max_request_partition_size_limit))
    live = node.view.brokers
    reachable = reachable_brokers(node, connection)
    rows = []
    for name in names:
        if left == 0:
            return DescribeTopicPartitionsResponse(topics=rows, next_cursor=Cursor(topic_name=name, partition_index=0))
        topic = node.view.topics.get(name)
        if topic is None:
            if named:
                rows.append(
                    _failed(Error.UNKNOWN_TOPIC_OR_PARTITION if is_legal(name) else Error.INVALID_TOPIC_EXCEPTION, name)
                )
            continue
        first = start.partition_index if name == start.topic_name else 0
        end = min(len(topic.partitions), first + left)
        rows.append(_describe(topic, range(first, end), live, reachable))
        if end < len(topic.partitions):
            return DescribeTopicPartitionsResponse(
                topics=rows, next_cursor=Cursor(topic_name=name, partition_index=end)
            )
        left -= max(0, end - first)
    return DescribeTopicPartitionsResponse(topics=rows)


def _describe(
    topic: TopicView, indexes: range, live: Container[int], reachable: Container[int]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=Error.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[_describe_partition(index, topic.partitions[index], live, reachable) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _describe_partition(
    index: int, partition: PartitionView, live: Container[int], reachable: Container[int]
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=Error.NONE,
        partition_index=index,
        leader_id=partition.leader if partition.leader in reachable else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=[broker for broker in partition.isr if broker not in partition.offline],
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=[broker for broker in partition.replicas if broker not in live or broker in partition.offline],
    )


def _failed(error: Error, name: str, operations: int = TOPIC_OPERATIONS) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        topic_id=NULL_UUID,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )
