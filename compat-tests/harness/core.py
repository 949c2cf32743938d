"""What every client library must be able to do with a broker; each client's test file inherits these tests.

What a library cannot do its test class says in `MISSING` (`features.py`). How the operations are called and what they
answer stands in `clients/serving/serving.py` and the drivers beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from harness.admin_scenarios import AdminScenarios
from harness.group_scenarios import GroupScenarios
from harness.record_scenarios import RecordScenarios
from harness.records import same_in_order

if TYPE_CHECKING:
    from harness.agent import Agent
    from harness.target import Target


class CoreScenarios(RecordScenarios, GroupScenarios, AdminScenarios):
    """Inherited by a test class whose module has a fixture `driver` (`clients/conftest.py`)."""

    MISSING: ClassVar[dict[str, str]] = {}
    IDEMPOTENT: ClassVar[bool] = True  # whether the library's producer makes no duplicates when it tries again

    @pytest.mark.feature("restart of the broker")
    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """Neither records, of which an idempotent producer also makes no duplicates, nor commits, nor topics."""
        group = f"{name}-group"
        self.leave_a_group(client, group)
        client.call("create_topic", topic=name, partitions=2, configs={"retention.ms": "7200000"})
        self.check_restart_while_producing(client, target, name)
        assert client.call("committed", group=group, topic=group, partition=0) == 1
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"

    def check_restart_while_producing(self, client: Agent, target: Target, topic: str) -> None:
        """Restart the broker while the client produces, and check that what it was told is in the topic."""
        client.call("start_producing", topic=topic)
        client.call("wait_acknowledged", timeout_s=100, more=200)
        target.restart_abruptly()
        client.call("wait_acknowledged", timeout_s=100, more=200)
        acknowledged = sorted(map(tuple, client.call("finish_producing", timeout_s=100)))
        read = same_in_order(client.call("read_all", topic=topic), "partition", "offset", "value")
        assert set(acknowledged) <= set(read)
        assert {value for _, _, value in read} == {value for _, _, value in acknowledged}
        if self.IDEMPOTENT:
            assert read == acknowledged
