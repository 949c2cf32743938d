"""A client for tests: one blocking socket, one request at a time, any version, and raw bytes where wanted."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from odradek_protocol.connection import ClientConnection
from odradek_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek_protocol.messages.delete_topics import DeleteTopicsRequest
from odradek_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from odradek_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek_protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

TIMEOUT_S = 20.0
"""How long a reply may take: far more than any needs, so that a slow machine fails no test."""


class WireClient:
    """One connection to a broker."""

    def __init__(self, port: int, client_id: str | None = "probe") -> None:
        self.port = port
        self._sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._connection = ClientConnection(client_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()

    def set_timeout(self, timeout_s: float) -> None:
        """How long to wait for what the broker sends; TimeoutError after that."""
        self._sock.settimeout(timeout_s)

    def send(self, body: Any, version: int, *, expect_reply: bool = True) -> None:
        """Send a request without waiting for its reply."""
        self._sock.sendall(self._connection.send(body, version, expect_reply=expect_reply))

    def receive(self) -> Any:
        """The next reply. EOFError when the broker closed the connection."""
        while (reply := self._connection.next_reply()) is None:
            data = self._sock.recv(1 << 20)
            if not data:
                raise EOFError("the broker closed the connection")
            self._connection.receive_data(data)
        return reply

    def call(self, body: Any, version: int) -> Any:
        """Send a request and give its reply."""
        self.send(body, version)
        return self.receive()

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._sock.sendall(data)

    def send_frame(self, data: bytes) -> None:
        """Send bytes with their size before them."""
        self.send_raw(struct.pack(">i", len(data)) + data)

    def receive_frame(self) -> bytes:
        """The next frame as bytes, without its size. EOFError when the connection ends before it does."""
        return self._receive_exactly(struct.unpack(">i", self._receive_exactly(4))[0])

    def _receive_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._sock.recv(size - len(data))
            if not more:
                raise EOFError(f"the broker closed the connection after {len(data)} of {size} bytes")
            data += more
        return data

    def is_closed_by_broker(self) -> bool:
        """Whether the broker closes the connection before it sends anything; waits for either."""
        try:
            return self._sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def reset_when_closed(self) -> None:
        """Let `close` end the connection by a reset, as the death of a machine does."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Make a topic, with settings such as `cleanup_policy="compact"`; give its id."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        reply: CreateTopicsResponse = self.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert reply.topics[0].error_code == 0, reply
        return reply.topics[0].topic_id

    def alter_topic(self, topic: str, name: str, value: str) -> None:
        """Give a topic a setting."""
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
        reply = self.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        assert reply.responses[0].error_code == 0

    def delete_topic(self, name: str) -> None:
        """Delete a topic that is there."""
        reply = self.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
        assert reply.responses[0].error_code == 0, reply

    def produce(
        self,
        topic: str,
        records: bytes | bytearray | None,
        *,
        index: int = 0,
        version: int = 9,
        acks: int = 1,
        topic_id: bytes = bytes(16),
        transactional_id: str | None = None,
    ) -> PartitionProduceResponse:
        """Produce to one partition."""
        request = produce_request(topic, records, index=index, acks=acks, topic_id=topic_id)
        request.transactional_id = transactional_id
        reply = self.call(request, version)
        answer: PartitionProduceResponse = reply.responses[0].partition_responses[0]
        return answer

    def fetch(self, topic: str, offset: int, *, index: int = 0, version: int = 12, **options: Any) -> PartitionData:
        """Fetch from one partition; `options` are fields of the request or of its partition."""
        reply = self.call(fetch_request(topic, [(index, offset)], **options), version)
        answer: PartitionData = reply.responses[0].partitions[0]
        return answer


def produce_request(
    topic: str,
    records: bytes | bytearray | None,
    *,
    index: int = 0,
    acks: int = 1,
    topic_id: bytes = bytes(16),
) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=None if records is None else memoryview(records))
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )


def fetch_request(topic: str, wanted: list[tuple[int, int]], **options: Any) -> FetchRequest:
    """A Fetch of (partition, offset) pairs of one topic; `options` go to the request or to each partition."""
    per_partition = {
        name: options.pop(name)
        for name in ("current_leader_epoch", "last_fetched_epoch", "partition_max_bytes")
        if name in options
    }
    per_partition.setdefault("partition_max_bytes", 1 << 20)
    topic_id = options.pop("topic_id", bytes(16))
    partitions = [FetchPartition(partition=index, fetch_offset=offset, **per_partition) for index, offset in wanted]
    options.setdefault("max_wait_ms", 0)
    options.setdefault("min_bytes", 1)
    return FetchRequest(topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)], **options)
