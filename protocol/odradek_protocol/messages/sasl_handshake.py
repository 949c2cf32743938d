"""SASL handshake (key 17): choose a SASL mechanism.

KIP-43; KIP-152 (1, the tokens that follow are SaslAuthenticate requests instead of bare frames). Never flexible.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, message, string, struct


@struct
class SaslHandshakeResponse:
    error_code: int = int16()
    mechanisms: Sequence[str] = array(string())


@message(key=17, versions=(0, 1), response=SaslHandshakeResponse)
class SaslHandshakeRequest:
    mechanism: str = string()
