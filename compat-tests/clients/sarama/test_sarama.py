"""sarama, which speaks the protocol of the Kafka release that its user names: its default and the newest it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios
from harness.golang import go_driver
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles the driver, and Go's library with it


@pytest.fixture(scope="module", params=["sarama-kafka-2.8.0", f"sarama-kafka-{KAFKA_4}"])
def agent(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp(request.param)
    env = {"SARAMA_VERSION": request.param.removeprefix("sarama-kafka-")}
    with client_of(go_driver("sarama"), target, folder, env) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestSarama(CoreScenarios):
    pass
