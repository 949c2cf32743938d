"""One broker: what it is made of, and the order in which the parts start and stop.

Start: lock and load the logs (in a thread) -> open the metadata -> make the partitions of the metadata, which loads the
groups and the transactions -> open the listeners -> register with the cluster -> serve. So whoever can connect is
answered from what was there before.

Stop: close the listeners, end what waits, let requests at work finish -> stop the groups and the transactions -> close
the logs, which marks the shutdown as clean -> close the metadata. What a kill leaves undone the next start recovers.
"""

import gc
import logging
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import trio

from odradek.clock import Clock
from odradek.cluster.controller import Controller
from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.features import Features
from odradek.cluster.producer_ids import ProducerIds
from odradek.cluster.store import Failure, MetadataStore, StoreError
from odradek.cluster.view import ClusterView, Endpoint
from odradek.compactor import Compactor
from odradek.config import BrokerConfig, Listener
from odradek.fetch_sessions import FetchSessions
from odradek.groups.coordinator import GroupCoordinator
from odradek.groups.internal_topics import InternalTopics
from odradek.handlers.registry import load_all
from odradek.log.errors import LogFolderError
from odradek.log.store import Folder, LogStore
from odradek.log_moves import LogMoves
from odradek.maintenance import maintain
from odradek.partitions import Partitions
from odradek.reply_cache import ReplyCache
from odradek.server import Server
from odradek.share.coordinator import ShareCoordinator
from odradek.share.manager import SharePartitions
from odradek.transactions.coordinator import TransactionCoordinator
from odradek.transactions.markers import LocalMarkers

__all__ = ["Node", "StartError", "run"]

log = logging.getLogger(__name__)

METADATA_FILE = "metadata.db"
"""The embedded metadata store, in the first of `log.dirs`."""

WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound

GC_THRESHOLDS = (50_000, 20, 100)
"""How many objects, and how many younger collections, are between two collections: a full one walks everything and is a
pause for every client, while the request path makes no cycles."""

SETTLED_AFTER_S = 1.0
"""When the collector looks at what the start has left behind: not before the first requests are answered."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread that converts records may keep the interpreter while requests wait for it. With Python's 5 ms, a
small request beside a conversion took 5.4 ms in the median, with this 0.8."""


class StartError(Exception):
    """A broker that cannot start, or go on, for a reason outside it: its folders, its metadata, its addresses."""


Ready = Callable[[Sequence[str]], None]


class Node:
    """What handlers are given: the broker's parts.

    `stopping` is true from the moment in which no new wait is to begin.
    """

    view: ClusterView
    store: MetadataStore
    partitions: Partitions
    controller: Controller
    groups: GroupCoordinator
    share_coordinator: ShareCoordinator
    share_partitions: SharePartitions
    transactions: TransactionCoordinator
    markers: LocalMarkers
    features: Features
    producer_ids: ProducerIds
    logs: LogStore
    log_moves: LogMoves
    server: Server

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        load_all()
        self.config = config
        self.clock = clock or Clock()
        self.node_id: int = config.node_id
        self.view = ClusterView()
        self.metadata_replies = ReplyCache(self.view)
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots)
        self.stopping = False
        self._stop_asked = trio.Event()
        self._failed_folders: list[Folder] = []
        self._folder_failed = trio.Event()

    def stop(self) -> None:
        """Ask the broker to stop; `serve` returns when it has. To be called in trio's thread."""
        self._stop_asked.set()

    async def serve(self, ready: Ready) -> None:
        """Start, call `ready` with the addresses that clients can connect to, and serve until `stop`.

        Raises OSError when a folder or an address cannot be had, or the broker cannot go on without one that failed;
        StoreError when the metadata cannot be read.
        """
        folders = [Path(folder) for folder in self.config.log_dirs]
        self.logs = await trio.to_thread.run_sync(self._open_logs, folders)
        token = trio.lowlevel.current_trio_token()
        self.logs.on_folder_failure = lambda folder: token.run_sync_soon(self._note_failure, folder)
        self.log_moves = LogMoves(self.logs)
        self.partitions = Partitions(self.node_id, self.logs, self.config, self.clock)
        try:
            if not self._can_go_on:
                raise LogFolderError(self._why_not())
            self._check_metadata_file(folders[0] / METADATA_FILE)
            self.store = await EmbeddedStore.open(folders[0] / METADATA_FILE)
            try:
                await self._serve(ready)
            finally:
                with trio.CancelScope(shield=True):
                    await self.store.close()
        finally:
            with trio.CancelScope(shield=True):
                self.logs.on_folder_failure = None
                await trio.to_thread.run_sync(self.logs.close, self.partitions.high_watermarks())
        if not self._can_go_on:
            raise LogFolderError(self._why_not())

    def _open_logs(self, folders: list[Path]) -> LogStore:
        return LogStore.open([str(folder) for folder in folders], self.config, self.node_id, self.clock)

    def _check_metadata_file(self, path: Path) -> None:
        """Refuse to begin anew where a file of metadata was: its topics would be gone, and their logs nobody's."""
        cluster_id = self.logs.cluster_id
        if cluster_id is not None and not (path.exists() and path.stat().st_size):
            raise LogFolderError(
                f"{path} is missing or empty, while the folders of log.dirs belong to cluster {cluster_id}: bring the "
                "file back, or give the broker new folders"
            )

    @property
    def _can_go_on(self) -> bool:
        """Whether the folder with the metadata is online; the others may fail."""
        return self.logs.folders[0].online

    def _why_not(self) -> str:
        first = self.logs.folders[0]
        return f"{first.path}, which holds {METADATA_FILE}, cannot be used: {first.failed}"

    def _note_failure(self, folder: Folder) -> None:
        self._failed_folders.append(folder)
        self._folder_failed.set()

    async def _watch_folders(self) -> None:
        """Go on without the folders that fail, or stop where that cannot be."""
        while True:
            await self._folder_failed.wait()
            self._folder_failed = trio.Event()
            while self._failed_folders:
                folder = self._failed_folders.pop()
                if not self._can_go_on:
                    log.critical("%s", self._why_not())
                    self.stop()
                    return
                await self.controller.log_folder_failed(self.partitions.take_offline(folder))

    async def _serve(self, ready: Ready) -> None:
        self.controller = Controller(
            node_id=self.node_id,
            store=self.store,
            view=self.view,
            partitions=self.partitions,
            config=self.config,
            clock=self.clock,
        )
        self.producer_ids = ProducerIds(self.store, self.node_id)
        self.groups = GroupCoordinator(self.config, self.clock, self.view)
        self.partitions.on_removed.append(self.groups.forget_topic)
        self.features = Features(self.store, self.node_id)
        self.markers = LocalMarkers(self.partitions, self.view, self.groups, self.config, self.clock)
        self.transactions = TransactionCoordinator(
            self.config, self.clock, self.view, self.producer_ids, self.markers, self.features
        )
        self.share_coordinator = ShareCoordinator(self.config, self.clock, self.view, self.controller)
        self.share_partitions = SharePartitions(self.config, self.clock, self.view, self.share_coordinator)
        self.groups.share_states = self.share_coordinator
        self.groups.internal_topics = InternalTopics(self.controller)
        self.partitions.on_removed.append(self.share_coordinator.forget_topic)
        self.partitions.on_resign.append(self.share_partitions.on_resign)
        for coordinator in (self.groups, self.transactions, self.share_coordinator):
            self.partitions.on_leader.append(coordinator.on_leader)
            self.partitions.on_resign.append(coordinator.on_resign)
        try:
            await self.controller.load()
            await self.features.load()
        except ValueError as error:
            raise StoreError(Failure.CORRUPT, METADATA_FILE, str(error)) from error
        self.logs.identify(self.view.cluster_id)
        self._tell_strays()
        self.server = Server(self)
        addresses = self.server.bind()
        await self.controller.register(self._endpoints(addresses), self.config.broker_rack)
        async with trio.open_nursery() as background:
            background.start_soon(self.groups.run)
            background.start_soon(self.share_coordinator.run)
            background.start_soon(self.share_partitions.run)
            background.start_soon(self.transactions.run)
            background.start_soon(maintain, self)
            background.start_soon(self.log_moves.run)
            background.start_soon(self._watch_folders)
            if self.config.log_cleaner_enable:
                background.start_soon(Compactor(self).run)
            background.start_soon(self._stop_when_asked)
            ready([f"{f'[{host}]' if ':' in host else host}:{port}" for _, host, port in addresses])
            await self.server.serve()
            background.cancel_scope.cancel()

    def _tell_strays(self) -> None:
        strays = sorted({topic for topic, _ in self.logs.logs} - self.view.topics.keys())
        if strays:
            log.warning("not served, because no metadata knows the topics: %s (see `odradek adopt`)", ", ".join(strays))

    async def _stop_when_asked(self) -> None:
        await self._stop_asked.wait()
        log.info("stopping")
        self.stopping = True
        self.groups.stop()
        self.transactions.stop()
        self.partitions.wake_all()
        self.server.stop()

    def _endpoints(self, bound: Sequence[tuple[Listener, str, int]]) -> dict[str, Endpoint]:
        """Where clients reach each listener: as advertised, else where it is bound."""
        advertised = {listener.name: listener for listener in self.config.advertised_listeners or ()}
        endpoints = {}
        for listener, host, port in bound:
            told = advertised.get(listener.name)
            if told is not None:
                host, port = told.host, told.port or port  # noqa: PLW2901 - advertised instead of bound
            if host in WILDCARDS:
                host = socket.gethostname()  # noqa: PLW2901 - an address that others can look up
            endpoints[listener.name] = Endpoint(host, port, listener.security_protocol)
        return endpoints


def run(config: BrokerConfig) -> None:
    """Run a broker in this process until SIGTERM or SIGINT. Raises StartError."""
    _raise_file_limit()
    trio.run(_run, config)


async def _run(config: BrokerConfig) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        node = Node(config)
        failure = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, signals, node)

            def ready(addresses: Sequence[str]) -> None:
                print(f"odradek ready: {' '.join(addresses)}", flush=True)  # noqa: T201 - what scripts wait for
                nursery.start_soon(_settle)

            try:
                await node.serve(ready)
            except (OSError, LogFolderError, StoreError) as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise StartError(str(failure)) from failure


async def _stop_on_signal(signals: AsyncIterator[int], node: Node) -> None:
    async for _ in signals:
        node.stop()


async def _settle() -> None:
    """Set the interpreter up for many waits and short pauses.

    The collector, which did not run during the start (`cli`), looks once at what was made: that stays, and it need not
    look at it again.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    await trio.sleep(SETTLED_AFTER_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def _raise_file_limit() -> None:
    """Allow as many open files as the system lets this process have: each connection and each active segment is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
