"""DescribeTransactions (key 65), v0: what this broker knows of transactional ids that it coordinates.

The partitions are those of the open transaction, or those that lack the marker of the one that is ending. Order of the
checks, for each id: an empty one (INVALID_REQUEST); whether this broker coordinates it (NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS); whether it is known (TRANSACTIONAL_ID_NOT_FOUND). KIP-664.
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.transactions.records import by_topic
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(DescribeTransactionsRequest)
async def describe_transactions(
    node: "Node", connection: "Connection", request: Request[DescribeTransactionsRequest]
) -> DescribeTransactionsResponse:
    """Answer a DescribeTransactions request."""
    states = []
    for transactional_id in request.body.transactional_ids:
        try:
            state = _describe(node, transactional_id)
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, _ = answer_for(error, request)
            state = TransactionState(
                error_code=code,
                transactional_id=transactional_id,
                transaction_state="",
                transaction_timeout_ms=0,
                transaction_start_time_ms=0,
                producer_id=0,
                producer_epoch=0,
                topics=(),
            )
        states.append(state)
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(node: "Node", transactional_id: str) -> TransactionState:
    if not transactional_id:
        raise BrokerError(Error.INVALID_REQUEST)
    txn = node.transactions.find(transactional_id)
    if txn is None:
        raise BrokerError(Error.TRANSACTIONAL_ID_NOT_FOUND)
    metadata = txn.metadata
    partitions = txn.unmarked if txn.is_prepared else metadata.partitions
    return TransactionState(
        error_code=Error.NONE,
        transactional_id=transactional_id,
        transaction_state=txn.state.title,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()],
    )
