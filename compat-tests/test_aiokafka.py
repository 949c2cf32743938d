"""aiokafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of("aiokafka", "aiokafka_driver", target, tmp_path_factory.mktemp("aiokafka")) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestAiokafka(CoreScenarios):
    def test_group_administration(self, client: Agent, name: str) -> None:
        """As for the other clients, but without deletion, which aiokafka does not offer."""
        self.leave_a_group(client, name)
        assert name in client.call("list_groups")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Empty", 0)
        assert client.call("committed", group=name, topic=name, partition=0) == 1
