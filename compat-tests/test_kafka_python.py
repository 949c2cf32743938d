"""kafka-python, newest 3.x and last 2.x."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module", params=["kafka-python-3", "kafka-python-2"])
def agent(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp(request.param)
    with client_of(request.param, "kafka_python_driver", target, folder) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestKafkaPython(CoreScenarios):
    pass
