"""Listeners, and the loop of one connection: receive, decode, handle, send.

One task serves one connection, and answers each request before it takes the next. So replies leave in the order of
their requests (KoP#113 shows what happens otherwise), and a request passes no queue and no other thread.

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
from typing import TYPE_CHECKING, Any

import trio

from odradek.config.listeners import Listener
from odradek.handlers.registry import CloseConnection, answer_for, registered
from odradek.transport import send_all, send_parts
from odradek_protocol.connection import Buffers, Request, ServerConnection
from odradek_protocol.errors import ProtocolError
from odradek_protocol.schema import Api

if TYPE_CHECKING:
    from odradek.node import Node

__all__ = ["Connection", "Server"]

log = logging.getLogger(__name__)

FETCH = 1
"""The one API whose replies hold slices of a log."""

TURNS_IN_A_ROW = 16
"""Requests served and pieces received of one connection before the other tasks get a turn, while bytes keep coming."""

GRACE_S = 2.0
"""How long a stop waits for requests at work: longer than any wait that a stop does not end by itself."""

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that pass when other connections end."""

ACCEPT_PAUSE_S = 0.1
"""How long to leave the queue of connections alone when there are no file descriptors for them."""


class Connection:
    """What handlers may know of a connection.

    `listener` is the name of the listener, `local_host` and `local_port` the address that the client dialled, `peer`
    the client's address in Kafka's form (`/127.0.0.1`), `principal` who it is.
    """

    __slots__ = ("listener", "local_host", "local_port", "peer", "principal", "scope", "tick", "working")

    def __init__(self, listener: str, local: tuple[str, int], peer: str) -> None:
        self.listener = listener
        self.local_host, self.local_port = local
        self.peer = peer
        self.principal = "User:ANONYMOUS"
        self.scope = trio.CancelScope()
        self.tick = 0
        self.working = False


class Server:
    """The listeners of a broker and their connections."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.buffers = Buffers()
        self._short_of_memory = trio.lowlevel.ParkingLot()
        self._connections: set[Connection] = set()
        self._per_address: Counter[str] = Counter()
        self._sockets: list[tuple[Listener, socket.socket]] = []
        self._tick = 0
        self._stopping = False

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def bind(self) -> list[tuple[Listener, str, int]]:
        """Open every listener; give the address that each one has.

        Raises OSError when an address cannot be bound, with the listener in its text.
        """
        config = self._node.config
        for listener in config.listeners:
            family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((listener.host, listener.port))
                sock.listen(max(config.socket_listen_backlog_size, 1))
                sock.setblocking(False)
            except OSError as error:
                sock.close()
                raise OSError(error.errno, f"listener {listener} cannot be opened: {error.strerror}") from error
            self._sockets.append((listener, sock))
        return [(listener, *sock.getsockname()[:2]) for listener, sock in self._sockets]

    async def serve(self) -> None:
        """Serve until cancelled or `stop`."""
        async with trio.open_nursery() as connections, trio.open_nursery() as acceptors:
            self._acceptors = acceptors.cancel_scope
            for listener, sock in self._sockets:
                acceptors.start_soon(self._accept, listener, sock, connections)
            acceptors.start_soon(self._reap)

    def stop(self) -> None:
        """Take no new connection, close idle ones, and give the others `GRACE_S` seconds."""
        self._stopping = True
        self._acceptors.cancel()
        for _, sock in self._sockets:
            sock.close()
        deadline = trio.current_time() + GRACE_S
        for connection in self._connections:
            if connection.working:
                connection.scope.deadline = deadline
            else:
                connection.scope.cancel()

    async def _reap(self) -> None:
        """Close connections without a request for `connections.max.idle.ms`; time is counted in quarters of that."""
        idle_ms = self._node.config.connections_max_idle_ms
        if idle_ms < 0:
            return
        while True:
            await trio.sleep(max(idle_ms, 1) / 4000)
            self._tick += 1
            for connection in tuple(self._connections):
                if self._tick - connection.tick > 4:
                    log.debug("closing the connection of %s: idle", connection.peer)
                    connection.scope.cancel()

    async def _accept(self, listener: Listener, sock: socket.socket, nursery: trio.Nursery) -> None:
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
            self._size_buffers(client)
            connection = Connection(listener.name, client.getsockname()[:2], f"/{address[0]}")
            connection.tick = self._tick
            self._connections.add(connection)
            self._per_address[connection.peer] += 1
            nursery.start_soon(self._serve_connection, connection, client)

    def _size_buffers(self, client: socket.socket) -> None:
        """Give the socket the buffers that the configuration names; unless it does, the system sizes them as it goes.

        Kafka's default of 100 KiB would switch that off, and cost a wake-up for each such piece of a large reply.
        """
        config = self._node.config
        for key, option, size in (
            ("socket.send.buffer.bytes", socket.SO_SNDBUF, config.socket_send_buffer_bytes),
            ("socket.receive.buffer.bytes", socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
        ):
            if key in config.static and size > 0:
                client.setsockopt(socket.SOL_SOCKET, option, size)

    def _admit(self, host: str) -> bool:
        config = self._node.config
        if len(self._connections) >= config.max_connections:
            log.warning("refused a connection of /%s: max.connections=%d", host, config.max_connections)
            return False
        limit = config.max_connections_per_ip_overrides.get(host, config.max_connections_per_ip)
        if self._per_address[f"/{host}"] >= limit:
            log.warning("refused a connection of /%s: max.connections.per.ip=%d", host, limit)
            return False
        return True

    async def _serve_connection(self, connection: Connection, sock: socket.socket) -> None:
        frames = ServerConnection(self.buffers, self._node.config.socket_request_max_bytes)
        try:
            with connection.scope:
                await self._serve_requests(connection, sock, frames)
        except (ProtocolError, CloseConnection) as error:
            log.info("closing the connection of %s: %s", connection.peer, error)
        except OSError as error:
            log.debug("lost the connection of %s: %s", connection.peer, error)
        except Exception:
            log.exception("closing the connection of %s", connection.peer)
        finally:
            frames.close()
            self._short_of_memory.unpark_all()
            sock.close()
            self._connections.discard(connection)
            self._per_address[connection.peer] -= 1
            if not self._per_address[connection.peer]:
                del self._per_address[connection.peer]

    async def _serve_requests(self, connection: Connection, sock: socket.socket, frames: ServerConnection) -> None:
        """The loop of one connection; ends when the client closes it."""
        in_a_row = 0
        memory_limit = self._node.config.queued_max_request_bytes
        while True:
            if in_a_row == TURNS_IN_A_ROW:
                in_a_row = 0
                await trio.lowlevel.checkpoint()
            request = frames.next_request()
            if request is not None:
                connection.tick = self._tick
                connection.working = True
                await self._answer(connection, sock, frames, request)
                connection.working = False
                if self._stopping:
                    return
                in_a_row += 1
                continue
            if memory_limit > 0:
                await self._wait_for_memory(frames, memory_limit)
            try:
                size = sock.recv_into(frames.receive_buffer())
            except BlockingIOError:
                frames.release()
                if self._short_of_memory:
                    self._short_of_memory.unpark_all()
                in_a_row = 0
                await trio.lowlevel.wait_readable(sock)
                continue
            if size == 0:
                return
            frames.received(size)
            in_a_row += 1

    async def _wait_for_memory(self, frames: ServerConnection, limit: int) -> None:
        """Let a connection without a buffer wait while the others hold `limit` bytes; the last one in may pass it."""
        while not frames.holds_buffer and self.buffers.lent_bytes >= limit:
            await self._short_of_memory.park()

    async def _answer(
        self, connection: Connection, sock: socket.socket, frames: ServerConnection, request: Request[Any]
    ) -> None:
        handler = registered.get(request.api.key)
        if handler is None:
            raise ProtocolError(f"{request.api.name} is not served")
        try:
            response = await handler(self._node, connection, request)
        except (CloseConnection, ProtocolError):
            raise
        except Exception as error:  # noqa: BLE001 - answered, and logged
            response = _top_level_error(request.api, error, request)
        if response is None:
            return
        if request.api.key == FETCH:
            await send_parts(sock, frames.reply_parts(request, response))
        else:
            await send_all(sock, frames.reply(request, response))


def _top_level_error(api: Api, error: Exception, request: Request[Any]) -> Any:
    """A reply that says only that the request failed.

    Raises CloseConnection where the reply, in this version, has no place for an error that concerns all of it.
    """
    code, message = answer_for(error, request)
    fields = api.response.FIELDS  # type: ignore[attr-defined]  # a Struct
    values = {field.name: field.absent_value for field in fields}
    if not any(field.name == "error_code" and field.in_version(request.version) for field in fields):
        raise CloseConnection(f"{request!r} failed: {code.name}")
    values["error_code"] = code
    if "error_message" in values:
        values["error_message"] = message
    return api.response(**values)
