"""Init producer id (key 22): a producer id and epoch for an idempotent or transactional producer.

KIP-98; KIP-360 (3, raise the epoch of an id that is known), KIP-588 (4, PRODUCER_FENCED), KIP-890 (5).
"""

from odradek_protocol.schema import int16, int32, int64, message, string, struct


@struct
class InitProducerIdResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()


@message(key=22, versions=(0, 5), flexible=2, response=InitProducerIdResponse)
class InitProducerIdRequest:
    transactional_id: str | None = string(nullable_since=0)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)
