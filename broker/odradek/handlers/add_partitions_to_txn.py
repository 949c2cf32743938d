"""AddPartitionsToTxn (key 24), v0-5: which partitions transactions write to.

Up to v3 a client's request for one transaction; from v4 on a broker's for many, each of which adds partitions or asks
whether they are there (verify only).

All partitions of a transaction are added, or none: where one does not exist (UNKNOWN_TOPIC_OR_PARTITION) the others are
OPERATION_NOT_ATTEMPTED. Other errors are those of `TransactionCoordinator.add_partitions` and `verify_partition`, told
for each partition; PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before v2, TRANSACTION_ABORTABLE is INVALID_TXN_STATE
before v5.

KIP-98, KIP-588 (v2), KIP-890 (v4, v5).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.transactions.state import EPOCH_BUMP_VERSION, ProducerIdentity, TopicPartition
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_PRODUCER_FENCED = 2
FIRST_OF_BROKERS = 4
FIRST_WITH_ABORTABLE = 5


@handles(AddPartitionsToTxnRequest)
async def add_partitions_to_txn(
    node: "Node", connection: "Connection", request: Request[AddPartitionsToTxnRequest]
) -> AddPartitionsToTxnResponse:
    """Answer an AddPartitionsToTxn request."""
    body = request.body
    if request.version >= FIRST_OF_BROKERS:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=await _answer(node, request, transaction),
                )
                for transaction in body.transactions
            ]
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=body.v3_and_below_transactional_id,
        producer_id=body.v3_and_below_producer_id,
        producer_epoch=body.v3_and_below_producer_epoch,
        topics=body.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _answer(node, request, transaction))


async def _answer(
    node: "Node", request: Request[AddPartitionsToTxnRequest], transaction: AddPartitionsToTxnTransaction
) -> list[AddPartitionsToTxnTopicResult]:
    """The results for one transaction, in the order of its partitions."""
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    missing = {partition for partition in partitions if not _exists(node, partition)}
    errors: Mapping[TopicPartition, Error]
    if missing:
        errors = {
            each: Error.UNKNOWN_TOPIC_OR_PARTITION if each in missing else Error.OPERATION_NOT_ATTEMPTED
            for each in partitions
        }
    elif transaction.verify_only:
        errors = {each: _verify(node, request, transaction, each) for each in partitions}
    else:
        errors = dict.fromkeys(partitions, await _add(node, request, transaction, frozenset(partitions)))
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=errors[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


def _exists(node: "Node", partition: TopicPartition) -> bool:
    topic = node.view.topics.get(partition[0])
    return topic is not None and 0 <= partition[1] < len(topic.partitions)


async def _add(
    node: "Node",
    request: Request[AddPartitionsToTxnRequest],
    transaction: AddPartitionsToTxnTransaction,
    partitions: frozenset[TopicPartition],
) -> Error:
    producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    version = EPOCH_BUMP_VERSION if request.version >= FIRST_OF_BROKERS else 0
    try:
        await node.transactions.add_partitions(transaction.transactional_id, producer, partitions, version)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, _ = answer_for(error, request)
        fenced = code is Error.PRODUCER_FENCED and request.version < FIRST_WITH_PRODUCER_FENCED
        return Error.INVALID_PRODUCER_EPOCH if fenced else code
    return Error.NONE


def _verify(
    node: "Node",
    request: Request[AddPartitionsToTxnRequest],
    transaction: AddPartitionsToTxnTransaction,
    partition: TopicPartition,
) -> Error:
    producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    try:
        node.transactions.verify_partition(transaction.transactional_id, producer, partition)
    except BrokerError as error:
        abortable = error.error is Error.TRANSACTION_ABORTABLE and request.version < FIRST_WITH_ABORTABLE
        return Error.INVALID_TXN_STATE if abortable else error.error
    return Error.NONE
