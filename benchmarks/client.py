"""One connection to a broker, a request at a time: for what goes before and after a load."""

import socket
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Self

from odradek_protocol.connection import ClientConnection
from odradek_protocol.errors import Error
from odradek_protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest
from odradek_protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TIMEOUT_S = 30.0
RETRY_S = 0.05

TOPIC_CONFIG = {"file.delete.delay.ms": "1000"}
"""A deleted topic leaves the disk at once, so that the runs do not fill it."""

LATEST = -1
TOPIC = 2
GROUP = 32
"""Kinds of resources."""


class Client:
    """A connection. Raises OSError and TimeoutError when the broker does not answer."""

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._connection = ClientConnection("benchmark")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """For a poll."""
        return self._socket.fileno()

    def call(self, body: object, version: int) -> Any:
        """Send a request and give its reply."""
        self.send(body, version)
        return self.receive()

    def send(self, body: object, version: int) -> None:
        """Send a request."""
        self._socket.sendall(self._connection.send(body, version))

    def receive(self) -> Any:
        """The reply to the oldest request that has none yet."""
        while (reply := self._connection.next_reply()) is None:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._connection.receive_data(data)
        return reply

    def metadata(self, topics: Sequence[str] = ()) -> MetadataResponse:
        """The brokers, and these topics."""
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        reply: MetadataResponse = self.call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 9)
        return reply

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make a topic, and wait until each of its partitions has a leader that serves."""
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in {**TOPIC_CONFIG, **settings}.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=configs
        )
        reply = self.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 4)
        _check(f"creating {name}", reply.topics[0].error_code)
        while any(self._end_offset_error(name, partition) for partition in range(partitions)):
            time.sleep(RETRY_S)

    def _end_offset_error(self, topic: str, partition: int) -> int:
        asked = ListOffsetsTopic(
            name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=LATEST)]
        )
        reply = self.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), 5)
        code: int = reply.topics[0].partitions[0].error_code
        return code

    def alter_topic(self, name: str, key: str, value: str) -> None:
        """Give a topic a setting."""
        self._alter(TOPIC, name, key, value)

    def alter_group(self, name: str, key: str, value: str) -> None:
        """Give a group a setting."""
        self._alter(GROUP, name, key, value)

    def _alter(self, kind: int, name: str, key: str, value: str) -> None:
        configs = [AlterableConfig(name=key, config_operation=0, value=value)]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        reply = self.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        _check(f"setting {key} of {name}", reply.responses[0].error_code)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        topics = [DeleteTopicState(name=name, topic_id=bytes(16))]
        reply = self.call(DeleteTopicsRequest(topics=topics, timeout_ms=30_000), 6)
        _check(f"deleting {name}", reply.responses[0].error_code)

    def producer_id(self) -> int:
        """A new id for an idempotent producer; its epoch is 0."""
        while True:
            reply = self.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 1)
            if reply.error_code != Error.COORDINATOR_LOAD_IN_PROGRESS:
                break
            time.sleep(RETRY_S)
        _check("asking for a producer id", reply.error_code)
        producer_id: int = reply.producer_id
        return producer_id


def _check(what: str, error_code: int) -> None:
    if error_code:
        raise RuntimeError(f"{what}: {Error(error_code).name}")
