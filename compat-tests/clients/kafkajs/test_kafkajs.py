"""kafkajs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.core import CoreScenarios
from harness.node import node_driver

if TYPE_CHECKING:
    from harness.agent import Driver


@pytest.fixture(scope="module")
def driver() -> Driver:
    return node_driver("kafkajs")


class TestKafkaJs(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_header_value": "kafkajs keeps the headers by name, not in their order",
        "test_cooperative_rebalance_moves_only_what_must_move": "kafkajs has one assigner, which is eager",
        "test_static_member_returns_to_its_partitions": "kafkajs has no static members",
        "test_incremental_config_changes": "kafkajs has no IncrementalAlterConfigs",
    }
