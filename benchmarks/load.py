"""Loads: many requests over a few connections, with as little CPU of the client's own as can be.

A connection keeps `in_flight` requests on their way. What replies say is looked at where they lie. The records of a
Fetch are received, as every consumer does, and not looked at. A client that has the kernel throw them away (MSG_TRUNC)
is so quick that it sleeps between any two pieces of a reply, and the broker pays for waking it each time; nor does it
ever fill a socket, which is where brokers differ.

Every load ends after `LIMIT_S` seconds at the latest, by TimeoutError.
"""

import itertools
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

from benchmarks.frames import Frame, fetch
from odradek_protocol.errors import Error

LIMIT_S = 60.0
RECEIVE_BYTES = 1 << 20
WAITING_AFTER_S = 0.0005
"""After so long a Fetch that was sent waits in the broker."""

_FRAME_HEAD = 4 + 4
"""Size and correlation id."""
_THROTTLE = _COUNT = _INDEX = 4

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

Check = Callable[[memoryview], None]


def error_at(position: int) -> Check:
    """A look at the error code at `position` of a reply; RuntimeError when it is one."""
    read = _INT16.unpack_from

    def check(reply: memoryview) -> None:
        (code,) = read(reply, position)
        if code:
            raise RuntimeError(f"the broker answers {Error(code).name}")

    return check


def produce_check(topic: str) -> Check:
    """A look at the first partition's error in a reply to Produce v8."""
    return error_at(_FRAME_HEAD + _count_and_name(topic) + _COUNT + _INDEX)


def list_offsets_check(topic: str, partitions: int) -> Check:  # noqa: ARG001 - as for other small requests
    """A look at the first partition's error in a reply to ListOffsets v5."""
    return error_at(_FRAME_HEAD + _THROTTLE + _count_and_name(topic) + _COUNT + _INDEX)


def offset_commit_check(topic: str) -> Check:
    """A look at the first partition's error in a reply to OffsetCommit v7."""
    return error_at(_FRAME_HEAD + _THROTTLE + _count_and_name(topic) + _COUNT + _INDEX)


def heartbeat_check() -> Check:
    """A look at the error in a reply to ConsumerGroupHeartbeat, behind a header with no tagged fields."""
    tags = 1
    return error_at(_FRAME_HEAD + tags + _THROTTLE)


def fetch_check(topic: str) -> Check:
    """A look at the first partition's error in a reply to Fetch v11."""
    error, session = 2, 4
    return error_at(_FRAME_HEAD + _THROTTLE + error + session + _count_and_name(topic) + _COUNT + _INDEX)


def in_turn(checks: Sequence[Check]) -> Check:
    """The first of `checks` for the first reply, and so on, again and again."""
    turns = itertools.cycle(checks)

    def check(reply: memoryview) -> None:
        next(turns)(reply)

    return check


def metadata_check(topic: str, partitions: int) -> Check:
    """A look at the one topic's error in a reply to Metadata v8, found from its end as the brokers stand before it."""
    operations, internal, error, partition = 4 + 4, 1, 2, 34
    return error_at(-(operations + partitions * partition + _COUNT + internal + 2 + len(topic) + error))


def _count_and_name(topic: str) -> int:
    return _COUNT + 2 + len(topic)


def connect(port: int) -> socket.socket:
    """A connection to a broker on this machine."""
    connected = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


class Exchange(Protocol):
    """One connection's part of a load."""

    sock: socket.socket
    done: bool

    def start(self) -> None:
        """Send what may be on its way at first."""

    def readable(self) -> None:
        """Take what has come, and send what may go then."""


def drive(exchanges: Sequence[Exchange]) -> float:
    """Run a load to its end; the seconds it took."""
    poll = select.epoll()
    by_fd = {exchange.sock.fileno(): exchange for exchange in exchanges}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    started = time.perf_counter()
    try:
        for exchange in exchanges:
            exchange.start()
        left = len(exchanges)
        while left:
            ready = poll.poll(LIMIT_S)
            if not ready or time.perf_counter() - started > LIMIT_S:
                raise TimeoutError(f"a load is not done after {LIMIT_S} s")
            for fd, _ in ready:
                exchange = by_fd[fd]
                exchange.readable()
                if exchange.done:
                    poll.unregister(fd)
                    left -= 1
        return time.perf_counter() - started
    finally:
        poll.close()
        for exchange in exchanges:
            exchange.sock.close()


class Requests:
    """Small replies to whatever requests: `frames` in order, `in_flight` of them at a time.

    `latencies_s` gets the time from sending to the reply of each. Sending blocks, which is no deadlock: what a broker
    owes at most, `in_flight` small replies, fits into the socket's buffers.
    """

    def __init__(self, port: int, frames: Iterator[Frame], in_flight: int, check: Check) -> None:
        self.sock = connect(port)
        self.done = False
        self.latencies_s: list[float] = []
        self._frames = frames
        self._in_flight = in_flight
        self._check = check
        self._sent: deque[float] = deque()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._filled = 0

    def start(self) -> None:
        self._fill_up()

    def _fill_up(self) -> None:
        while len(self._sent) < self._in_flight:
            frame = next(self._frames, None)
            if frame is None:
                self.done = not self._sent
                return
            self._sent.append(time.perf_counter())
            self.sock.sendall(frame)

    def readable(self) -> None:
        view = memoryview(self._buffer)
        size = self.sock.recv_into(view[self._filled :])
        if not size:
            raise ConnectionError("the broker closed the connection")
        now = time.perf_counter()
        end = self._filled + size
        position = 0
        while end - position >= 4:
            stop = position + 4 + _INT32.unpack_from(view, position)[0]
            if stop > end:
                break
            self._check(view[position:stop])
            self.latencies_s.append(now - self._sent.popleft())
            position = stop
        self._filled = end - position
        if position:
            view[: self._filled] = view[position:end]
        self._fill_up()


PARTITION_HEAD = struct.Struct(">ihqqqiii")
"""Index, error, high watermark, last stable offset, log start, aborted transactions, preferred replica, bytes."""


class Consumer:
    """One consumer that reads a topic, whose batches are all alike, `passes` times to its end: one Fetch at a time.

    `batch_bytes` and `batch_records` say what a batch is, so that the next offset follows from the size of a reply;
    `end_offset` is that of each of the `partitions`.
    """

    def __init__(
        self,
        port: int,
        topic: str,
        partitions: int,
        end_offset: int,
        *,
        batch_bytes: int,
        batch_records: int,
        passes: int,
    ) -> None:
        self.sock = connect(port)
        self.done = False
        self._topic = topic
        self._partitions = partitions
        self._end_offset = end_offset
        self._batch_bytes = batch_bytes
        self._batch_records = batch_records
        self._passes = passes
        self._scratch = memoryview(bytearray(RECEIVE_BYTES))
        self._head = bytearray()
        self._parser = self._replies()

    def start(self) -> None:
        self._wanted = next(self._parser)

    def _replies(self) -> Generator[int, bytearray, None]:
        """What to read next: so many bytes to look at, or (negative) to receive only."""
        error, session = 2, 4
        reply_head = _FRAME_HEAD + _THROTTLE + error + session + _count_and_name(self._topic) + _COUNT
        partitions = self._partitions
        check = error_at(_FRAME_HEAD + _THROTTLE)
        for _ in range(self._passes):
            offsets = [0] * partitions
            while min(offsets) < self._end_offset:
                self.sock.sendall(fetch(self._topic, offsets))
                check(memoryview((yield reply_head)))
                for _ in range(partitions):
                    index, code, _, _, _, _, _, size = PARTITION_HEAD.unpack((yield PARTITION_HEAD.size))
                    if code:
                        raise RuntimeError(f"the broker answers {Error(code).name}")
                    if size:
                        yield -size
                    offsets[index] += size // self._batch_bytes * self._batch_records
        self.done = True

    def readable(self) -> None:
        while True:
            wanted = self._wanted
            try:
                if wanted < 0:
                    room = self._scratch[: min(-wanted, RECEIVE_BYTES)]
                    size = self.sock.recv_into(room, 0, socket.MSG_DONTWAIT)
                else:
                    data = self.sock.recv(wanted - len(self._head), socket.MSG_DONTWAIT)
                    size = len(data)
                    self._head += data
            except BlockingIOError:
                return
            if not size:
                raise ConnectionError("the broker closed the connection")
            if wanted < 0:
                self._wanted += size
                if self._wanted:
                    continue
            elif len(self._head) < wanted:
                continue
            head, self._head = self._head, bytearray()
            try:
                self._wanted = self._parser.send(head)
            except StopIteration:
                return


def end_to_end(port: int, topic: str, frame: Frame, messages: int) -> list[float]:
    """Seconds from sending a message to having received it on another connection, which waits for it; one at a time."""
    producer, consumer = connect(port), connect(port)
    buffer = bytearray(RECEIVE_BYTES)
    check = produce_check(topic)
    latencies = []
    with producer, consumer:
        for offset in range(messages):
            consumer.sendall(fetch(topic, [offset]))
            time.sleep(WAITING_AFTER_S)
            started = time.perf_counter()
            producer.sendall(frame)
            _receive(consumer, buffer)
            latencies.append(time.perf_counter() - started)
            check(_receive(producer, buffer))
    return latencies


def paced(port: int, frames: Iterator[Frame], per_s: float, check: Check) -> list[float]:
    """One request at a time at this rate, or as fast as the replies come if that is slower; the seconds of each."""
    latencies = []
    buffer = bytearray(RECEIVE_BYTES)
    with connect(port) as sock:
        due = time.perf_counter()
        for frame in frames:
            time.sleep(max(due - time.perf_counter(), 0))
            due += 1 / per_s
            sent = time.perf_counter()
            sock.sendall(frame)
            check(_receive(sock, buffer))
            latencies.append(time.perf_counter() - sent)
    return latencies


def _receive(sock: socket.socket, buffer: bytearray) -> memoryview:
    """One whole reply."""
    view = memoryview(buffer)
    filled = 0
    while filled < 4 or filled < _INT32.unpack_from(buffer)[0] + 4:
        size = sock.recv_into(view[filled:])
        if not size:
            raise ConnectionError("the broker closed the connection")
        filled += size
    return view[:filled]
