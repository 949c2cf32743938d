"""The coordinator on real logs: what a restart finds, what time brings, and what is asked while it is not ready."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing
from support.coordinator import TrioClock
from support.logs import HeldFiles

from odradek.cluster.controller import Controller
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.features import Features
from odradek.cluster.plans import NewTopic
from odradek.cluster.producer_ids import ProducerIds
from odradek.cluster.topics import TRANSACTION_STATE
from odradek.cluster.view import ClusterView, Endpoint
from odradek.config import BrokerConfig
from odradek.groups.coordinator import GroupCoordinator
from odradek.log.files import Files
from odradek.log.store import LogStore
from odradek.partitions import Partitions
from odradek.transactions.coordinator import TransactionCoordinator
from odradek.transactions.markers import LocalMarkers, Marker
from odradek.transactions.state import EPOCH_BUMP_VERSION, ProducerIdentity, TopicPartition, TransactionState
from odradek_protocol.errors import BrokerError, Error

pytestmark = pytest.mark.usefixtures("without_threads")

TIMEOUT_MS = 60_000
WAIT_S = 3600.0
"""Longer than anything takes by a clock that jumps."""

DEADLINE_S = 60
"""Longer than anything takes by a clock that goes as it should."""

P: TopicPartition = ("t", 0)


class HeldMarkers(LocalMarkers):
    """Writes markers only while `held` is false: as when the leaders of the partitions are away."""

    held = False

    def write_now(self, marker: Marker, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        return () if self.held else super().write_now(marker, partitions)

    async def write(self, marker: Marker, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        return () if self.held else await super().write(marker, partitions)


class Broker:
    """What a transaction coordinator needs of a node, all real but for the clock."""

    def __init__(self, store: EmbeddedStore, logs: LogStore, config: BrokerConfig) -> None:
        clock = cast(Any, TrioClock())
        self.view = ClusterView()
        self.partitions = Partitions(1, logs, config, clock)
        self.controller = Controller(
            node_id=1, store=store, view=self.view, partitions=self.partitions, config=config, clock=clock
        )
        self.features = Features(store, 1)
        groups = GroupCoordinator(config, clock, self.view)
        self.markers = HeldMarkers(self.partitions, self.view, groups, config, clock)
        self.transactions = TransactionCoordinator(
            config, clock, self.view, ProducerIds(store, 1), self.markers, self.features
        )
        self.partitions.on_leader.append(self.transactions.on_leader)
        self.partitions.on_resign.append(self.transactions.on_resign)

    def state(self, transactional_id: str = "x") -> TransactionState:
        txn = self.transactions.find(transactional_id)
        assert txn is not None
        return txn.state

    async def until(self, state: TransactionState) -> None:
        with trio.fail_after(WAIT_S):
            while True:
                try:
                    if self.state() is state:
                        return
                except BrokerError as error:
                    assert error.error is Error.COORDINATOR_LOAD_IN_PROGRESS  # noqa: PT017 - any other is a fault
                await trio.sleep(0.01)

    async def begin(self, *, version: int = EPOCH_BUMP_VERSION) -> ProducerIdentity:
        """A producer of "x" with an open transaction in P."""
        producer = await self.transactions.initialize("x", TIMEOUT_MS, None)
        await self.transactions.add_partitions("x", producer, frozenset({P}), version)
        return producer


@asynccontextmanager
async def broker(
    folder: Path, *, held: bool = False, files: Files | None = None, **settings: object
) -> AsyncIterator[Broker]:
    """A broker on `folder`, which may have been used before; left as a kill leaves one, but for closed files."""
    static = {
        "node.id": "1",
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    config = BrokerConfig(static)
    logs = LogStore.open([str(folder / "logs")], config, 1, TrioClock(), files=files)
    store = await EmbeddedStore.open(folder / "metadata.db")
    try:
        node = Broker(store, logs, config)
        node.markers.held = held
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.transactions.run)
            await node.controller.load()
            await node.features.load()
            await node.controller.register({"PLAINTEXT": Endpoint("127.0.0.1", 9092)}, None)
            await node.controller.create_internal_topic(TRANSACTION_STATE)
            if "t" not in node.view.topics:
                await node.controller.create_topic(NewTopic("t", partitions=1))
            with trio.fail_after(WAIT_S):
                while True:
                    try:
                        node.transactions.all_transactions()
                    except BrokerError:
                        await trio.sleep(0.01)
                    else:
                        break
            yield node
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await store.close()
        logs.close()


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [0, EPOCH_BUMP_VERSION])
async def test_a_decision_is_carried_out_by_the_next_start(tmp_path: Path, version: int, committed: bool) -> None:
    async with broker(tmp_path, held=True) as node:
        producer = await node.begin(version=version)
        following = await node.transactions.end("x", producer, committed=committed, version=version)
        assert node.state() is (TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT)
        with pytest.raises(BrokerError) as refused:
            await node.transactions.add_partitions("x", following, frozenset({P}), version)
        assert refused.value.error is Error.CONCURRENT_TRANSACTIONS
    async with broker(tmp_path) as node:
        await node.until(TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT)
        partition = node.partitions.get(*P)
        assert partition is not None
        assert partition.high_watermark == 1
        again = await node.transactions.end("x", producer, committed=committed, version=version)
        assert again == following


async def test_nobody_is_served_before_what_was_decided_is_taken_up(tmp_path: Path) -> None:
    """A thread has read the partition, and trio's thread does not know it yet."""
    async with broker(tmp_path) as node:
        await node.begin()
        partition = node.partitions.get(TRANSACTION_STATE, node.transactions.partition_for("x"))
        assert partition is not None
        node.transactions.on_leader(partition)
        shard = node.transactions._shards[partition.index]
        while not shard.is_read:
            shard.load_some()
        with pytest.raises(BrokerError) as refused:
            await node.transactions.initialize("x", TIMEOUT_MS, None)
        assert refused.value.error is Error.COORDINATOR_LOAD_IN_PROGRESS
        await node.until(TransactionState.COMPLETE_ABORT)


async def test_t66_an_open_transaction_is_aborted_also_behind_a_restart(tmp_path: Path) -> None:
    async with broker(tmp_path) as node:
        await node.begin()
    async with broker(tmp_path) as node:
        assert node.state() is TransactionState.ONGOING
        await node.until(TransactionState.COMPLETE_ABORT)


async def test_ids_that_nobody_uses_are_forgotten(tmp_path: Path) -> None:
    settings = {
        "transactional_id_expiration_ms": 1000,
        "transaction_remove_expired_transaction_cleanup_interval_ms": 10_000,
    }
    async with broker(tmp_path, **settings) as node:
        await node.transactions.initialize("idle", TIMEOUT_MS, None)
        await node.begin()
        await trio.sleep(11)
        assert node.transactions.find("idle") is None
        assert node.state() is TransactionState.ONGOING
    async with broker(tmp_path) as node:
        assert node.transactions.find("idle") is None
        assert node.state() is TransactionState.ONGOING


async def test_who_does_not_lead_does_not_coordinate(tmp_path: Path) -> None:
    async with broker(tmp_path) as node:
        producer = await node.begin()
        node.transactions.stop()
        for ask in (
            node.transactions.initialize("x", TIMEOUT_MS, None),
            node.transactions.end("x", producer, committed=True, version=0),
        ):
            with pytest.raises(BrokerError) as refused:
                await ask
            assert refused.value.error is Error.NOT_COORDINATOR


async def test_what_the_log_refuses_changes_nothing(tmp_path: Path) -> None:
    async with broker(tmp_path) as node:
        producer = await node.begin()
        partition = node.partitions.get(TRANSACTION_STATE, node.transactions.partition_for("x"))
        assert partition is not None
        partition.log.failed = "the disk is gone"
        with pytest.raises(BrokerError) as refused:
            await node.transactions.end("x", producer, committed=True, version=0)
        assert refused.value.error is Error.NOT_COORDINATOR
        assert node.state() is TransactionState.ONGOING
        partition.log.failed = None
        await node.transactions.end("x", producer, committed=True, version=0)
        assert node.state() is TransactionState.COMPLETE_COMMIT


def test_a_decision_holds_whose_client_goes_away_before_it_is_flushed(tmp_path: Path) -> None:
    """The flush takes a thread, of which a clock that jumps knows nothing; so this one goes as it should."""
    files = HeldFiles()
    files.let.set()

    async def main() -> None:
        async with broker(tmp_path, files=files, log_flush_interval_messages=1) as node:
            producer = await node.begin()
            files.let.clear()
            async with trio.open_nursery() as client:
                client.start_soon(partial(node.transactions.end, "x", producer, committed=True, version=0))
                await trio.testing.wait_all_tasks_blocked()
                client.cancel_scope.cancel()
            assert node.state() is TransactionState.ONGOING
            with pytest.raises(BrokerError) as refused:
                await node.transactions.end("x", producer, committed=False, version=0)
            assert refused.value.error is Error.CONCURRENT_TRANSACTIONS
            files.let.set()
            await node.until(TransactionState.COMPLETE_COMMIT)

    async def restarted() -> None:
        async with broker(tmp_path) as node:
            assert node.state() is TransactionState.COMPLETE_COMMIT

    for part in (main, restarted):
        trio.run(within_deadline, part)


async def within_deadline(part: Callable[[], Awaitable[None]]) -> None:
    with trio.fail_after(DEADLINE_S):
        await part()
