"""End transaction (key 26): commit or abort.

KIP-98; KIP-588 (2, PRODUCER_FENCED), KIP-890 (4, TRANSACTION_ABORTABLE; 5, the producer id and epoch of what follows).
"""

from odradek_protocol.schema import boolean, int16, int32, int64, message, string, struct


@struct
class EndTxnResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1)
    producer_epoch: int = int16(since=5, default=-1)


@message(key=26, versions=(0, 5), flexible=3, response=EndTxnResponse)
class EndTxnRequest:
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()
