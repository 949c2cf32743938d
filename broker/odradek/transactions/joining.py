"""Letting what a producer sends take part in its transaction: before it is appended its coordinator must know of it.

A partition takes no transactional batch that begins a transaction there unless the coordinator has the partition in its
log: else nobody would ever end it, and readers of committed records would wait for ever. Behind the first batch the
partition itself knows that the transaction is open.

    client's protocol          what is asked of the coordinator      a partition that is not in the transaction
    below TRANSACTION_ABORTABLE   is the partition in it?            INVALID_TXN_STATE
    KIP-890, part 1            likewise                              TRANSACTION_ABORTABLE
    KIP-890, part 2            add the partition                     -

Nothing is awaited between the last look at the coordinator's memory and the return, so what is let in is still let in
when the caller appends at once.
"""

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from odradek.transactions.state import EPOCH_BUMP_VERSION, ProducerIdentity
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.config import BrokerConfig
    from odradek.partition import Partition
    from odradek.transactions.coordinator import TransactionCoordinator

__all__ = ["ClientProtocol", "join_transaction"]


class ClientProtocol(enum.IntEnum):
    """How far a client knows KIP-890."""

    WITHOUT_ABORTABLE = 0
    WITH_ABORTABLE = 1
    WITH_IMPLICIT_ADDITION = 2


async def join_transaction(
    coordinator: "TransactionCoordinator",
    config: "BrokerConfig",
    transactional_id: str,
    producer: ProducerIdentity,
    first_sequences: Mapping["Partition", int],
    protocol: ClientProtocol,
) -> dict["Partition", BrokerError]:
    """Have the transaction of `producer` know of the partitions; give those that may not be appended to, and why.

    `first_sequences` are the sequence numbers of what is to be appended, 0 where it has none. The codes are those of
    the coordinator, but for INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED and INVALID_TXN_STATE where a client does
    not know TRANSACTION_ABORTABLE; OUT_OF_ORDER_SEQUENCE_NUMBER for a transaction that does not begin with its first
    batch, where the partition does not know the producer and each transaction has an epoch of its own.
    """
    adds = protocol is ClientProtocol.WITH_IMPLICIT_ADDITION
    if not adds and not config.transaction_partition_verification_enable:
        return {}
    new = [partition for partition in first_sequences if not partition.log.producers.in_transaction(*producer)]
    if not new:
        return {}
    names = frozenset((partition.topic, partition.index) for partition in new)
    if adds:
        try:
            await _add(coordinator, config, transactional_id, producer, names)
        except BrokerError as error:
            refusal = _for_client(error, protocol)
            return dict.fromkeys(new, refusal)
    refused = {}
    for partition in new:
        try:
            coordinator.verify_partition(transactional_id, producer, (partition.topic, partition.index))
            if adds:
                _check_first(partition, producer.producer_id, first_sequences[partition])
        except BrokerError as error:
            refused[partition] = _for_client(error, protocol)
    return refused


async def _add(
    coordinator: "TransactionCoordinator",
    config: "BrokerConfig",
    transactional_id: str,
    producer: ProducerIdentity,
    names: frozenset[tuple[str, int]],
) -> None:
    """Add the partitions; wait a little for the markers of the transaction before, which are under way."""
    deadline = trio.current_time() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
    while True:
        try:
            await coordinator.add_partitions(transactional_id, producer, names, EPOCH_BUMP_VERSION)
        except BrokerError as error:
            if error.error is not Error.CONCURRENT_TRANSACTIONS or trio.current_time() >= deadline:
                raise
        else:
            return
        await trio.sleep(config.add_partitions_to_txn_retry_backoff_ms / 1000)


def _check_first(partition: "Partition", producer_id: int, first_sequence: int) -> None:
    known = partition.log.producers.by_id.get(producer_id)
    if first_sequence and (known is None or not known.batches):
        raise BrokerError(
            Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} begins a transaction with sequence number {first_sequence}, 0 is next",
        )


def _for_client(error: BrokerError, protocol: ClientProtocol) -> BrokerError:
    if error.error is Error.PRODUCER_FENCED:
        return BrokerError(Error.INVALID_PRODUCER_EPOCH, error.message)
    if error.error is Error.TRANSACTION_ABORTABLE and protocol is ClientProtocol.WITHOUT_ABORTABLE:
        return BrokerError(Error.INVALID_TXN_STATE, error.message)
    return error
