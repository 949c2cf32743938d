"""The metadata of one broker on a real embedded store, with a recorder for its partitions."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from inspect import iscoroutine
from pathlib import Path
from typing import Any

import trio

from odradek.clock import Clock
from odradek.cluster.controller import Controller
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.producer_ids import ProducerIds
from odradek.cluster.view import ClusterView, Endpoint, TopicView
from odradek.config import BrokerConfig
from odradek.handlers.registry import load_all, registered
from odradek.reply_cache import ReplyCache
from odradek_protocol.codec import decode, encode
from odradek_protocol.connection import EncodedReply, Request
from odradek_protocol.schema import Api

__all__ = ["Cluster", "Dialled", "RecordedPartitions", "ask", "cluster"]


load_all()


class RecordedPartitions:
    """Remembers what the controller asked for, in order; `hold` keeps it waiting, `fail` makes it fail."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.topics: dict[str, TopicView] = {}
        self.without_log: dict[str, frozenset[int]] = {}
        self.hold: trio.Event | None = None
        self.fail: Exception | None = None

    async def apply(self, topic: TopicView) -> None:
        self.calls.append(("apply", topic.name))
        await self._maybe_wait()
        self.topics[topic.name] = topic

    def configure(self, topic: TopicView) -> None:
        self.calls.append(("configure", topic.name))
        self.topics[topic.name] = topic

    def offline(self, topic: TopicView) -> frozenset[int]:
        return self.without_log.get(topic.name, frozenset())

    async def remove(self, topic: str, topic_id: bytes) -> None:  # noqa: ARG002 - as the protocol has it
        self.calls.append(("remove", topic))
        await self._maybe_wait()
        self.topics.pop(topic, None)

    async def _maybe_wait(self) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.fail is not None:
            raise self.fail


class Cluster:
    """One broker's metadata: what a handler of it is given as its node."""

    def __init__(self, store: EmbeddedStore, settings: Mapping[str, str]) -> None:
        self.node_id = 1
        self.store = store
        self.producer_ids = ProducerIds(store, 1)
        self.view = ClusterView()
        self.metadata_replies = ReplyCache(self.view)
        self.partitions = RecordedPartitions()
        self.config = BrokerConfig({"node.id": "1", **settings})
        self.controller = Controller(
            node_id=1,
            store=store,
            view=self.view,
            partitions=self.partitions,
            config=self.config,
            clock=Clock(),
        )


@asynccontextmanager
async def cluster(folder: Path, **settings: str) -> AsyncIterator[Cluster]:
    store = await EmbeddedStore.open(folder / "metadata.db")
    try:
        started = Cluster(store, {name.replace("_", "."): value for name, value in settings.items()})
        await started.controller.load()
        await started.controller.register({"PLAINTEXT": Endpoint("127.0.0.1", 9092)}, None)
        yield started
    finally:
        await store.close()


class Dialled:
    """A connection as handlers see one: which listener, and what the client dialled."""

    def __init__(self, listener: str = "PLAINTEXT", host: str = "127.0.0.1", port: int = 9092) -> None:
        self.listener = listener
        self.local_host = host
        self.local_port = port
        self.peer = "/127.0.0.1"
        self.principal = "User:ANONYMOUS"


async def ask(node: Cluster, body: Any, version: int | None = None, dialled: Dialled | None = None) -> Any:
    """A handler's reply to a request; both pass the codec, as they would on the wire."""
    api: Api = body.API
    version = api.last if version is None else version
    flexible = version >= api.flexible
    sent = decode(api.request, version, encode(body, version, flexible=flexible), flexible=flexible)
    handler: Any = registered[api.key]
    reply = handler(node, dialled or Dialled(), Request(api, version, 1, "probe", sent))
    if iscoroutine(reply):
        reply = await reply
    data = reply.data if isinstance(reply, EncodedReply) else encode(reply, version, flexible=flexible)
    return decode(api.response, version, data, flexible=flexible)
