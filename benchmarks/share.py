"""The row of share groups (KIP-932): consumers that share the partitions of a topic, and accept what they get."""

import itertools
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import frames
from benchmarks.brokers import Broker
from benchmarks.client import Client
from benchmarks.load import connect, drive
from benchmarks.rows import Figures, RowAtOnce, cost_of, fill, temporary_topic
from odradek_protocol.connection import ClientConnection
from odradek_protocol.errors import Error
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.share_fetch import (
    AcknowledgementBatch,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from odradek_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

__all__ = ["ShareReads"]

RETRY_S = 0.01
SETTLE_S = 30.0
NOT_YET = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR})

HEARTBEAT_VERSION = 1
FETCH_VERSION = 2

RECORDS_AT_ONCE = 500
"""The Java consumer's `max.poll.records`."""
MAX_BYTES = 50 * 1024 * 1024
MAX_WAIT_MS = 50
"""Short, so that consumers that find nothing at the end soon see that others have had the last records."""

ACCEPT = 1
FINAL_EPOCH = -1
RECEIVE_BYTES = 1 << 18

_numbers = itertools.count(1)


@dataclass(frozen=True)
class ShareReads(RowAtOnce):
    """Consumers of a share group that read a topic to its end, and accept every record with their next request."""

    batches: int
    batch_bytes: int
    record_bytes: int
    partitions: int = 4
    consumers: int = 4

    def run(self, broker: Broker, share: float) -> Figures:
        batches = max(int(self.batches * share) // self.partitions, 1)
        count = frames.records_in(self.batch_bytes, self.record_bytes)
        batch = frames.make_batch(count, self.record_bytes)
        records = batches * self.partitions * count
        with temporary_topic(broker, self.partitions) as topic, Client(broker.port) as client:
            fill(broker, topic, [batch], self.partitions, batches)
            group = f"benchmark-share-{next(_numbers):06}"
            client.alter_group(group, "share.auto.offset.reset", "earliest")
            member_ids = [str(uuid.uuid4()) for _ in range(self.consumers)]
            topic_id = _settle(client, group, member_ids, topic, self.partitions)
            left = _Left(records)
            consumers = [
                _Consumer(broker.port, group, member_id, topic_id, self.partitions, left) for member_id in member_ids
            ]
            cpu_s = broker.cpu_s()
            seconds = drive(consumers)
            cpu_s = broker.cpu_s() - cpu_s
        return cost_of("record", records, seconds, cpu_s)


def _settle(client: Client, group: str, member_ids: Sequence[str], topic: str, partitions: int) -> bytes:
    """Have members join until every partition is somebody's; the topic's id."""
    find = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
    while client.call(find, 4).coordinators[0].error_code in NOT_YET:
        time.sleep(RETRY_S)
    epochs = dict.fromkeys(member_ids, 0)
    assigned: dict[str, Any] = {}
    deadline = time.monotonic() + SETTLE_S
    while True:
        for member_id, epoch in epochs.items():
            request = ShareGroupHeartbeatRequest(
                group_id=group,
                member_id=member_id,
                member_epoch=epoch,
                subscribed_topic_names=[topic] if epoch == 0 else None,
            )
            reply = client.call(request, HEARTBEAT_VERSION)
            if reply.error_code in NOT_YET:
                continue
            _check("a heartbeat", reply.error_code)
            epochs[member_id] = reply.member_epoch
            if reply.assignment is not None:
                assigned[member_id] = reply.assignment.topic_partitions
        told = [topics for topics in assigned.values() if topics]
        found = {index for topics in told for index in topics[0].partitions}
        if len(told) == len(member_ids) and len(found) == partitions:
            topic_id: bytes = told[0][0].topic_id
            return topic_id
        if time.monotonic() > deadline:
            raise TimeoutError(f"the share group {group} does not settle")
        time.sleep(RETRY_S)


class _Left:
    """How many records nobody has had yet."""

    def __init__(self, records: int) -> None:
        self.records = records


class _Consumer:
    """One consumer, as `drive` runs it. It ends its session when there is nothing left, with its last acceptances."""

    def __init__(self, port: int, group: str, member_id: str, topic_id: bytes, partitions: int, left: _Left) -> None:
        self.sock = connect(port)
        self.done = False
        self._connection = ClientConnection("benchmark")
        self._group = group
        self._member_id = member_id
        self._topic_id = topic_id
        self._partitions = partitions
        self._left = left
        self._epoch = 0
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))

    def start(self) -> None:
        self._send({index: [] for index in range(self._partitions)})

    def _send(self, accepted: dict[int, list[AcknowledgementBatch]]) -> None:
        ends = self._epoch == FINAL_EPOCH
        partitions = [
            ShareFetchPartition(partition_index=index, acknowledgement_batches=batches)
            for index, batches in accepted.items()
        ]
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=0 if ends else MAX_WAIT_MS,
            min_bytes=0 if ends else 1,
            max_bytes=0 if ends else MAX_BYTES,
            max_records=0 if ends else RECORDS_AT_ONCE,
            batch_size=0 if ends else RECORDS_AT_ONCE,
            topics=[ShareFetchTopic(topic_id=self._topic_id, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[],
        )
        self.sock.sendall(self._connection.send(request, FETCH_VERSION))

    def readable(self) -> None:
        size = self.sock.recv_into(self._buffer)
        if not size:
            raise ConnectionError("the broker closed the connection")
        self._connection.receive_data(bytes(self._buffer[:size]))
        reply = self._connection.next_reply()
        if reply is None:
            return
        accepted = self._accept(reply)
        if self._epoch == FINAL_EPOCH:
            self.done = True
            return
        self._epoch = self._epoch + 1 if self._left.records else FINAL_EPOCH
        self._send(accepted)

    def _accept(self, reply: ShareFetchResponse) -> dict[int, list[AcknowledgementBatch]]:
        """The acceptances of all records in a reply, by partition."""
        _check("a share fetch", reply.error_code)
        accepted: dict[int, list[AcknowledgementBatch]] = {}
        for topic in reply.responses:
            for data in topic.partitions:
                _check("acquiring", data.error_code)
                _check("accepting", data.acknowledge_error_code)
                for one in data.acquired_records:
                    self._left.records -= one.last_offset - one.first_offset + 1
                    batch = AcknowledgementBatch(
                        first_offset=one.first_offset, last_offset=one.last_offset, acknowledge_types=[ACCEPT]
                    )
                    accepted.setdefault(data.partition_index, []).append(batch)
        return accepted


def _check(what: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{what}: {Error(code).name}")
