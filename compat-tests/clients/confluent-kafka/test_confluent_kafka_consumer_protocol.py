"""confluent-kafka, which is librdkafka, as a member of consumer groups of KIP-848."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of, python_driver
from harness.consumer_protocol import FEATURE, ConsumerProtocolScenarios

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("confluent-kafka")
    with client_of(python_driver("confluent-kafka", "confluent-kafka"), target, folder) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestConsumerProtocol(ConsumerProtocolScenarios):
    @pytest.mark.feature(FEATURE)
    def test_a_pattern_that_the_broker_resolves(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=f"{name}-one", partitions=2)
        client.call("create_topic", topic=f"{name}-two", partitions=2)
        pattern = f"^{name}-(one|two)$"
        client.call("open_consumer", name="reader", topics=[pattern], group=name, protocol="consumer")
        held = client.call("settle", timeout_s=60, names=["reader"], partitions=4)
        assert held["reader"] == [[f"{name}-{topic}", index] for topic in ("one", "two") for index in range(2)]
