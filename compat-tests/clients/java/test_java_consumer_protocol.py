"""Kafka's own Java client as a member of consumer groups of KIP-848, which its releases before 4.0 only preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.consumer_protocol import FEATURE, ConsumerProtocolScenarios
from harness.java_clients import java_driver
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module", params=[f"java-{KAFKA_4}"])
def agent(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(java_driver(request.param), target, tmp_path_factory.mktemp(request.param)) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestConsumerProtocol(ConsumerProtocolScenarios):
    @pytest.mark.feature(FEATURE)
    def test_description_of_a_group(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        member = {"topics": [name], "group": name, "protocol": "consumer", "instance": "instance-one"}
        client.call("open_consumer", name="only", **member)
        client.call("settle", timeout_s=60, names=["only"], partitions=1)
        assert name in client.call("list_groups")
        described = client.call("describe_group", group=name)
        assert described == {"state": "Stable", "protocol": "uniform", "members": 1, "instances": ["instance-one"]}

    @pytest.mark.feature(FEATURE)
    def test_a_pattern_that_the_broker_resolves(self, client: Agent, name: str) -> None:
        """Also for a topic that comes later, and not for one whose name only contains what the pattern means."""
        for topic in ("one", "two", "one-more"):
            client.call("create_topic", topic=f"{name}-{topic}", partitions=2)
        client.call("open_consumer", name="reader", group=name, protocol="consumer")
        client.call("subscribe_pattern", name="reader", pattern=f"{name}-(one|two|three)")
        wanted = [[f"{name}-{topic}", index] for topic in ("one", "two") for index in range(2)]
        assert client.call("settle", timeout_s=60, names=["reader"], partitions=4) == {"reader": wanted}
        client.call("create_topic", topic=f"{name}-three", partitions=1)
        held = client.call("settle", timeout_s=60, names=["reader"], partitions=5)["reader"]
        assert [f"{name}-three", 0] in held
