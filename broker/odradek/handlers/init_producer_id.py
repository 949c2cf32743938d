"""InitProducerId (key 22), v0-5: a producer id and epoch.

An idempotent producer (null transactional id) gets an id that nobody has had, with epoch 0, from any broker, also when
it names the id and epoch that it had until now (v3). A transactional one gets the id of its transactional id and the
next epoch; who had the one before is fenced, and its transaction aborted.

Order of the checks: a producer id without an epoch, or an epoch without an id, is INVALID_REQUEST; then those of
`TransactionCoordinator.initialize`. PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before v4.

KIP-98, KIP-360 (v3), KIP-588 (v4).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.transactions.state import ProducerIdentity
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_PRODUCER_FENCED = 4

NONE = -1
"""No producer id, no epoch."""


@handles(InitProducerIdRequest)
async def init_producer_id(
    node: "Node",
    connection: "Connection",
    request: Request[InitProducerIdRequest],
) -> InitProducerIdResponse:
    """Answer an InitProducerId request."""
    body = request.body
    if (body.producer_id == NONE) != (body.producer_epoch == NONE):
        return InitProducerIdResponse(error_code=Error.INVALID_REQUEST, producer_epoch=NONE)
    if body.transactional_id is None:
        producer_id = await node.producer_ids.next()
        return InitProducerIdResponse(error_code=Error.NONE, producer_id=producer_id, producer_epoch=0)
    expected = None if body.producer_id == NONE else ProducerIdentity(body.producer_id, body.producer_epoch)
    try:
        producer = await node.transactions.initialize(body.transactional_id, body.transaction_timeout_ms, expected)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, _ = answer_for(error, request)
        if code is Error.PRODUCER_FENCED and request.version < FIRST_WITH_PRODUCER_FENCED:
            code = Error.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=code, producer_epoch=NONE)
    return InitProducerIdResponse(
        error_code=Error.NONE, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
    )
