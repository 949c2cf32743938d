"""Listeners, the connections that they admit, and when these end. How one is served stands in `channel`.

    bytes that make no sense, an unknown key or version     the connection is closed, with the reason logged
    a fault in a handler                                     logged once; answered UNKNOWN_SERVER_ERROR where the reply
                                                             has a top-level error code, else closed
    no request for `connections.max.idle.ms`                 closed
    over `max.connections` or `max.connections.per.ip`       closed at once
    `queued.max.request.bytes` are received and not answered nothing more is received until some are

At a stop the listeners close first, idle connections next, and those with a request at work get `GRACE_S` seconds.
"""

import errno
import logging
import socket
from collections import Counter
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING

import trio

from odradek.channel import Channel, Connection, ReceiveMemory
from odradek.config.listeners import Listener
from odradek.poller import Poller
from odradek.workers import Workers
from odradek_protocol.connection import Buffers

if TYPE_CHECKING:
    from odradek.config import BrokerConfig
    from odradek.node import Node

__all__ = ["WITHIN_A_HOST", "Connection", "Server", "open_listener"]

log = logging.getLogger(__name__)

GRACE_S = 2.0
"""How long a stop waits for requests at work: longer than any wait that a stop does not end by itself."""

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that pass when other connections end."""

WITHIN_A_HOST = b"reno"
"""The congestion control of connections that never leave this host (tcp(7), TCP_CONGESTION): every kernel has it, and
nothing gets lost there that it would have to react to. Where the system's own is one that paces, as BBR does, a timer
between the pieces of a large reply costs both sides a fifth of their CPU time, and more with a small receive buffer.
"""

ACCEPT_PAUSE_S = 0.1
"""How long to leave the queue of connections alone when there are no file descriptors for them."""


def open_listener(listener: Listener, config: "BrokerConfig") -> socket.socket:
    """A socket that listens. Connections take its options over as they are made.

    Buffers have the sizes that the configuration names. Unless it does, the system sizes both as it goes: Kafka's
    100 KiB would switch that off.

    Raises OSError when the address cannot be bound, with the listener in its text.
    """
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((listener.host, listener.port))
        for option, key, size in (
            (socket.SO_SNDBUF, "socket.send.buffer.bytes", config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, "socket.receive.buffer.bytes", config.socket_receive_buffer_bytes),
        ):
            if key in config.static and size > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        if ip_address(sock.getsockname()[0]).is_loopback:
            # It is too late on a connection: once one is paced, it stays so.
            with suppress(OSError):  # not every system lets everybody choose
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, WITHIN_A_HOST)
        sock.listen(max(config.socket_listen_backlog_size, 1))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"listener {listener} cannot be opened: {error.strerror}") from error
    return sock


class Server:
    """The listeners of a broker and their connections."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._memory = ReceiveMemory(node.config.queued_max_request_bytes)
        self._poller = Poller()
        self._channels: set[Channel] = set()
        self._per_address: Counter[str] = Counter()
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._stopped = False
        self._all_ended = trio.Event()

    @property
    def buffers(self) -> Buffers:
        """What the connections receive into."""
        return self._memory.buffers

    @property
    def connection_count(self) -> int:
        return len(self._channels)

    def bind(self) -> list[tuple[Listener, str, int]]:
        """Open every listener; give the address that each one has.

        Raises OSError when an address cannot be bound, with the listener in its text.
        """
        config = self._node.config
        for listener in config.listeners:
            self._sockets.append((listener, open_listener(listener, config)))
        return [(listener, *sock.getsockname()[:2]) for listener, sock in self._sockets]

    async def serve(self) -> None:
        """Serve until cancelled or `stop`."""
        try:
            async with trio.open_nursery() as polling:
                polling.start_soon(self._poller.run)
                async with trio.open_nursery() as tasks:
                    workers = Workers(tasks)
                    async with trio.open_nursery() as acceptors:
                        self._acceptors = acceptors.cancel_scope
                        for listener, sock in self._sockets:
                            acceptors.start_soon(self._accept, listener, sock, workers)
                        acceptors.start_soon(self._reap)
                    if self._channels:
                        with trio.move_on_after(GRACE_S):
                            await self._all_ended.wait()
                    self._close_all()
                    tasks.cancel_scope.cancel()
                polling.cancel_scope.cancel()
        finally:
            self._close_all()
            self._poller.close()

    def stop(self) -> None:
        """Take no new connection, close idle ones, and give the others `GRACE_S` seconds."""
        self._stopped = True
        self._acceptors.cancel()
        for _, sock in self._sockets:
            sock.close()
        for channel in tuple(self._channels):
            channel.stop()

    def _close_all(self) -> None:
        for channel in tuple(self._channels):
            channel.close()

    async def _reap(self) -> None:
        """Close connections without a request for `connections.max.idle.ms`; time is counted in quarters of that."""
        idle_ms = self._node.config.connections_max_idle_ms
        if idle_ms < 0:
            return
        while True:
            await trio.sleep(max(idle_ms, 1) / 4000)
            for channel in tuple(self._channels):
                if channel.is_idle(rounds=4):
                    log.debug("closing the connection of %s: idle", channel.connection.peer)
                    channel.close()

    async def _accept(self, listener: Listener, sock: socket.socket, workers: Workers) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            try:
                client, address = sock.accept()
            except BlockingIOError:
                await trio.lowlevel.wait_readable(sock)
                continue
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                log.warning("cannot accept a connection on %s: %s", listener, error.strerror)
                await trio.sleep(ACCEPT_PAUSE_S)
                continue
            if not self._admit(address[0]):
                client.close()
                continue
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(listener.name, client.getsockname()[:2], f"/{address[0]}")
            channel = Channel(
                self._node, self._poller, self._memory, connection, client, workers=workers, ended=self._forget
            )
            self._channels.add(channel)
            self._per_address[connection.peer] += 1
            channel.park()

    def _admit(self, host: str) -> bool:
        config = self._node.config
        if len(self._channels) >= config.max_connections:
            log.warning("refused a connection of /%s: max.connections=%d", host, config.max_connections)
            return False
        limit = config.max_connections_per_ip_overrides.get(host, config.max_connections_per_ip)
        if self._per_address[f"/{host}"] >= limit:
            log.warning("refused a connection of /%s: max.connections.per.ip=%d", host, limit)
            return False
        return True

    def _forget(self, channel: Channel) -> None:
        """Take note that a connection is closed."""
        peer = channel.connection.peer
        self._channels.discard(channel)
        self._per_address[peer] -= 1
        if not self._per_address[peer]:
            del self._per_address[peer]
        if self._stopped and not self._channels:
            self._all_ended.set()
