"""Clients that work in threads of their own until they are stopped or their broker dies, and go on at the next one."""

import contextlib
import threading
from abc import ABC, abstractmethod

from odradek_protocol.records.compression import Codec
from support.batches import batch
from support.wire import WireClient, produce_request

__all__ = ["Producer", "Worker"]


class Worker(ABC):
    """One client. `steps` counts what it has done; what goes wrong is raised by `wait` and `stop`.

    The end of its connection is not wrong: the broker died. A reply that does not come in time is.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.failure: BaseException | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, port: int) -> None:
        """Work with the broker at this port."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, args=(port,))
        self._thread.start()

    def stop(self) -> None:
        """End the work, and wait for that. Raises what went wrong."""
        self._stopping = True
        self.wait()

    def wait(self) -> None:
        """Wait for the end of the work. Raises what went wrong."""
        if self._thread is not None:
            self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, port: int) -> None:
        try:
            with contextlib.suppress(ConnectionError, EOFError), WireClient(port) as client:
                self.begin(client)
                while not self._stopping:
                    self.step(client)
                    self.steps += 1
                self.end(client)
        except BaseException as error:  # noqa: BLE001 - raised again by `wait`
            self.failure = error

    def begin(self, client: WireClient) -> None:  # noqa: B027 - most begin with nothing
        """What a new connection begins with."""

    @abstractmethod
    def step(self, client: WireClient) -> None:
        """A piece of work."""

    def end(self, client: WireClient) -> None:  # noqa: B027 - most end with nothing
        """What a connection ends with, unless its broker dies."""


class Producer(Worker):
    """An idempotent producer with retries: one partition, and several requests of `batch_size` records under way.

    Where a connection ends, everything without a reply is sent again in order on the next one.
    """

    IN_FLIGHT = 5
    """Requests of one producer that a broker remembers, and that may therefore be under way."""

    def __init__(
        self,
        topic: str,
        index: int,
        *,
        acks: int = -1,
        codec: Codec = Codec.NONE,
        batch_size: int = 3,
        padding: bytes = b"",
    ) -> None:
        super().__init__()
        self.topic = topic
        self.index = index
        self.acks = acks
        self.codec = codec
        self.batch_size = batch_size
        self.sent = self.acknowledged = 0
        self._following = 0
        self._padding = padding

    @property
    def acknowledged_records(self) -> int:
        return self.acknowledged * self.batch_size

    def value(self, offset: int) -> bytes:
        """What the record at this offset holds."""
        return b"%d-%d" % (self.index, offset) + self._padding

    def begin(self, client: WireClient) -> None:  # noqa: ARG002 - as the base class has it
        self._following = self.acknowledged

    def step(self, client: WireClient) -> None:
        while self._following - self.acknowledged < self.IN_FLIGHT:
            self._send(client)
        self._take_reply(client)

    def end(self, client: WireClient) -> None:
        while self._following < self.sent:
            self._send(client)
        while self.acknowledged < self.sent:
            self._take_reply(client)

    def _send(self, client: WireClient) -> None:
        first = self._following * self.batch_size
        values = [self.value(offset) for offset in range(first, first + self.batch_size)]
        self._following += 1
        self.sent = max(self.sent, self._following)
        data = batch(*values, producer=(self.index, 0, first), codec=self.codec)
        client.send(produce_request(self.topic, data, index=self.index, acks=self.acks), 9)

    def _take_reply(self, client: WireClient) -> None:
        reply = client.receive().responses[0].partition_responses[0]
        assert (reply.error_code, reply.base_offset) == (0, self.acknowledged_records)
        self.acknowledged += 1
