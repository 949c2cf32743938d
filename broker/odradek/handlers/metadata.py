"""Metadata (key 3), v0-13: the brokers, the controller, and the topics asked for.

Topics are asked for by name or, from v12 on, by id; null asks for all, an empty array for none (v0: for all). The
brokers are those with the listener that the client came through, at the addresses that this client can reach.

A topic that is not there is made (with the broker's defaults) when both the request and auto.create.topics.enable say
so; the reply waits for it, and tells of leaders that serve.

Order of the checks: below v12, a null name or an id fails the whole request (INVALID_REQUEST for each topic). Then for
each topic: an unknown id is UNKNOWN_TOPIC_ID; one that exists is described; an illegal name is
INVALID_TOPIC_EXCEPTION; auto-creation; UNKNOWN_TOPIC_OR_PARTITION. A partition without a live leader is
LEADER_NOT_AVAILABLE with leader -1; one whose leader lacks the client's listener is LISTENER_NOT_FOUND from v6 on.
In v0, a partition with a dead replica is REPLICA_NOT_AVAILABLE. A replica whose folder is offline is an offline
one, and in sync no longer.

KIP-112 (v5), KIP-320 (v7), KIP-430 (v8), KIP-516 (v10, v12), KIP-700 (v11), KIP-1102 (v13).
"""

from collections.abc import Container, Coroutine, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from odradek.cluster.advertised import reachable_brokers
from odradek.cluster.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from odradek.cluster.election import NO_LEADER
from odradek.cluster.topics import INTERNAL_TOPICS, check_name
from odradek.cluster.view import PartitionView, TopicView
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import EncodedReply, Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.metadata import (
    NOT_ASKED,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek_protocol.schema import NULL_UUID

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_THAT_NAMES_LISTENER_NOT_FOUND = 6
FIRST_WITH_TOPICS_BY_ID = 12


@handles(MetadataRequest)
def metadata(
    node: "Node", connection: "Connection", request: Request[MetadataRequest]
) -> EncodedReply | Coroutine[Any, Any, MetadataResponse | EncodedReply]:
    """Answer a Metadata request."""
    body = request.body
    asked = (
        None if body.topics is None else tuple([(topic.name, topic.topic_id) for topic in body.topics]),
        body.include_topic_authorized_operations,
        body.include_cluster_authorized_operations,
    )
    return node.metadata_replies.find(connection, request, asked) or _make(node, connection, request, asked)


async def _make(
    node: "Node", connection: "Connection", request: Request[MetadataRequest], asked: Hashable
) -> MetadataResponse | EncodedReply:
    """A reply that is not kept yet."""
    body = request.body
    wanted = body.topics
    revision = node.view.revision
    if wanted is None or (request.version == 0 and not wanted):
        found: list[_Found] = list(node.view.topics.values())
    elif request.version < FIRST_WITH_TOPICS_BY_ID and any(
        topic.name is None or topic.topic_id != NULL_UUID for topic in wanted
    ):
        return _refuse(wanted)
    else:
        found = await _find(node, request, wanted)
    reachable = reachable_brokers(node, connection)
    operations = TOPIC_OPERATIONS if body.include_topic_authorized_operations else NOT_ASKED
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.node_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            for broker, endpoint in reachable.values()
        ],
        cluster_id=node.view.cluster_id,
        controller_id=node.view.controller_id,
        topics=[
            _describe(topic, request.version, node.view.brokers, reachable, operations)
            if isinstance(topic, TopicView)
            else _failed(*topic, operations)
            for topic in found
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS if body.include_cluster_authorized_operations else NOT_ASKED,
    )
    if any(topic.error_code for topic in response.topics):
        return response
    return node.metadata_replies.keep(connection, request, asked, revision, response)


_Found = TopicView | tuple[Error, str | None, bytes]
"""A topic that was asked for, or why it is not there, with the name and id that were asked for."""


async def _find(
    node: "Node", request: Request[MetadataRequest], wanted: Sequence[MetadataRequestTopic]
) -> list[_Found]:
    """The topics that a request names, each once."""
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != NULL_UUID)
    if ids:
        # One request asks by id or by name: Kafka overlooks names beside an id.
        by_id = node.view.topics_by_id
        return [by_id.get(topic_id) or (Error.UNKNOWN_TOPIC_ID, None, topic_id) for topic_id in ids]
    found: list[_Found] = []
    for name in dict.fromkeys(topic.name for topic in wanted if topic.name is not None):
        try:
            found.append(node.view.topics.get(name) or await _maybe_create(node, request.body, name))
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            found.append((answer_for(error, request)[0], name, NULL_UUID))
    return found


async def _maybe_create(node: "Node", body: MetadataRequest, name: str) -> TopicView:
    check_name(name)
    if not (body.allow_auto_topic_creation and node.config.auto_create_topics_enable):
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return await node.controller.create_topic_if_absent(name)


def _describe(
    topic: TopicView, version: int, live: Container[int], reachable: Container[int], operations: int
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=Error.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[
            _describe_partition(index, partition, version, live, reachable)
            for index, partition in enumerate(topic.partitions)
        ],
        topic_authorized_operations=operations,
    )


def _describe_partition(
    index: int, partition: PartitionView, version: int, live: Container[int], reachable: Container[int]
) -> MetadataResponsePartition:
    error = Error.NONE
    leader = partition.leader
    offline = [broker for broker in partition.replicas if broker not in live or broker in partition.offline]
    if leader not in reachable:
        named = leader in live and version >= FIRST_THAT_NAMES_LISTENER_NOT_FOUND
        error, leader = Error.LISTENER_NOT_FOUND if named else Error.LEADER_NOT_AVAILABLE, NO_LEADER
    elif version == 0 and offline:
        error = Error.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=[broker for broker in partition.isr if broker not in partition.offline],
        offline_replicas=offline,
    )


def _failed(error: Error, name: str | None, topic_id: bytes, operations: int = NOT_ASKED) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _refuse(wanted: Sequence[MetadataRequestTopic]) -> MetadataResponse:
    """The answer to a request that makes no sense: an error for each of its topics, and no brokers."""
    topics = [_failed(Error.INVALID_REQUEST, topic.name or "", topic.topic_id) for topic in wanted]
    return MetadataResponse(brokers=(), topics=topics, error_code=Error.INVALID_REQUEST)
