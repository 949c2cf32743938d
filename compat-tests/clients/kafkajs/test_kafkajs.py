"""kafkajs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios
from harness.node import node_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(node_driver("kafkajs"), target, tmp_path_factory.mktemp("kafkajs")) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestKafkaJs(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_header_value": "kafkajs keeps the headers by name, not in their order",
        "test_cooperative_rebalance_moves_only_what_must_move": "kafkajs has one assigner, which is eager",
        "test_static_member_returns_to_its_partitions": "kafkajs has no static members",
        "test_incremental_config_changes": "kafkajs has no IncrementalAlterConfigs",
    }
