"""EndTxn (key 26), v0-5: commit or abort a transaction.

Answered when the decision is in the log; markers follow in any case. From v5 on the producer gets a new epoch, or a new
id, for what it does next, and a transaction without partitions may be aborted; the request may be repeated with the
epoch that it had (KIP-890).

Order of the checks: an empty transactional id (INVALID_REQUEST); whether this broker coordinates it; then those of
`TransactionalId.end`. PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before v2.

KIP-98, KIP-588 (v2), KIP-890 (v5).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.transactions.state import EPOCH_BUMP_VERSION, ProducerIdentity
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_PRODUCER_FENCED = 2
FIRST_THAT_RAISES_THE_EPOCH = 5


@handles(EndTxnRequest)
async def end_txn(node: "Node", connection: "Connection", request: Request[EndTxnRequest]) -> EndTxnResponse:
    """Answer an EndTxn request."""
    body, version = request.body, request.version
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    raises_epoch = version >= FIRST_THAT_RAISES_THE_EPOCH
    try:
        following = await node.transactions.end(
            body.transactional_id,
            producer,
            committed=body.committed,
            version=EPOCH_BUMP_VERSION if raises_epoch else 0,
        )
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, _ = answer_for(error, request)
        if code is Error.PRODUCER_FENCED and version < FIRST_WITH_PRODUCER_FENCED:
            code = Error.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(error_code=code)
    return EndTxnResponse(
        error_code=Error.NONE, producer_id=following.producer_id, producer_epoch=following.producer_epoch
    )
