"""Kafka's own Java clients from before 2.0, down to the first with record format v2."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.core import CoreScenarios
from harness.java_clients import java_driver
from harness.records import same_in_order
from harness.versions import JAVA_CLIENTS_BEFORE_2

if TYPE_CHECKING:
    from harness.agent import Agent, Driver
    from harness.target import Target

_NO_GROUP_ADMIN = "the admin client knows no groups before 2.0"


@pytest.fixture(scope="module", params=[f"java-{version}" for version in JAVA_CLIENTS_BEFORE_2])
def driver(request: pytest.FixtureRequest) -> Driver:
    return java_driver(request.param)


class TestJavaBefore2(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_records_come_back_as_they_were_sent[zstd]": "zstd came with 2.1",
        "test_cooperative_rebalance_moves_only_what_must_move": "cooperative rebalances came with 2.4",
        "test_static_member_returns_to_its_partitions": "static members came with 2.3",
        "test_further_partitions": "createPartitions came with 1.0; what the driver does, all releases before 2.0 can",
        "test_group_administration": _NO_GROUP_ADMIN,
        "test_delete_records": "deleteRecords came with 1.1, likewise",
        "test_records_beyond_the_end_cannot_be_deleted": "as test_delete_records",
        "test_incremental_config_changes": "incrementalAlterConfigs came with 2.3",
        "test_offsets_of_a_group_are_set": _NO_GROUP_ADMIN,
        "test_groups_that_cannot_be_deleted": _NO_GROUP_ADMIN,
    }

    def check_group(self, client: Agent, group: str, state: str, members: int) -> None:
        """These releases cannot describe a group."""

    @pytest.mark.feature("restart of the broker")
    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """As for the other clients, but with new ones after it, for the reasons in FINDINGS.md."""
        group = f"{name}-group"
        self.leave_a_group(client, group)
        client.call("create_topic", topic=name, partitions=2)
        records = [{"partition": number % 2, "value": f"{number}"} for number in range(400)]
        client.call("produce", topic=name, records=records[:200], idempotent=True)
        target.restart_abruptly()
        client.close()
        client.call("produce", topic=name, records=records[200:], idempotent=True)
        read = same_in_order(client.call("read_all", topic=name), "partition", "offset", "value")
        assert read == [
            (partition, offset, f"{2 * offset + partition}") for partition in (0, 1) for offset in range(200)
        ]
        assert client.call("committed", group=group, topic=group, partition=0) == 1
