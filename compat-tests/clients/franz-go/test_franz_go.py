"""franz-go, by its client and its admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios
from harness.golang import go_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles the driver, and Go's library with it


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(go_driver("franz-go"), target, tmp_path_factory.mktemp("franz-go")) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestFranzGo(CoreScenarios):
    pass
