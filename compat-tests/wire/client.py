"""One conversation with one broker, whose replies are kept for comparison."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, Any, Self

from wire import codec
from wire.records import batch
from wire.requests import shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wire.schemas import Api

CLOSED = "the broker closed the connection"
CLIENT_ID = "probe"

Reply = dict[str, Any]
Exchange = tuple[str, Any]

_REPLY_TIMEOUT_S = 15
_READY_TIMEOUT_S = 20
_READY_PAUSE_S = 0.02
_RESPONSE_HEADER_IS_ALWAYS_V0 = 18  # ApiVersions
_UNREADY = {14, 15, 16}  # what is said of a group whose coordinator is being made
_ENOUGH_GROUPS = 400  # that one falls into each of the 50 partitions


class Wire:
    """A connection to a broker, with a transcript of the replies.

    `call` sends a request by Kafka's names and returns its reply; both `call` and `receive` enter the reply in the
    transcript, `ask` does not. A broker that closes the connection is written down as such and connected to again.
    """

    def __init__(self, bootstrap: str, apis: Mapping[str, Api], transcript: list[Exchange] | None = None) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._bootstrap = bootstrap
        self._apis = apis
        self._sock = self._connect()
        self._others: list[Wire] = []
        self._correlation_id = 0
        self.transcript: list[Exchange] = [] if transcript is None else transcript

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()
        for other in self._others:
            other.__exit__()

    def versions(self, api: str) -> range:
        """Return the versions of an API that the release of Kafka serves."""
        return self._apis[api].versions

    def shapes(self, api: str, version: int) -> dict[str, dict[str, Any]]:
        """Return requests made from the definition alone, by what they are."""
        return shapes(self._apis[api], version)

    def other_connection(self) -> Wire:
        """Connect once more; both connections write to one transcript."""
        other = Wire(self._bootstrap, self._apis, self.transcript)
        self._others.append(other)
        return other

    def call(self, api: str, version: int, /, **body: Any) -> Any:
        """Send a request and return its reply, or None when the broker closed the connection instead."""
        self.send(api, version, **body)
        return self.receive(api, version)

    def ask(self, api: str, version: int, /, **body: Any) -> Any:
        """Call without a line in the transcript."""
        length = len(self.transcript)
        reply = self.call(api, version, **body)
        del self.transcript[length:]
        return reply

    def send(self, api: str, version: int, /, **body: Any) -> None:
        """Send a request without waiting for its reply."""
        self.send_frame(self.frame(api, version, **body))

    def receive(self, api: str, version: int) -> Any:
        """Wait for the next reply, which is to a request of this API and version."""
        frame = self.receive_frame()
        reply = None if frame is None else self._decode(api, version, frame)
        self.note(f"{api} v{version}", CLOSED if reply is None else reply)
        return reply

    def note(self, what: str, value: Any) -> None:
        """Enter something else that both brokers must have in common in the transcript."""
        self.transcript.append((what, value))

    def frame(self, api: str, version: int, /, client_id: str | None = CLIENT_ID, **body: Any) -> bytes:
        """Write a request: header and body."""
        served = self._apis[api]
        flexible = version in served.flexible
        self._correlation_id += 1
        return self.header(served.key, version, client_id, flexible=flexible) + codec.encode(
            served.request, version, flexible=flexible, body=body
        )

    def header(self, key: int, version: int, client_id: str | None = CLIENT_ID, *, flexible: bool) -> bytes:
        """Write a request header of version 1, or 2 for a flexible version."""
        name = b"" if client_id is None else client_id.encode()
        length = -1 if client_id is None else len(name)
        return struct.pack(">hhih", key, version, self._correlation_id, length) + name + b"\0" * flexible

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their size before them."""
        self.send_raw(struct.pack(">i", len(frame)) + frame)

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._sock.sendall(data)

    def receive_frame(self) -> bytes | None:
        """Wait for the next frame; None when the broker closed the connection, after which there is a new one."""
        try:
            [size] = struct.unpack(">i", self._receive_exactly(4))
            return self._receive_exactly(size)
        except (EOFError, ConnectionResetError):
            self._sock.close()
            self._sock = self._connect()
            return None

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic, wait until it is served, and return its id; none of it is in the transcript."""
        topic = {
            "Name": name,
            "NumPartitions": partitions,
            "ReplicationFactor": 1,
            "Configs": [{"Name": key.replace("_", "."), "Value": value} for key, value in configs.items()],
        }
        [made] = self.ask("CreateTopics", self.versions("CreateTopics")[-1], Topics=[topic], timeoutMs=10_000)["Topics"]
        assert made["ErrorCode"] == 0, made
        self.wait_for_topic(name, partitions)
        return bytes(made["TopicId"])

    def wait_for_topic(self, name: str, partitions: int) -> None:
        """Return when each of the first `partitions` partitions answers as a leader."""
        wanted = [{"PartitionIndex": index, "Timestamp": -1} for index in range(partitions)]
        self.until(
            lambda: all(
                partition["ErrorCode"] == 0
                for topic in self.ask("ListOffsets", 1, ReplicaId=-1, Topics=[{"Name": name, "Partitions": wanted}])[
                    "Topics"
                ]
                for partition in topic["Partitions"]
            )
        )

    def wait_for_coordinators(self) -> None:
        """Return when every partition of __consumer_offsets is loaded and producer ids are given out."""
        groups = [f"group {number}" for number in range(_ENOUGH_GROUPS)]
        self.until(lambda: self.ask("FindCoordinator", 0, Key="group")["ErrorCode"] == 0)
        self.until(
            lambda: (
                not any(
                    group["ErrorCode"] in _UNREADY for group in self.ask("DescribeGroups", 0, Groups=groups)["Groups"]
                )
            )
        )
        self.until(lambda: self.ask("InitProducerId", 0, TransactionalId=None)["ErrorCode"] == 0)

    def produce(self, topic: str, records: bytes | None, index: int = 0, version: int = 9, acks: int = -1) -> Any:
        """Produce to one partition; the reply is in the transcript."""
        partition = {"Index": index, "Records": records}
        topics = [{"Name": topic, "PartitionData": [partition]}]
        return self.call("Produce", version, Acks=acks, TimeoutMs=10_000, TopicData=topics)

    def fill(self, topic: str, *counts: int, index: int = 0) -> None:
        """Produce a batch of so many records for each count."""
        for count in counts:
            self.produce(topic, batch(*[b"v"] * count), index)

    def until(self, holds: Callable[[], bool]) -> None:
        """Ask again until the condition holds. TimeoutError when it does not in time."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {_READY_TIMEOUT_S} s; last: {self.transcript[-1:]}")
            time.sleep(_READY_PAUSE_S)

    def _connect(self) -> socket.socket:
        return socket.create_connection(self._address, _REPLY_TIMEOUT_S)

    def _decode(self, api: str, version: int, frame: bytes) -> Reply:
        served = self._apis[api]
        flexible = version in served.flexible
        header = 5 if flexible and served.key != _RESPONSE_HEADER_IS_ALWAYS_V0 else 4
        return codec.decode(served.response, version, flexible=flexible, data=frame[header:])

    def _receive_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._sock.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data
