"""List transactions (key 66): the transactional ids that a broker coordinates.

KIP-664; KIP-994 (1, filter by duration), KIP-1152 (2, filter by a pattern of the id).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, int64, message, string, struct


@struct
class TransactionState:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@struct
class ListTransactionsResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    unknown_state_filters: Sequence[str] = array(string(), default=())
    transaction_states: Sequence[TransactionState] = array(TransactionState)


@message(key=66, versions=(0, 2), flexible=0, response=ListTransactionsResponse)
class ListTransactionsRequest:
    state_filters: Sequence[str] = array(string())
    producer_id_filters: Sequence[int] = array(int64())
    duration_filter: int = int64(since=1, default=-1)
    transactional_id_pattern: str | None = string(since=2, nullable_since=2, default=None)
