"""The parts of a broker that share groups need, all real: logs, metadata, share coordinator, share partitions.

    async with sharing(folder) as node:
        group = await node.begin("g", "topic")
        node.produce("topic", b"0", b"1")
        assert (await group.fetch("member")).acquired == [(0, 1, 1)]

Time is trio's mock clock. A request passes through the codec in both directions, as it would on a connection.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from inspect import iscoroutine
from pathlib import Path
from typing import Any, NamedTuple, cast

import trio

from odradek.cluster.controller import Controller
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.features import Features
from odradek.cluster.plans import NewTopic
from odradek.cluster.topics import SHARE_GROUP_STATE
from odradek.cluster.view import ClusterView, Endpoint
from odradek.config import BrokerConfig
from odradek.handlers import registry, share_acknowledge, share_fetch
from odradek.log.files import Files
from odradek.log.log import Origin
from odradek.log.store import LogStore
from odradek.partition import Partition
from odradek.partitions import Partitions
from odradek.server import Connection
from odradek.share.coordinator import ShareCoordinator
from odradek.share.manager import SharePartitions
from odradek.waiting import Postponed, answer_of
from odradek_protocol.codec import decode, encode
from odradek_protocol.connection import Request
from odradek_protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from odradek_protocol.messages.share_fetch import (
    AcknowledgementBatch as FetchedBatch,
)
from odradek_protocol.messages.share_fetch import (
    ForgottenTopic,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.read import read_records
from odradek_protocol.schema import Api
from support.batches import batch
from support.coordinator import EPOCH_MS, LOADING_S, TrioClock

__all__ = ["EPOCH_MS", "Fetched", "ShareNode", "SharingGroup", "sharing"]

HANDLERS = (share_acknowledge, share_fetch)
"""The modules whose functions `ask` finds in the registry."""

EARLIEST = {"share.auto.offset.reset": "earliest"}

Batches = Sequence[tuple[int, ...]]
"""Of each the first and the last offset, then the type of all of them or of each one."""


class Fetched(NamedTuple):
    """What a ShareFetch gave of one partition."""

    error: int
    """Of the reply, else of the partition."""
    acknowledge_error: int
    acquired: list[tuple[int, int, int]]
    """First and last offset, and how often they were delivered."""
    values: list[bytes]
    """Of the records that were acquired."""


class ShareNode:
    """What the handlers of share groups use of a node."""

    def __init__(self, store: EmbeddedStore, logs: LogStore, config: BrokerConfig) -> None:
        self.node_id = config.node_id
        self.config = config
        self.stopping = False
        self.clock = clock = cast(Any, TrioClock())
        self.view = ClusterView()
        self.partitions = Partitions(self.node_id, logs, config, clock)
        self.controller = Controller(
            node_id=self.node_id, store=store, view=self.view, partitions=self.partitions, config=config, clock=clock
        )
        self.features = Features(store, self.node_id)
        self.share_coordinator = ShareCoordinator(config, clock, self.view, self.controller)
        self.share_partitions = SharePartitions(config, clock, self.view, self.share_coordinator)
        self.partitions.on_leader.append(self.share_coordinator.on_leader)
        self.partitions.on_resign += [self.share_coordinator.on_resign, self.share_partitions.on_resign]
        self.partitions.on_removed.append(self.share_coordinator.forget_topic)

    async def ask(self, body: Any, version: int, connection: Connection) -> Any:
        """The reply to a request in one version, as its client reads it; what is postponed is waited for."""
        api: Api = body.API
        flexible = version >= api.flexible
        received = decode(type(body), version, encode(body, version, flexible=flexible), flexible=flexible)
        reply = registry.registered[api.key](cast(Any, self), connection, Request(api, version, 1, "probe", received))
        if iscoroutine(reply):
            reply = await reply
        if isinstance(reply, Postponed):
            reply = await answer_of(reply)
        return decode(api.response, version, encode(reply, version, flexible=flexible), flexible=flexible)

    async def begin(
        self, group_id: str, topic: str, start_offset: int = 0, partitions: int = 1, **configs: str
    ) -> "SharingGroup":
        """A group that has begun with a topic, which is made if need be; settings with `_` for `.`."""
        found = self.view.topics.get(topic)
        if found is None:
            found = await self.controller.create_topic(NewTopic(topic, partitions=partitions))
        self._configure(group_id, configs)
        for index in range(len(found.partitions)):
            await self.share_coordinator.initialize(
                group_id, found.topic_id, index, state_epoch=1, start_offset=start_offset
            )
        return SharingGroup(self, group_id, topic, found.topic_id)

    async def resume(self, group_id: str, topic: str, **configs: str) -> "SharingGroup":
        """A group that has begun with a topic before the broker began."""
        topic_id = self.view.topics[topic].topic_id
        self._configure(group_id, configs)
        await self.until_loaded(group_id, topic_id)
        return SharingGroup(self, group_id, topic, topic_id)

    def _configure(self, group_id: str, configs: dict[str, str]) -> None:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        self.view.group_configs[group_id] = {**EARLIEST, **settings}

    def partition(self, topic: str, index: int = 0) -> Partition:
        found = self.partitions.get(topic, index)
        assert found is not None
        return found

    def produce(self, topic: str, *values: bytes, index: int = 0, **options: Any) -> int:
        """Append one batch, of now unless other timestamps are told; give its first offset."""
        options.setdefault("timestamps", [self.clock.now_ms()] * len(values))
        found = self.partition(topic, index)
        return found.append(memoryview(batch(*values, **options)), origin=Origin.CLIENT).base_offset

    async def until_loaded(self, group_id: str, topic_id: bytes) -> None:
        """Wait until the share coordinator has the states of a group in memory."""
        with trio.fail_after(LOADING_S):
            await self.share_coordinator.until_loaded(group_id, topic_id, 0)


class SharingGroup:
    """A group and its topic, and the sessions of its members, each on a connection of its own."""

    def __init__(self, node: ShareNode, group_id: str, topic: str, topic_id: bytes) -> None:
        self.node = node
        self.group_id = group_id
        self.topic = topic
        self.topic_id = topic_id
        self._epochs: dict[str, int] = {}
        self._connections: dict[str, Connection] = {}

    async def fetch(
        self, member_id: str, *batches: tuple[int, ...], index: int = 0, epoch: int | None = None, **options: Any
    ) -> Fetched:
        """ShareFetch of one partition, with acknowledgements; `options` are fields of the request."""
        reply = await self.fetch_all(member_id, {index: batches}, epoch=epoch, **options)
        found = [each for topic in reply.responses for each in topic.partitions if each.partition_index == index]
        if not found:
            return Fetched(reply.error_code, 0, [], [])
        acquired = [(each.first_offset, each.last_offset, each.delivery_count) for each in found[0].acquired_records]
        return Fetched(
            reply.error_code or found[0].error_code,
            found[0].acknowledge_error_code,
            acquired,
            _values(memoryview(found[0].records), acquired),
        )

    async def fetch_all(
        self,
        member_id: str,
        partitions: dict[int, Batches],
        *,
        epoch: int | None = None,
        version: int = 2,
        forgotten: Sequence[int] = (),
        **options: Any,
    ) -> ShareFetchResponse:
        """ShareFetch of several partitions; the epoch is the next one of the member's session unless it is told."""
        body = ShareFetchRequest(
            **{
                "group_id": self.group_id,
                "member_id": member_id,
                "share_session_epoch": self._next_epoch(member_id, epoch),
                "max_wait_ms": 0,
                "min_bytes": 1,
                "max_records": 500,
                "batch_size": 500,
                "topics": [
                    ShareFetchTopic(
                        topic_id=self.topic_id,
                        partitions=[
                            ShareFetchPartition(
                                partition_index=index,
                                acknowledgement_batches=[
                                    FetchedBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                                    for first, last, *types in batches
                                ],
                            )
                            for index, batches in partitions.items()
                        ],
                    )
                ],
                "forgotten_topics_data": [ForgottenTopic(topic_id=self.topic_id, partitions=forgotten)]
                if forgotten
                else [],
                **options,
            }
        )
        reply: ShareFetchResponse = await self.node.ask(body, version, self.connection(member_id))
        return reply

    async def acknowledge(
        self, member_id: str, *batches: tuple[int, ...], index: int = 0, epoch: int | None = None, **options: Any
    ) -> int:
        """ShareAcknowledge in one partition; the error code of the reply, else of the partition."""
        version = options.pop("version", 2)
        rows = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, *types in batches
        ]
        partition = AcknowledgePartition(partition_index=index, acknowledgement_batches=rows)
        body = ShareAcknowledgeRequest(
            **{
                "group_id": self.group_id,
                "member_id": member_id,
                "share_session_epoch": self._next_epoch(member_id, epoch),
                "topics": [AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])],
                **options,
            }
        )
        reply = await self.node.ask(body, version, self.connection(member_id))
        codes = [each.error_code for topic in reply.responses for each in topic.partitions]
        code: int = reply.error_code or next(iter(codes), 0)
        return code

    def connection(self, member_id: str) -> Connection:
        """The member's connection."""
        return self._connections.setdefault(member_id, Connection("PLAINTEXT", ("10.1.2.3", 9093), "/127.0.0.1"))

    def disconnect(self, member_id: str) -> None:
        """The connection of a member ends."""
        self._epochs.pop(member_id, None)
        for close in self.connection(member_id).on_close.values():
            close()
        del self._connections[member_id]

    def _next_epoch(self, member_id: str, told: int | None) -> int:
        epoch = self._epochs.get(member_id, 0) if told is None else told
        self._epochs[member_id] = epoch + 1
        return epoch


def _values(records: memoryview, acquired: Sequence[tuple[int, int, int]]) -> list[bytes]:
    return [
        bytes(record.value or b"")
        for position, each in iter_batches(records)
        if not each.is_control
        for record in read_records(records[position : position + each.size])
        if any(first <= record.offset <= last for first, last, _ in acquired)
    ]


@asynccontextmanager
async def sharing(folder: Path, *, files: Files | None = None, **settings: object) -> AsyncIterator[ShareNode]:
    """A node on `folder`, which may have been used before. `settings` are Kafka's keys with `_` for `.`."""
    config = BrokerConfig(
        {
            "node.id": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **{name.replace("_", "."): str(value) for name, value in settings.items()},
        }
    )
    logs = LogStore.open([str(folder / "logs")], config, 1, TrioClock(), files=files)
    store = await EmbeddedStore.open(folder / "metadata.db")
    try:
        node = ShareNode(store, logs, config)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.share_coordinator.run)
            nursery.start_soon(node.share_partitions.run)
            await node.controller.load()
            await node.features.load()
            await node.controller.register({"PLAINTEXT": Endpoint("127.0.0.1", 9092)}, None)
            if SHARE_GROUP_STATE not in node.view.topics:
                await node.controller.create_internal_topic(SHARE_GROUP_STATE)
            yield node
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await store.close()
        logs.close()
