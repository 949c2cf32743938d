"""aiokafka: the newest, and the last that stands on kafka-python."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import python_driver
from harness.core import CoreScenarios

if TYPE_CHECKING:
    from harness.agent import Agent, Driver


@pytest.fixture(scope="module", params=["aiokafka", "aiokafka-0.8"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return python_driver(request.param, "aiokafka")


class TestAiokafka(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_cooperative_rebalance_moves_only_what_must_move": "aiokafka has no cooperative assignor",
        "test_incremental_config_changes": "aiokafka's admin client replaces all settings of a topic (AlterConfigs)",
        "test_offsets_of_a_group_are_set": "aiokafka's admin client cannot commit for a group",
        "test_groups_that_cannot_be_deleted": "aiokafka's admin client cannot delete groups",
        **{
            f"{test}[aiokafka-0.8]": f"aiokafka 0.8.1 {reason}"
            for test, reason in {
                "test_static_member_returns_to_its_partitions": "has no static members",
                "test_delete_records": "has no DeleteRecords",
                "test_records_beyond_the_end_cannot_be_deleted": "has no DeleteRecords",
            }.items()
        },
    }

    @pytest.mark.feature("admin: groups")
    def test_group_administration(self, client: Agent, name: str) -> None:
        """As for the other clients, but without deletion, which aiokafka does not offer."""
        self.leave_a_group(client, name)
        assert name in client.call("list_groups")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Empty", 0)
        assert client.call("committed", group=name, topic=name, partition=0) == 1
