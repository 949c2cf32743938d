"""InitProducerId (key 22), v0-5: a producer id and epoch.

An idempotent producer (null transactional id) gets an id that nobody has had, with epoch 0, from any broker, also when
it names the id and epoch that it had until now (v3).

Order of the checks: a producer id without an epoch, or an epoch without an id, is INVALID_REQUEST; so is an empty
transactional id. A transactional id is COORDINATOR_NOT_AVAILABLE: no broker coordinates transactions.

KIP-98, KIP-360 (v3).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

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
    if (body.producer_id == NONE) != (body.producer_epoch == NONE) or body.transactional_id == "":
        return InitProducerIdResponse(error_code=Error.INVALID_REQUEST, producer_epoch=NONE)
    if body.transactional_id is not None:
        return InitProducerIdResponse(error_code=Error.COORDINATOR_NOT_AVAILABLE, producer_epoch=NONE)
    producer_id = await node.producer_ids.next()
    return InitProducerIdResponse(error_code=Error.NONE, producer_id=producer_id, producer_epoch=0)
