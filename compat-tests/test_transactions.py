"""Transactions with unmodified clients: copy loops, readers of committed records, and Kafka's own tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of, python_driver
from harness.java import Tools
from harness.versions import KAFKA_3, KAFKA_4
from wire.client import Wire
from wire.records import batch
from wire.schemas import apis

from odradek.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.target import Target

RECORDS = 100
BATCH = 9
TRANSACTIONAL = 0x10


@pytest.fixture(scope="module", params=[KAFKA_4, KAFKA_3])
def tools(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    launched = Tools(request.param, target.bootstrap, tmp_path_factory.mktemp("tools"))
    try:
        yield launched
    finally:
        launched.close()


@pytest.mark.parametrize(
    ("environment", "library"), [("confluent-kafka", "confluent-kafka"), ("kafka-python-3", "kafka-python")]
)
def test_a_copy_loop_copies_exactly_once(
    target: Target, tmp_path: Path, name: str, environment: str, library: str
) -> None:
    """Consume, transform and produce in transactions, a third of which are aborted."""
    copy = f"{name}-copy"
    with client_of(python_driver(environment, library), target, tmp_path) as client:
        for topic in (name, copy):
            client.call("create_topic", topic=topic, partitions=1)
        values = [f"{number}" for number in range(RECORDS)]
        client.call("produce", topic=name, records=[{"partition": 0, "value": value} for value in values])
        copied = client.call("copy_in_transactions", 120, source=name, copy=copy, group=name, batch=BATCH)
        assert copied >= RECORDS // BATCH
        assert client.call("committed", group=name, topic=name, partition=0) == RECORDS
        client.call("open_consumer", name="reader", partitions=[[copy, 0]], isolation="read_committed")
        read = client.call("poll", names=["reader"], count=RECORDS)["reader"]
        assert [record["value"] for record in read] == values


def produce_in_transactions(tools: Tools, name: str, records: int) -> None:
    """Let the Java producer write `records`, in transactions as short as the tool makes them."""
    tools.run_on_broker("topics", "--create", "--topic", name, "--partitions", "2")
    size = ["--num-records", str(records), "--record-size", "100", "--throughput", "2000"]
    transactions = ["--transactional-id", name, "--transaction-duration-ms", "20"]
    properties = ["--producer-props", f"bootstrap.servers={tools.bootstrap}"]
    produced = tools.run("producer-perf-test", "--topic", name, *size, *transactions, *properties)
    assert produced.status == 0, produced


def test_the_java_producer_and_consumer(tools: Tools, name: str) -> None:
    produce_in_transactions(tools, name, 2000)
    for isolation in ("read_committed", "read_uncommitted"):
        read = tools.run_on_broker(
            *("console-consumer", "--topic", name, "--from-beginning", "--max-messages", "2000"),
            *("--isolation-level", isolation, "--timeout-ms", "20000"),
        )
        assert "Processed a total of 2000 messages" in read.err


def test_the_transactions_tool_describes(tools: Tools, name: str) -> None:
    produce_in_transactions(tools, name, 100)
    listed = tools.run_on_broker("transactions", "list")
    assert name in listed.out, listed
    [row] = [line.split() for line in listed.lines if line.split() and line.split()[0] == name]
    assert row[3] == "CompleteCommit"
    described = tools.run_on_broker("transactions", "describe", "--transactional-id", name)
    assert "CompleteCommit" in described.out
    producers = tools.run_on_broker("transactions", "describe-producers", "--topic", name, "--partition", "0")
    states = [line.split() for line in producers.lines if line.split() and line.split()[0] == row[2]]
    assert [state[-1] for state in states] == ["None"] * len(states)


def test_the_transactions_tool_ends_a_hanging_one(tools: Tools, target: Target, tmp_path: Path, name: str) -> None:
    with client_of(python_driver("confluent-kafka", "confluent-kafka"), target, tmp_path) as client:
        client.call("create_topic", topic=name, partitions=1)
        client.call("leave_open", topic=name, transactional_id=name)
        producers = tools.run_on_broker("transactions", "describe-producers", "--topic", name, "--partition", "0")
        [open_since] = [line.split()[-1] for line in producers.lines if re.match(r"^\d", line)]
        assert open_since == "0"
        where = ["--topic", name, "--partition", "0", "--start-offset", open_since]
        tools.run_on_broker("transactions", "abort", *where)
        producers = tools.run_on_broker("transactions", "describe-producers", "--topic", name, "--partition", "0")
        assert [line.split()[-1] for line in producers.lines if re.match(r"^\d", line)] == ["None"]


@pytest.mark.parametrize("release", [KAFKA_4, KAFKA_3])
def test_the_transactions_tool_finds_a_hanging_one(release: str, tmp_path: Path) -> None:
    """Where partitions are not verified, a producer can write behind the end of its transaction."""
    overrides = {"transaction.partition.verification.enable": "false"}
    with Broker(overrides) as broker, Wire(broker.bootstrap_servers, apis(KAFKA_4)) as wire:
        wire.create_topic("hanging")
        producer: dict[str, int] = {}
        wire.until(lambda: initialize(wire, "hangs", producer))
        records = batch(b"v", attributes=TRANSACTIONAL, base_sequence=0, **producer)
        topics = [{"Name": "hanging", "PartitionData": [{"Index": 0, "Records": records}]}]
        produced = wire.ask("Produce", 9, TransactionalId="hangs", Acks=-1, TimeoutMs=10_000, TopicData=topics)
        assert produced["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0
        tools = Tools(release, broker.bootstrap_servers, tmp_path)
        try:
            where = [str(producer["producer_id"]), str(producer["producer_epoch"]), "-1", "0"]
            assert [row[:6] for row in find_hanging(tools)] == [["hanging", "0", *where]]
            tools.run_on_broker(
                "transactions", "abort", "--topic", "hanging", "--partition", "0", "--start-offset", "0"
            )
            assert find_hanging(tools) == []
        finally:
            tools.close()


def initialize(wire: Wire, transactional_id: str, producer: dict[str, int]) -> bool:
    """Ask for the id and the epoch of a producer; tell whether there is a coordinator that gives them."""
    wire.ask("FindCoordinator", 4, KeyType=1, CoordinatorKeys=[transactional_id])
    reply = wire.ask("InitProducerId", 4, TransactionalId=transactional_id, TransactionTimeoutMs=60_000)
    producer.update(producer_id=reply["ProducerId"], producer_epoch=reply["ProducerEpoch"])
    return bool(reply["ErrorCode"] == 0)


def find_hanging(tools: Tools) -> list[list[str]]:
    """Return the tool's rows: topic, partition, producer, its epoch, the coordinator's, where the transaction began."""
    found = tools.run_on_broker("transactions", "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
    return [line.split() for line in found.lines if line.startswith("hanging")]


def test_transaction_states_on_disk(tools: Tools, target: Target, name: str) -> None:
    """`DumpLogSegments` decodes `__transaction_state`."""
    transactional_id = f"{name}-states"
    produce_in_transactions(tools, transactional_id, 100)
    logs = [log for folder in target.log_folder().glob("__transaction_state-*") for log in folder.glob("*.log")]
    [log] = [log for log in logs if transactional_id.encode() in log.read_bytes()]
    dumped = tools.run("dump-log", "--transaction-log-decoder", "--files", log)
    assert dumped.status == 0, dumped
    assert transactional_id in dumped.out
    # Kafka 4 shows the record's fields, Kafka 3 what they mean.
    states = set(re.findall(r'"transactionStatus":(\d)', dumped.out) or re.findall(r"state=(\w+)", dumped.out))
    # Other tests' transactions, which may have aborted, can lie in the same log.
    assert states >= {"0", "1", "2", "4"} or states >= {"Empty", "Ongoing", "PrepareCommit", "CompleteCommit"}


def test_the_features_tool_describes(tools: Tools) -> None:
    described = tools.run_on_broker("features", "describe")
    assert re.search(r"Feature: transaction\.version\s.*FinalizedVersionLevel: 2", described.out)
