"""kafka-python from before idempotence: 2.0.2, for years the newest, and the last 1.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import python_driver
from harness.core import CoreScenarios

if TYPE_CHECKING:
    from harness.agent import Driver

_NOT_BEFORE_2_3 = "came to kafka-python after 2.0"


@pytest.fixture(scope="module", params=["kafka-python-2.0", "kafka-python-1.4"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return python_driver(request.param, "kafka-python")


class TestKafkaPythonBefore23(CoreScenarios):
    IDEMPOTENT = False
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_header_value": "kafka-python takes only bytes as a header's value",
        "test_idempotent_producer": _NOT_BEFORE_2_3,
        "test_cooperative_rebalance_moves_only_what_must_move": _NOT_BEFORE_2_3,
        "test_static_member_returns_to_its_partitions": _NOT_BEFORE_2_3,
        "test_delete_records": _NOT_BEFORE_2_3,
        "test_records_beyond_the_end_cannot_be_deleted": _NOT_BEFORE_2_3,
        "test_incremental_config_changes": _NOT_BEFORE_2_3,
        "test_offsets_of_a_group_are_set": _NOT_BEFORE_2_3,
        "test_records_come_back_as_they_were_sent[kafka-python-1.4-zstd]": "zstd came to kafka-python with 2.0",
        **{
            f"{test}[kafka-python-1.4]": f"kafka-python 1.4.7 {reason}"
            for test, reason in {
                "test_group_administration": "cannot delete a group",
                "test_description_of_the_cluster": "has no describe_cluster",
                "test_groups_that_cannot_be_deleted": "cannot delete a group",
            }.items()
        },
    }
