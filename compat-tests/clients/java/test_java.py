"""Kafka's own Java clients, the releases with a whole admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios
from harness.java_clients import java_driver
from harness.versions import JAVA_CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module", params=[f"java-{version}" for version in JAVA_CLIENTS])
def agent(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(java_driver(request.param), target, tmp_path_factory.mktemp(request.param)) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestJava(CoreScenarios):
    pass
