"""The parts of a broker that groups need, all real: logs, metadata, partitions, coordinator; time is trio's mock clock.

    async with coordinator(folder) as node:
        reply = await node.ask(HeartbeatRequest(...), version=4)

A request passes through the codec in both directions, as it would on a connection.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import iscoroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import trio

from odradek.cluster.controller import Controller
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.features import Features
from odradek.cluster.plans import NewTopic
from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.cluster.view import ClusterView, Endpoint
from odradek.config import BrokerConfig
from odradek.groups.coordinator import GroupCoordinator
from odradek.groups.member import Ticket
from odradek.groups.tickets import answer_for_ticket
from odradek.handlers import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    registry,
    sync_group,
)
from odradek.log.store import LogStore
from odradek.partitions import Partitions
from odradek.server import Connection
from odradek.waiting import Postponed, answer_of
from odradek_protocol.codec import decode, encode
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError
from odradek_protocol.schema import Api

__all__ = ["GroupNode", "coordinator", "result_of"]

R = TypeVar("R")

HANDLERS = (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
"""The modules whose functions `ask` finds in the registry."""

LOADING_S = 3600.0
"""How long loading may take, by a clock that jumps while a thread works."""

EPOCH_MS = 1_700_000_000_000


class TrioClock:
    """A wall clock that goes with trio's."""

    def now_ms(self) -> int:
        return EPOCH_MS + int(trio.current_time() * 1000)


class GroupNode:
    """What the handlers of groups use of a node."""

    def __init__(self, store: EmbeddedStore, logs: LogStore, config: BrokerConfig) -> None:
        self.node_id = config.node_id
        self.config = config
        self.clock = TrioClock()
        self.view = ClusterView()
        self.logs = logs
        self.partitions = Partitions(self.node_id, logs, config, cast(Any, self.clock))
        self.controller = Controller(
            node_id=self.node_id,
            store=store,
            view=self.view,
            partitions=self.partitions,
            config=config,
            clock=cast(Any, self.clock),
        )
        self.features = Features(store, self.node_id)
        self.groups = GroupCoordinator(config, cast(Any, self.clock), self.view)
        self.partitions.on_leader.append(self.groups.on_leader)
        self.partitions.on_resign.append(self.groups.on_resign)
        self.connection = Connection("PLAINTEXT", ("10.1.2.3", 9093), "/127.0.0.1")

    async def ask(self, body: Any, version: int, *, client_id: str | None = "probe") -> Any:
        """The reply to a request in one version, as its client reads it."""
        api: Api = body.API
        flexible = version >= api.flexible
        received = decode(type(body), version, encode(body, version, flexible=flexible), flexible=flexible)
        request = Request(api, version, 1, client_id, received)
        reply = registry.registered[api.key](cast(Any, self), self.connection, request)
        if iscoroutine(reply):
            reply = await reply
        elif isinstance(reply, Postponed):
            reply = await answer_of(reply)
        return decode(api.response, version, encode(reply, version, flexible=flexible), flexible=flexible)

    async def until_loaded(self) -> None:
        """Wait until the groups of this node are in memory."""
        with trio.fail_after(LOADING_S):
            while True:
                try:
                    self.groups.all_groups()
                except BrokerError:
                    await trio.sleep(0.001)
                else:
                    return

    async def make_offsets_topic(self) -> None:
        await self.controller.create_internal_topic(CONSUMER_OFFSETS)

    async def make_topic(self, name: str, partitions: int = 3) -> bytes:
        return (await self.controller.create_topic(NewTopic(name, partitions=partitions))).topic_id


@asynccontextmanager
async def coordinator(folder: Path, **settings: object) -> AsyncIterator[GroupNode]:
    """A node on `folder`, which may have been used before. `settings` are Kafka's keys with `_` for `.`."""
    static = {
        "node.id": "1",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    config = BrokerConfig(static)
    logs = LogStore.open([str(folder / "logs")], config, 1, TrioClock())
    store = await EmbeddedStore.open(folder / "metadata.db")
    try:
        node = GroupNode(store, logs, config)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.groups.run)
            await node.controller.load()
            await node.features.load()
            await node.controller.register({"PLAINTEXT": Endpoint("127.0.0.1", 9092)}, None)
            yield node
            node.groups.stop()
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await store.close()
        logs.close()


async def result_of(ticket: Ticket[R]) -> R:
    """What a ticket is resolved with."""
    answer = answer_for_ticket(ticket, lambda result: result)
    return await answer_of(answer) if isinstance(answer, Postponed) else answer  # type: ignore[no-any-return]  # as the ticket says
