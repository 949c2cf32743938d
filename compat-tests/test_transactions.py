"""Transactions with unmodified clients: copy loops, readers of committed records, and Kafka's own tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of, python_driver
from harness.java import Tools
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.target import Target

RECORDS = 100
BATCH = 9


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
