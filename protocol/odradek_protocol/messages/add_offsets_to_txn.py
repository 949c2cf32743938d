"""Add offsets to transaction (key 25): the transaction is going to commit offsets of a group.

KIP-98; KIP-588 (2, PRODUCER_FENCED), KIP-890 (4, TRANSACTION_ABORTABLE).
"""

from odradek_protocol.schema import int16, int32, int64, message, string, struct


@struct
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()


@message(key=25, versions=(0, 4), flexible=3, response=AddOffsetsToTxnResponse)
class AddOffsetsToTxnRequest:
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()
