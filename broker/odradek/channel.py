"""One connection: receive, decode, handle, send; and who does it, the poller or a task.

A request is answered before the next one of its connection is taken, so replies leave in the order of their requests
(KoP#113 shows what happens otherwise), and a request passes no queue and no other thread.

Most requests are answered without waiting for anything. The poller serves those, for all connections, in its own task:
switching to a task of the connection would cost as much as a small request does, and having one as much memory as all
the rest. What has to wait goes on in a task that is lent for it:

    parked   --(the poller: bytes are there)-->   served by the poller, and parked again
    parked   --(a handler postpones its answer)-->   parked: the poller looks again when something wakes it, or the
             time is over, and reads nothing of the connection before
    parked   --(the socket is full)-->   parked: the poller sends on when there is room, and reads nothing before
    parked   --(a handler gives a coroutine, a file has to be read from the disk, memory is short)-->   a task, which
             awaits that, goes on with what was received behind it, and ends when that is answered: parked again
    parked   --(the client closes; the bytes make no sense; a fault)-->   closed

Replies to requests that came together leave together, those of one connection in one call, those of several in a row.
"""

import logging
import socket
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import trio

from odradek.handlers.registry import CloseConnection, answer_for, registered
from odradek.transport import Outgoing
from odradek.waiting import Postponed
from odradek.workers import Workers
from odradek_protocol.connection import Buffers, Request, ServerConnection
from odradek_protocol.errors import ProtocolError
from odradek_protocol.schema import Api

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.poller import Poller

__all__ = ["Channel", "Connection", "ReceiveMemory", "top_level_error"]

log = logging.getLogger(__name__)

FETCH = 1
"""The one API whose replies hold slices of a log."""

TURNS_IN_A_ROW = 6
"""Pieces received and requests served of one connection before the others get a turn: with as many small requests a
connection that floods holds up another one for some tenths of a millisecond. The five requests that a producer has on
their way by default fit into one turn.
"""

REPLIES_TOGETHER = 5
"""Replies that may wait for the requests behind theirs: a reply is late by as many small requests at most."""


Wait = Coroutine[Any, Any, None]
"""What a task has to await before the connection can go on."""


class Turn(Enum):
    """How a turn of a connection ended."""

    ANSWERED = auto()
    """Everything that was received is answered; the poller tells when more comes."""
    POSTPONED = auto()
    """An answer is waited for; the poller tells when to look for it."""
    SENDING = auto()
    """The socket takes no more; the poller tells when it does."""
    MORE = auto()
    """There may be more to do at once; it is the others' turn."""
    CLOSED = auto()
    """The client closed the connection, or the broker stops."""


ANSWERED = Turn.ANSWERED
"""How most turns end; it is looked up for each."""

PARKED = frozenset({Turn.ANSWERED, Turn.POSTPONED, Turn.SENDING})
"""After these the connection is the poller's."""


class Connection:
    """What handlers may know of a connection.

    `listener` is the name of the listener, `local_host` and `local_port` the address that the client dialled, `peer`
    the client's address in Kafka's form (`/127.0.0.1`), `principal` who it is. `on_close` is what is to be done when it
    is closed, by what it is for.
    """

    __slots__ = ("listener", "local_host", "local_port", "on_close", "peer", "principal")

    def __init__(self, listener: str, local: tuple[str, int], peer: str) -> None:
        self.listener = listener
        self.local_host, self.local_port = local
        self.peer = peer
        self.principal = "User:ANONYMOUS"
        self.on_close: dict[object, Callable[[], object]] = {}


class ReceiveMemory:
    """The memory that requests are received into, by all connections: `queued.max.request.bytes` of it, -1 for any."""

    def __init__(self, limit_bytes: int) -> None:
        self.buffers = Buffers()
        self.is_limited = limit_bytes > 0
        self.waiters = 0
        self._limit_bytes = limit_bytes
        self._waiting = trio.lowlevel.ParkingLot()

    def is_short_for(self, frames: ServerConnection) -> bool:
        """Whether a connection has to wait before it borrows a buffer, where memory `is_limited`; one that has a buffer
        goes on with it.
        """
        return self._limit_bytes <= self.buffers.lent_bytes and not frames.holds_buffer

    async def wait_for(self, frames: ServerConnection) -> None:
        """Wait until others have given buffers back; the last one in may pass the limit."""
        self.waiters += 1
        try:
            while self.is_short_for(frames):
                await self._waiting.park()
        finally:
            self.waiters -= 1

    def given_back(self) -> None:
        """Let the `waiters` look again."""
        self._waiting.unpark_all()


class Channel:
    """A connection and who serves it."""

    __slots__ = (
        "_ended",
        "_frames",
        "_idle_rounds",
        "_memory",
        "_node",
        "_parked",
        "_poller",
        "_postponed",
        "_replies",
        "_scope",
        "_stopping",
        "_unsent",
        "_watched",
        "_workers",
        "connection",
        "sock",
    )

    def __init__(
        self,
        node: "Node",
        poller: "Poller",
        memory: ReceiveMemory,
        connection: Connection,
        sock: socket.socket,
        *,
        workers: Workers,
        ended: "Callable[[Channel], object]",
    ) -> None:
        """What has to be awaited is for `workers`; `ended` is called once, when the connection is closed."""
        self.connection = connection
        self.sock = sock
        self._node = node
        self._poller = poller
        self._memory = memory
        self._workers = workers
        self._ended = ended
        self._frames = ServerConnection(memory.buffers, node.config.socket_request_max_bytes)
        self._replies: list[Any] = []
        """Frames that are to be sent; one with slices of a log in its parts."""
        self._postponed: tuple[Request[Any], Postponed] | None = None
        self._unsent: Outgoing | None = None
        self._scope: trio.CancelScope | None = None
        """That of the task, while there is one."""
        self._stopping = False
        self._idle_rounds = 0
        self._watched = False
        """Whether the poller has the connection."""
        self._parked = False

    def park(self) -> None:
        """Leave the connection to the poller."""
        self._parked = True
        self._watch()
        if self._postponed is not None:
            # It may have been woken while a task was busy.
            self._poller.wake(self)

    def close(self) -> None:
        """Close the connection, whatever it waits for."""
        if self._scope is not None:
            self._scope.cancel()
        elif self._parked:
            self._end()

    def stop(self) -> None:
        """Close the connection; a request at work is answered first."""
        self._stopping = True
        if self._parked and self._postponed is None and self._unsent is None:
            self._end()

    def _end(self, error: Exception | None = None) -> None:
        """Close the connection and let go of all it has, for the reason that `error` tells."""
        if isinstance(error, ProtocolError | CloseConnection):
            log.info("closing the connection of %s: %s", self.connection.peer, error)
        elif isinstance(error, OSError):
            log.debug("lost the connection of %s: %s", self.connection.peer, error)
        elif error is not None:
            log.error("closing the connection of %s", self.connection.peer, exc_info=error)
        self._parked = False
        if self._postponed is not None:
            self._postponed[1].end()
        self._poller.forget(self)
        if self._watched:
            self._poller.remove(self)
        self._frames.close()
        self._memory.given_back()
        self.sock.close()
        for call in self.connection.on_close.values():
            call()
        self._ended(self)

    def is_idle(self, rounds: int) -> bool:
        """Whether no request came since this was asked `rounds` times before."""
        self._idle_rounds += 1
        return self._idle_rounds > rounds

    @property
    def is_parked(self) -> bool:
        """Whether the poller is to serve the connection."""
        return self._parked

    def serve_now(self, turns: int = TURNS_IN_A_ROW) -> bool:
        """Serve what has come without waiting, as the poller; whether there may be more to do at once.

        What cannot be done without waiting goes to a task. A connection that is not ready for more is not watched.
        """
        if not self._parked or (self._postponed is not None and self._unsent is None):
            self._watched = False
            self._poller.remove(self)
            return False
        turn: Turn | Wait | Exception
        try:
            unsent = self._unsent
            turn = self._serve(True, False, turns) if unsent is None else self._send_on(unsent)
        except Exception as error:  # noqa: BLE001 - closes the connection, and is logged
            turn = error
        if turn is ANSWERED:
            if self._replies:
                self._poller.send_soon(self)
            return False
        return self._go_on(turn)

    def send_replies(self) -> None:
        """Send the replies that `serve_now` has left to be sent behind those of other connections."""
        if not self._parked:
            return  # it was closed
        try:
            unsent = self._send()
            if unsent is not None:
                self._go_on(self._send_later(unsent))
        except Exception as error:  # noqa: BLE001 - closes the connection, and is logged
            self._end(error)

    def look_again(self) -> bool:
        """Look for the answer that was postponed; whether there may be more to do at once."""
        if not self._parked or self._postponed is None or self._unsent is not None:
            return False
        request, postponed = self._postponed
        turn: Turn | Wait | Exception
        try:
            try:
                response = postponed.look()
            except Exception as error:  # noqa: BLE001 - answered, and logged
                response = top_level_error(request.api, error, request)
            if response is None:
                self._poller.schedule(self, postponed.deadline)
                return False
            self._postponed = None
            unsent = self._reply(request, response) or self._send()
            if unsent is not None:
                turn = self._send_later(unsent)
            elif self._stopping:
                turn = Turn.CLOSED
            else:
                self._watch()
                turn = Turn.MORE if self._frames.pending_bytes else self._answered()
        except Exception as error:  # noqa: BLE001 - closes the connection, and is logged
            turn = error
        return self._go_on(turn)

    def _go_on(self, turn: "Turn | Wait | Exception") -> bool:
        """Do as a turn ended: what has to be awaited is for a task; whether there may be more to do at once."""
        if turn in PARKED:
            return False
        if turn is Turn.MORE:
            return True
        if isinstance(turn, Coroutine):
            self._parked = False
            self._scope = trio.CancelScope()
            self._workers.start(partial(self._run, self._scope, turn))
        else:
            self._end(turn if isinstance(turn, Exception) else None)
        return False

    def _watch(self) -> None:
        if not self._watched:
            self._watched = True
            self._poller.add(self)

    async def _run(self, scope: trio.CancelScope, turn: "Turn | Wait") -> None:
        """Await what has to be awaited, and serve what came behind it, until the connection can be parked again."""
        try:
            with scope:
                while turn not in PARKED:
                    if turn is Turn.MORE:
                        await trio.lowlevel.checkpoint()
                    elif isinstance(turn, Coroutine):
                        await turn
                    if turn is Turn.CLOSED or self._stopping:
                        break
                    turn = Turn.POSTPONED if self._postponed is not None else self._serve(False)
        except Exception as error:  # noqa: BLE001 - closes the connection, and is logged
            self._scope = None
            self._end(error)
        except BaseException:
            self._scope = None
            self._end()
            raise
        else:
            self._scope = None
            if turn in PARKED and not scope.cancel_called:
                self.park()
            else:
                self._end()

    def _serve(self, receive: bool, sends: bool = True, turns: int = TURNS_IN_A_ROW) -> "Turn | Wait":
        """Serve what was received, and then what can be received; without the latter where the poller is to tell.

        Without `sends`, the last replies are left to `send_replies`.

        Raises ProtocolError, CloseConnection and OSError, with the replies sent that were made before.
        """
        frames = self._frames
        try:
            for _ in range(turns):
                if frames.pending_bytes and (request := frames.next_request()) is not None:
                    if (wait := self._answer(request)) is not None:
                        return wait
                    continue
                if not receive:
                    break
                if self._replies and (unsent := self._send()) is not None:
                    return self._send_later(unsent)
                if self._memory.is_limited and self._memory.is_short_for(frames):
                    return self._memory.wait_for(frames)
                buffer = frames.receive_buffer()
                try:
                    size = self.sock.recv_into(buffer)
                except BlockingIOError:
                    break
                if size == 0:
                    return Turn.CLOSED
                frames.received(size)
                # Where there is room left, nothing more is there: the poller would have to be asked anyway.
                receive = size == len(buffer)
            else:
                if receive or sends or frames.pending_bytes:
                    unsent = self._send()
                    return Turn.MORE if unsent is None else self._send_later(unsent)
            if sends and (unsent := self._send()) is not None:
                return self._send_later(unsent)
        except (ProtocolError, CloseConnection):
            self._send()
            raise
        return self._answered()

    def _answered(self) -> Turn:
        self._frames.release()
        if self._memory.waiters:
            self._memory.given_back()
        return ANSWERED

    def _answer(self, request: Request[Any]) -> "Turn | Wait | None":
        """Answer a request; where that has to wait for something, give how, and what is to be awaited."""
        self._idle_rounds = 0
        handler = registered.get(request.api.key)
        if handler is None:
            raise ProtocolError(f"{request.api.name} is not served")
        try:
            answer = handler(self._node, self.connection, request)
        except (CloseConnection, ProtocolError):
            raise
        except Exception as error:  # noqa: BLE001 - answered, and logged
            answer = top_level_error(request.api, error, request)
        if type(answer) is CoroutineType:
            return self._finish(request, answer)
        if isinstance(answer, Postponed):
            return self._postpone(request, answer)
        unsent = self._reply(request, answer)
        return None if unsent is None else self._send_later(unsent)

    def _postpone(self, request: Request[Any], answer: Postponed) -> "Turn | Wait":
        """Wait for an answer without the task, and without a buffer."""
        answer.begin(partial(self._poller.wake, self))
        self._poller.schedule(self, answer.deadline)
        self._postponed = request, answer
        self._answered()
        unsent = self._send()
        return Turn.POSTPONED if unsent is None else self._send_later(unsent)

    def _send_later(self, unsent: Outgoing) -> "Turn | Wait":
        """Send the rest when the socket takes it; one for which a file is to be read from the disk is for the task."""
        if unsent.is_cold:
            return unsent.send_rest()
        self._unsent = unsent
        self._watch()
        self._poller.await_room(self)
        return Turn.SENDING

    def _send_on(self, unsent: Outgoing) -> "Turn | Wait":
        """Send what the socket takes now, and go on serving behind the last of it."""
        done = unsent.send_now()
        if not done and not unsent.is_cold:
            return Turn.SENDING
        self._unsent = None
        self._poller.await_bytes(self)
        if not done:
            return unsent.send_rest()
        if self._stopping:
            return Turn.CLOSED
        if self._postponed is not None:
            # It may have been woken while there was something to be sent first.
            self._poller.wake(self)
            return Turn.POSTPONED
        return self._serve(False)

    async def _finish(self, request: Request[Any], answer: "CoroutineType[Any, Any, Any]") -> None:
        """Await the answer to a request, and send it; first the replies that are ready."""
        if (unsent := self._send()) is not None:
            await unsent.send_rest()
        try:
            response = await answer
        except (CloseConnection, ProtocolError):
            raise
        except Exception as error:  # noqa: BLE001 - answered, and logged
            response = top_level_error(request.api, error, request)
        unsent = self._reply(request, response) or self._send()
        if unsent is not None:
            await unsent.send_rest()

    def _reply(self, request: Request[Any], response: Any) -> Outgoing | None:
        """Take a reply to be sent with the next ones, or send it; what the socket does not take is given back."""
        if response is None:
            return None
        replies = self._replies
        if request.api.key == FETCH:
            replies += self._frames.reply_parts(request, response)
            return self._send()
        replies.append(self._frames.reply(request, response))
        return self._send() if len(replies) >= REPLIES_TOGETHER else None

    def _send(self) -> Outgoing | None:
        """Send the replies that are ready; give what the socket does not take at once."""
        replies = self._replies
        if len(replies) == 1:
            data = replies.pop()
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                sent = 0
            return None if sent == len(data) else Outgoing(self.sock, [data[sent:]])
        if not replies:
            return None
        self._replies = []
        outgoing = Outgoing(self.sock, replies)
        return None if outgoing.send_now() else outgoing


def top_level_error(api: Api, error: Exception, request: Request[Any]) -> Any:
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
