"""What `kafka-consumer-groups` of Kafka 4 tells of a consumer group of KIP-848, and does with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.consumer_protocol import FEATURE
from harness.java import GroupTool, Tools
from harness.java_clients import java_driver
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module", params=[f"java-tools-{KAFKA_4}"])
def tools(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    launched = Tools(request.param.removeprefix("java-tools-"), target.bootstrap, tmp_path_factory.mktemp("tools"))
    try:
        yield launched
    finally:
        launched.close()


@pytest.fixture(scope="module")
def client(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(java_driver(f"java-{KAFKA_4}"), target, tmp_path_factory.mktemp("member")) as agent:
        yield agent


@pytest.mark.feature(FEATURE)
def test_a_group_with_a_member_and_without(tools: Tools, client: Agent, name: str) -> None:
    client.call("create_topic", topic=name, partitions=2)
    client.call("produce", topic=name, records=[{"partition": n % 2, "value": "v"} for n in range(20)])
    client.call("open_consumer", name="member", topics=[name], group=name, protocol="consumer")
    client.call("poll", names=["member"], count=20)
    client.call("commit", name="member")

    group = GroupTool(tools, "consumer-groups", name)
    assert group.list("--type", "consumer", "--state", "stable") == [[name, "Consumer", "Stable"]]
    assert group.list("--type", "classic") == []
    assert group.list("--state", "empty") == []
    [member] = group.describe("--members", "--verbose")
    epoch, assignment = member[-4], f"{name}:0,1"
    assert member[-5:] == ["2", epoch, assignment, epoch, assignment]
    [state] = group.describe("--state", "--verbose")
    assert state[-5:] == ["uniform", "Stable", epoch, epoch, "1"]
    offsets = group.describe("--offsets")
    assert [columns[1:6] for columns in offsets] == [[name, f"{index}", "10", "10", "0"] for index in range(2)]
    assert {columns[6] for columns in offsets} == {member[1]}

    delete = ["--delete"]
    delete_offsets = ["--delete-offsets", "--topic", name]
    reset = ["--reset-offsets", "--topic", name, "--shift-by", "-3", "--execute"]
    assert "The group is not empty." in group.change(*delete)
    assert "while the consumer group is actively subscribed to it" in group.change(*delete_offsets)
    assert "only be reset if the group" in group.change(*reset)

    client.call("close_consumer", name="member")
    assert group.list("--type", "consumer", "--state", "empty") == [[name, "Consumer", "Empty"]]
    group.change(*reset)
    assert [columns[3:6] for columns in group.describe("--offsets")] == [["7", "10", "3"]] * 2
    group.change(*delete_offsets)
    assert group.describe("--offsets") == []
    assert f"Deletion of requested consumer groups ('{name}') was successful." in group.change(*delete)
    assert group.list() == []
