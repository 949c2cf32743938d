"""One partition of __transaction_state as a coordinator has it: transactional ids, and the log that they come from."""

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING

from odradek.sharding import Shard
from odradek.transactions.records import decode_key, decode_value, encode_key, encode_value
from odradek.transactions.state import TransactionalId, TransactionMetadata
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.read import Record

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = ["TransactionShard"]


class TransactionShard(Shard):
    """The transactional ids of one partition."""

    def __init__(self, partition: "Partition", config: "BrokerConfig", clock: "Clock") -> None:
        super().__init__(
            partition,
            clock,
            load_bytes=config.transaction_state_log_load_buffer_size,
            write_timeout_ms=config.request_timeout_ms,
            codec=Codec.NONE,
        )
        self.epoch = partition.leader_epoch
        """The coordinator's epoch, which its markers carry: that of the lead of the partition."""
        self.transactions: dict[str, TransactionalId] = {}

    @property
    def kept(self) -> Sized:
        return self.transactions

    def apply(self, record: Record) -> None:
        """See `Shard.apply`."""
        transactional_id = None if record.key is None else decode_key(record.key)
        if transactional_id is None:
            return
        if record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = TransactionalId(transactional_id, decode_value(record.value))

    def append(self, transactional_id: str, metadata: TransactionMetadata, server_version: int) -> int:
        """Append what is to be true of an id; give the offset. Raises what `Partition.append` raises."""
        return self.append_records([(encode_key(transactional_id), encode_value(metadata, server_version))])

    def append_tombstones(self, transactional_ids: Sequence[str]) -> int:
        """Append that ids are forgotten, as one batch; give the offset of the last record."""
        return self.append_records([(encode_key(transactional_id), None) for transactional_id in transactional_ids])
