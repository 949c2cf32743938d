"""SaslHandshake (key 17), v0-1: ILLEGAL_SASL_STATE on a listener without SASL, as on a connection that is past it."""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(SaslHandshakeRequest)
async def sasl_handshake(
    node: "Node",
    connection: "Connection",
    request: Request[SaslHandshakeRequest],
) -> SaslHandshakeResponse:
    """Answer a SaslHandshake."""
    return SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE, mechanisms=())
