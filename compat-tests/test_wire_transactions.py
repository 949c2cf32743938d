"""Transactions beside a real Kafka, in both protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared
from wire.records import batch

if TYPE_CHECKING:
    from wire.client import Reply, Wire

TRANSACTIONAL = 0x10
UNREADY = {14, 15, 16}
CONCURRENT_TRANSACTIONS = 51
READ_COMMITTED = 1
TIMEOUT_MS = 60_000


class Producer:
    """A producer of one transactional id, which keeps its id, epoch and next sequence number."""

    def __init__(self, wire: Wire, transactional_id: str) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.identity: dict[str, int] = {"ProducerId": -1, "ProducerEpoch": -1}
        self.sequence = 0

    def initialize(self, version: int = 5, **more: Any) -> Reply:
        """Ask until the coordinator is there and what was open is ended; the last reply is in the transcript."""
        self.wire.until(
            lambda: (
                self.wire.ask("FindCoordinator", 4, KeyType=1, CoordinatorKeys=[self.transactional_id])["Coordinators"][
                    0
                ]["ErrorCode"]
                == 0
            )
        )
        body = {"TransactionalId": self.transactional_id, "TransactionTimeoutMs": TIMEOUT_MS, **more}
        self.wire.until(
            lambda: (
                self.wire.ask("DescribeTransactions", 0, TransactionalIds=[self.transactional_id])["TransactionStates"][
                    0
                ]["ErrorCode"]
                not in UNREADY
            )
        )
        reply: Reply = self.wire.call("InitProducerId", version, **body)
        if reply["ErrorCode"] == 0:
            self.identity = {name: reply[name] for name in ("ProducerId", "ProducerEpoch")}
            self.sequence = 0
        return reply

    def add(self, topic: str, *indexes: int, version: int = 3) -> None:
        self.wire.call(
            "AddPartitionsToTxn",
            version,
            V3AndBelowTransactionalId=self.transactional_id,
            V3AndBelowProducerId=self.identity["ProducerId"],
            V3AndBelowProducerEpoch=self.identity["ProducerEpoch"],
            V3AndBelowTopics=[{"Name": topic, "Partitions": indexes or (0,)}],
        )

    def send(self, topic: str, version: int, index: int = 0) -> None:
        records = batch(
            b"v",
            attributes=TRANSACTIONAL,
            producer_id=self.identity["ProducerId"],
            producer_epoch=self.identity["ProducerEpoch"],
            base_sequence=self.sequence,
        )
        topics = [{"Name": topic, "PartitionData": [{"Index": index, "Records": records}]}]
        reply = self.wire.call(
            "Produce", version, TransactionalId=self.transactional_id, Acks=-1, TimeoutMs=10_000, TopicData=topics
        )
        self.sequence += reply["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0

    def end(self, version: int, *, committed: bool) -> None:
        """End, and wait until it is done; a first answer of "not yet" is not in the transcript."""
        body = {"TransactionalId": self.transactional_id, "Committed": committed, **self.identity}
        reply = self.wire.call("EndTxn", version, **body)
        if reply["ErrorCode"] == 0 and version >= 5:
            self.identity = {name: reply[name] for name in ("ProducerId", "ProducerEpoch")}
            self.sequence = 0
        self.wire.until(lambda: not self.state().startswith("Prepare"))

    def state(self) -> str:
        reply = self.wire.ask("DescribeTransactions", 0, TransactionalIds=[self.transactional_id])
        return str(reply["TransactionStates"][0]["TransactionState"])

    def commit_offset(self, group: str, topic: str, offset: int, version: int, **more: Any) -> None:
        partition = {"PartitionIndex": 0, "CommittedOffset": offset, "CommittedMetadata": "m"}
        topics = [{"Name": topic, "Partitions": [partition]}]
        body = {"TransactionalId": self.transactional_id, "GroupId": group, "Topics": topics, **self.identity, **more}
        self.wire.call("TxnOffsetCommit", version, **body)


def look(wire: Wire, topic: str, transactional_id: str) -> None:
    """What readers, and an administrator, see."""
    partition = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}
    for isolation in (0, READ_COMMITTED):
        topics = [{"Topic": topic, "Partitions": [partition]}]
        wire.call("Fetch", 12, MaxWaitMs=0, MaxBytes=1 << 20, IsolationLevel=isolation, SessionEpoch=-1, Topics=topics)
        wanted = [{"PartitionIndex": 0, "Timestamp": -1}]
        topics = [{"Name": topic, "Partitions": wanted}]
        wire.call("ListOffsets", 5, ReplicaId=-1, IsolationLevel=isolation, Topics=topics)
    wire.call("DescribeTransactions", 0, TransactionalIds=[transactional_id, "unknown", ""])
    wire.call("DescribeProducers", 0, Topics=[{"Name": topic, "PartitionIndexes": [0, 9]}])
    wire.call("ListTransactions", 2, TransactionalIdPattern=transactional_id)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(("produce", "end"), [(11, 4), (12, 5)], ids=["v1", "v2"])
@compared("beside_kafka_4")
def test_t61_t62_a_transaction(wire: Wire, committed: bool, produce: int, end: int) -> None:
    topic = f"txn-{end}-{committed}"
    wire.create_topic(topic, 2)
    producer = Producer(wire, topic)
    producer.initialize()
    for _ in range(2):
        if end < 5:
            producer.add(topic, 0, 1)
        for index in (0, 1):
            producer.sequence = 0 if index else producer.sequence
            producer.send(topic, produce, index)
        look(wire, topic, topic)
        producer.end(end, committed=committed)
        look(wire, topic, topic)
        if end < 5:
            producer.initialize()


@pytest.mark.parametrize("version", [3, 9, 10, 11])
@compared("beside_kafka_4")
def test_t61_a_partition_that_was_not_added(wire: Wire, version: int) -> None:
    topic = f"t61-{version}"
    wire.create_topic(topic)
    producer = Producer(wire, topic)
    producer.initialize()
    producer.send(topic, version)
    look(wire, topic, topic)


@compared("beside_kafka_4")
def test_t62_ends_are_repeated(wire: Wire) -> None:
    wire.create_topic("t62")
    producer = Producer(wire, "t62")
    producer.initialize()
    producer.end(5, committed=True)
    producer.end(5, committed=False)
    producer.send("t62", 12)
    before = producer.identity
    producer.end(5, committed=False)
    for committed in (False, True):
        wire.call("EndTxn", 5, TransactionalId="t62", Committed=committed, **before)
    for epoch in (-1, 5):
        wire.call("EndTxn", 5, TransactionalId="t62", Committed=False, **{**before, "ProducerEpoch": epoch})


@pytest.mark.parametrize("version", range(6))
@compared("beside_kafka_4")
def test_t63_a_replaced_producer(wire: Wire, version: int) -> None:
    topic = f"t63-{version}"
    wire.create_topic(topic)
    old = Producer(wire, topic)
    old.initialize()
    old.add(topic)
    old.send(topic, 11)
    new = Producer(wire, topic)
    assert new.initialize()["ErrorCode"] == CONCURRENT_TRANSACTIONS
    wire.until(lambda: not new.state().startswith("Prepare"))
    new.initialize()
    wire.call("EndTxn", version, TransactionalId=topic, Committed=True, **old.identity)
    old.add(topic, version=min(version, 3))
    wire.call("AddOffsetsToTxn", min(version, 4), TransactionalId=topic, GroupId="g", **old.identity)
    for produce in (9, 11, 12):
        old.send(topic, produce)
    body = {"TransactionalId": topic, "TransactionTimeoutMs": TIMEOUT_MS, **old.identity}
    wire.call("InitProducerId", max(version, 3), **body)
    look(wire, topic, topic)


@compared("beside_kafka_4")
def test_t64_unknown_ids(wire: Wire) -> None:
    wire.create_topic("t64")
    Producer(wire, "t64").initialize()
    for name in ("", "t64"):
        for version in wire.versions("EndTxn"):
            wire.call("EndTxn", version, TransactionalId=name, ProducerId=99, ProducerEpoch=0, Committed=True)
        stranger = Producer(wire, name)
        stranger.add("t64")
        stranger.add("missing")
        wire.call("AddOffsetsToTxn", 4, TransactionalId=name, GroupId="g", ProducerId=99)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [3, 4, 5])
@compared("beside_kafka_4")
def test_t65_offsets_of_a_transaction(wire: Wire, version: int, committed: bool) -> None:
    wire.wait_for_coordinators()
    topic = group = f"t65-{version}-{committed}"
    wire.create_topic(topic)
    producer = Producer(wire, topic)
    producer.initialize()
    if version < 5:
        producer.commit_offset(group, topic, 3, version)
        wire.call("AddOffsetsToTxn", 3, TransactionalId=topic, GroupId=group, **producer.identity)
    producer.commit_offset(group, topic, 3, version)
    producer.commit_offset(group, topic, 4, version, GenerationId=7, MemberId="m")
    producer.commit_offset("", topic, 4, version)
    producer.commit_offset(group, "missing", 4, version)
    asked = [{"GroupId": group, "Topics": [{"Name": topic, "PartitionIndexes": [0, 1]}]}]
    old = [{"Name": topic, "PartitionIndexes": [0, 1]}]
    for stable in (True, False):
        wire.call("OffsetFetch", 8, Groups=asked, RequireStable=stable)
        wire.call("OffsetFetch", 7, GroupId=group, Topics=old, RequireStable=stable)
    producer.end(version if version >= 5 else 3, committed=committed)
    for stable in (True, False):
        wire.call("OffsetFetch", 8, Groups=asked, RequireStable=stable)


@pytest.mark.parametrize("version", range(6))
@compared("beside_kafka_4")
def test_what_is_no_transactional_id(wire: Wire, version: int) -> None:
    Producer(wire, f"init-{version}").initialize(version)
    for timeout_ms in (-1, 0, 900_000, 900_001):
        body = {"TransactionalId": f"init-{version}", "TransactionTimeoutMs": timeout_ms}
        wire.call("InitProducerId", version, **body)


@pytest.mark.parametrize("version", [1, 2])
@compared("beside_kafka_4")
def test_markers_of_an_administrator(wire: Wire, version: int) -> None:
    topic = f"markers-{version}"
    wire.create_topic(topic)
    producer = Producer(wire, topic)
    producer.initialize()
    producer.send(topic, 12)
    topics = [{"Name": topic, "PartitionIndexes": [0]}, {"Name": "missing", "PartitionIndexes": [0]}]
    for protocol, epoch in ((2, 0), (0, 0), (2, 0), (0, 1), (0, 0)):
        marker = {
            "ProducerId": producer.identity["ProducerId"],
            "ProducerEpoch": epoch,
            "TransactionResult": False,
            "Topics": topics,
            "CoordinatorEpoch": 0,
            "TransactionVersion": protocol,
        }
        wire.call("WriteTxnMarkers", version, Markers=[marker])


@compared("beside_kafka_4")
def test_transactions_are_listed_by_filters(wire: Wire) -> None:
    producer = Producer(wire, "listed")
    producer.initialize()
    for version in wire.versions("ListTransactions"):
        for states in ([], ["Empty"], ["Lost"]):
            wire.call("ListTransactions", version, StateFilters=states, ProducerIdFilters=[99])
    for pattern in ("liste.", "list", "(", ""):
        filters = {"TransactionalIdPattern": pattern, "ProducerIdFilters": [producer.identity["ProducerId"]]}
        wire.call("ListTransactions", 2, **filters)


@pytest.mark.parametrize("produce", [9, 11])
@compared("beside_kafka_3")
def test_t61_t62_a_transaction_as_of_kafka_3(wire: Wire, produce: int) -> None:
    topic = f"kafka-3-{produce}"
    wire.create_topic(topic)
    producer = Producer(wire, topic)
    producer.initialize()
    producer.send(topic, produce)
    producer.add(topic)
    producer.send(topic, produce)
    look3(wire, topic)
    producer.end(3, committed=True)
    look3(wire, topic)


def look3(wire: Wire, topic: str) -> None:
    partition = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}
    for isolation in (0, READ_COMMITTED):
        topics = [{"Topic": topic, "Partitions": [partition]}]
        wire.call("Fetch", 12, MaxWaitMs=0, MaxBytes=1 << 20, IsolationLevel=isolation, SessionEpoch=-1, Topics=topics)
    wire.call("DescribeTransactions", 0, TransactionalIds=[topic])
