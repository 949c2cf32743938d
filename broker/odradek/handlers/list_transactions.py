"""ListTransactions (key 66), v0-2: the transactional ids that this broker coordinates.

Filters: names of states (those that nobody knows are told back), producer ids, v1 a least age of the transaction in
milliseconds (negative: any), v2 a regular expression that the whole id matches. An empty filter lets everything
through. A bad expression is INVALID_REGULAR_EXPRESSION. While a partition of __transaction_state is loaded the answer
is COORDINATOR_LOAD_IN_PROGRESS: it would not be whole.

KIP-664, KIP-994 (v1), KIP-1152 (v2).
"""

import re
from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.transactions.state import TransactionState as State
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

STATES = {state.title: state for state in State}


@handles(ListTransactionsRequest)
async def list_transactions(
    node: "Node", connection: "Connection", request: Request[ListTransactionsRequest]
) -> ListTransactionsResponse:
    """Answer a ListTransactions request."""
    try:
        found = _list(node, request.body)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, _ = answer_for(error, request)
        return ListTransactionsResponse(error_code=code, transaction_states=())
    unknown = [name for name in request.body.state_filters if name not in STATES]
    return ListTransactionsResponse(error_code=Error.NONE, unknown_state_filters=unknown, transaction_states=found)


def _list(node: "Node", body: ListTransactionsRequest) -> list[TransactionState]:
    transactions = node.transactions.all_transactions()
    pattern = None
    if body.transactional_id_pattern:
        try:
            pattern = re.compile(body.transactional_id_pattern)
        except re.error as error:
            raise BrokerError(Error.INVALID_REGULAR_EXPRESSION, str(error)) from error
    states = {STATES.get(name) for name in body.state_filters}
    producer_ids = frozenset(body.producer_id_filters)
    now_ms = node.clock.now_ms()
    return [
        TransactionState(
            transactional_id=txn.transactional_id,
            producer_id=txn.metadata.producer_id,
            transaction_state=txn.state.title,
        )
        for txn in transactions
        if txn.pending is not State.DEAD
        and (not states or txn.state in states)
        and (not producer_ids or txn.metadata.producer_id in producer_ids)
        and (body.duration_filter < 0 or now_ms - txn.metadata.start_ms > body.duration_filter)
        and (pattern is None or pattern.fullmatch(txn.transactional_id))
    ]
