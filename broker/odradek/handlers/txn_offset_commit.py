"""TxnOffsetCommit (key 28), v0-6: store how far a group has read, if the transaction is committed.

The offsets are written as a transactional batch of the producer, and are of no effect until its marker. The group's
partition of __consumer_offsets has to be in the transaction: from v5 on this request adds it, before it is
INVALID_TXN_STATE where it is not, from v4 on TRANSACTION_ABORTABLE.

Order of the checks: topics (from v6 on by id) and partitions, see `commit_requests`; then, for all that are left, an
empty group id (INVALID_GROUP_ID), the coordinator of the group, the transaction, membership (the group's
`check_transactional_commit`); for each partition OFFSET_METADATA_TOO_LARGE. When nothing is left nothing is written.
COORDINATOR_LOAD_IN_PROGRESS is COORDINATOR_NOT_AVAILABLE before v2.

KIP-98, KIP-320 (v2), KIP-447 (v3), KIP-890 (v4, v5), KIP-1319 (v6: topic ids).
"""

from typing import TYPE_CHECKING

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.groups.commit_requests import COMMIT, CommitReplies
from odradek.groups.commits import NewOffsets
from odradek.handlers.registry import answer_for, handles
from odradek.transactions.joining import ClientProtocol, join_transaction
from odradek.transactions.state import ProducerIdentity
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_LOAD_IN_PROGRESS = 2
FIRST_WITH_ABORTABLE = 4
FIRST_THAT_ADDS_OFFSETS = 5
FIRST_WITH_TOPIC_IDS = 6


@handles(TxnOffsetCommitRequest)
async def txn_offset_commit(
    node: "Node", connection: "Connection", request: Request[TxnOffsetCommitRequest]
) -> TxnOffsetCommitResponse:
    """Answer a TxnOffsetCommit request."""
    by_id = request.version >= FIRST_WITH_TOPIC_IDS
    replies = CommitReplies(COMMIT, TxnOffsetCommitResponsePartition, node.view, node.config.offset_metadata_max_bytes)
    topics = [
        TxnOffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=replies.of_topic(topic, by_id=by_id)
        )
        for topic in request.body.topics
    ]
    if replies.admitted:
        try:
            await _commit(node, request, replies.offsets)
        except Exception as failure:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, _ = answer_for(failure, request)
            if code is Error.COORDINATOR_LOAD_IN_PROGRESS and request.version < FIRST_WITH_LOAD_IN_PROGRESS:
                code = Error.COORDINATOR_NOT_AVAILABLE
            replies.refuse(code)
    return TxnOffsetCommitResponse(topics=topics)


async def _commit(node: "Node", request: Request[TxnOffsetCommitRequest], offsets: list[NewOffsets]) -> None:
    body = request.body
    if not body.group_id:
        raise BrokerError(Error.INVALID_GROUP_ID)
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    node.groups.find(body.group_id)  # who does not coordinate the group says so before it asks for the transaction
    partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for(body.group_id))
    if partition is None:
        raise BrokerError(Error.NOT_COORDINATOR)
    protocol = ClientProtocol.WITHOUT_ABORTABLE
    if request.version >= FIRST_THAT_ADDS_OFFSETS:
        protocol = ClientProtocol.WITH_IMPLICIT_ADDITION
    elif request.version >= FIRST_WITH_ABORTABLE:
        protocol = ClientProtocol.WITH_ABORTABLE
    refused = await join_transaction(
        node.transactions, node.config, body.transactional_id, producer, {partition: 0}, protocol
    )
    if refused:
        raise refused[partition]
    await node.groups.commit_transactional_offsets(
        body.group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id_or_member_epoch,
        offsets,
        producer=producer,
    )
