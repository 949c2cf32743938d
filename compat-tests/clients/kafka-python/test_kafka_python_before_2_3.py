"""kafka-python from before idempotence: 2.0.2, for years the newest, and the last 1.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import client_of, python_driver
from harness.core import CoreScenarios, same_in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

_NOT_BEFORE_2_3 = "came to kafka-python after 2.0"


@pytest.fixture(scope="module", params=["kafka-python-2.0", "kafka-python-1.4"])
def agent(request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp(request.param)
    with client_of(python_driver(request.param, "kafka-python"), target, folder) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestKafkaPythonBefore23(CoreScenarios):
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

    @pytest.mark.feature("restart of the broker")
    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """As for the other clients; a producer that is not idempotent may send a record twice."""
        client.call("create_topic", topic=name, partitions=2)
        client.call("start_producing", topic=name)
        client.call("wait_acknowledged", timeout_s=100, more=200)
        target.restart_abruptly()
        client.call("wait_acknowledged", timeout_s=100, more=200)
        acknowledged = client.call("finish_producing", timeout_s=100)
        read = same_in_order(client.call("read_all", topic=name), "partition", "offset", "value")
        assert {tuple(record) for record in acknowledged} <= set(read)
