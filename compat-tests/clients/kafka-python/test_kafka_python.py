"""kafka-python, newest 3.x and last 2.x."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import python_driver
from harness.core import CoreScenarios

if TYPE_CHECKING:
    from harness.agent import Driver


@pytest.fixture(scope="module", params=["kafka-python-3", "kafka-python-2"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return python_driver(request.param, "kafka-python")


class TestKafkaPython(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_header_value": "kafka-python takes only bytes as a header's value",
        **{
            f"{test}[kafka-python-2]": f"kafka-python 2.3.1 {reason}"
            for test, reason in {
                "test_cooperative_rebalance_moves_only_what_must_move": "has no cooperative assignor",
                "test_incremental_config_changes": "replaces all settings of a topic (AlterConfigs)",
                "test_offsets_of_a_group_are_set": "cannot commit for a group",
            }.items()
        },
    }
