"""What `kafka-share-groups` and the console share consumer of Kafka 4 tell of a share group, and do with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.java import GroupTool, Tools
from harness.java_clients import share_driver
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

FEATURE = "share groups: tools"


@pytest.fixture(scope="module", params=[f"java-tools-{KAFKA_4}"])
def tools(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    launched = Tools(request.param.removeprefix("java-tools-"), target.bootstrap, tmp_path_factory.mktemp("tools"))
    try:
        yield launched
    finally:
        launched.close()


@pytest.fixture(scope="module")
def client(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(share_driver(f"java-{KAFKA_4}"), target, tmp_path_factory.mktemp("member")) as agent:
        yield agent


@pytest.mark.feature(FEATURE)
def test_a_group_with_a_member_and_without(tools: Tools, client: Agent, name: str) -> None:
    client.call("create_topic", topic=name, partitions=2)
    client.call("alter_group_config", group=name, configs={"share.auto.offset.reset": "earliest"})
    client.call("produce", topic=name, records=[{"partition": n % 2, "value": "v"} for n in range(20)])
    client.call("open_share", name="member", group=name, topics=[name], explicit=True)
    client.call("share_poll", names=["member"], count=20, type="ACCEPT")
    client.call("share_commit", name="member")

    group = GroupTool(tools, "share-groups", name)
    assert group.list() == [[name]]
    assert group.list("--state", "stable") == [[name, "Stable"]]
    assert group.list("--state", "empty") == []
    [member] = group.describe("--members")
    assert member[-1] == f"{name}:0,1"
    [state] = group.describe("--state")
    assert state[-2:] == ["Stable", "1"]
    assert [[*columns[1:3], columns[-1]] for columns in group.describe()] == [
        [name, f"{index}", "0"] for index in (0, 1)
    ]
    topic = ["--topic", name]
    reset = ["--reset-offsets", *topic, "--to-earliest", "--execute"]
    for what in (["--delete"], ["--delete-offsets", *topic], reset):
        assert "not empty" in group.change(*what).lower()

    client.call("close_share", name="member")
    assert group.list("--state", "empty") == [[name, "Empty"]]
    group.change(*reset)
    assert [columns[3:] for columns in group.describe("--offsets")] == [["0", "10"]] * 2
    group.change("--reset-offsets", "--topic", f"{name}:1", "--to-latest", "--execute")
    assert [columns[3:] for columns in group.describe("--offsets")] == [["0", "10"], ["10", "0"]]
    group.change("--delete-offsets", *topic)
    assert group.describe("--offsets") == []
    group.change("--delete")
    assert group.list() == []


@pytest.mark.feature(FEATURE)
def test_the_console_share_consumer(tools: Tools, client: Agent, name: str) -> None:
    client.call("create_topic", topic=name)
    client.call("alter_group_config", group=name, configs={"share.auto.offset.reset": "earliest"})
    client.call("produce", topic=name, records=[{"value": f"value {number}"} for number in range(10)])
    what = ["--topic", name, "--group", name, "--max-messages", "10", "--print-property", "print.delivery=true"]
    options = [each.replace("--print-property", "--property") for each in what]
    read = tools.run_on_broker("console-share-consumer", *options)
    assert [line for line in read.lines if "value" in line] == [f"Delivery:1\tvalue {number}" for number in range(10)]
