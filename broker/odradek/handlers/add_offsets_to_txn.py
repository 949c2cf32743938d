"""AddOffsetsToTxn (key 25), v0-4: a transaction is going to commit offsets of a group.

It adds the group's partition of __consumer_offsets to the transaction, as AddPartitionsToTxn would. Errors are those of
`TransactionCoordinator.add_partitions`; PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before v2.

KIP-98, KIP-588 (v2).
"""

from typing import TYPE_CHECKING

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.handlers.registry import answer_for, handles
from odradek.transactions.state import ProducerIdentity
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_PRODUCER_FENCED = 2
CLIENT_VERSION = 0
"""The level of `transaction.version` of whoever sends this: with 2 a TxnOffsetCommit adds the group."""


@handles(AddOffsetsToTxnRequest)
async def add_offsets_to_txn(
    node: "Node", connection: "Connection", request: Request[AddOffsetsToTxnRequest]
) -> AddOffsetsToTxnResponse:
    """Answer an AddOffsetsToTxn request."""
    body = request.body
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    offsets = frozenset({(CONSUMER_OFFSETS, node.groups.partition_for(body.group_id))})
    code = Error.NONE
    try:
        await node.transactions.add_partitions(body.transactional_id, producer, offsets, CLIENT_VERSION)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, _ = answer_for(error, request)
        if code is Error.PRODUCER_FENCED and request.version < FIRST_WITH_PRODUCER_FENCED:
            code = Error.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=code)
