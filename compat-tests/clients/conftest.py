"""What the test files of all clients stand on: a module says what its driver is, and its tests ask the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent, Driver
    from harness.target import Target

_RESET_TIMEOUT_S = 60


@pytest.fixture(scope="module")
def agent(driver: Driver, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """The module's `driver`, running; where that fixture has parameters, one after the other."""
    with client_of(driver, target, tmp_path_factory.mktemp("client")) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    """The same, which lets go of everything that a test leaves open."""
    yield agent
    agent.call("reset", timeout_s=_RESET_TIMEOUT_S)
