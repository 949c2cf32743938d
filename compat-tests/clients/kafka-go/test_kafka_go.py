"""kafka-go of Segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import client_of
from harness.core import CoreScenarios, same_in_order
from harness.golang import go_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles the driver, and Go's library with it


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(go_driver("kafka-go"), target, tmp_path_factory.mktemp("kafka-go")) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestKafkaGo(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_and_empty_are_different": "the Reader of kafka-go reads what is empty as nil",
        "test_the_broker_stamps_records_where_the_topic_says_so": "the Reader of kafka-go does not know LogAppendTime",
        "test_null_header_value": "the Reader of kafka-go reads what is empty as nil",
        "test_idempotent_producer": "kafka-go has no idempotent producer",
        "test_cooperative_rebalance_moves_only_what_must_move": "kafka-go has only eager balancers",
        "test_static_member_returns_to_its_partitions": "kafka-go has no static members",
        "test_delete_records": "kafka-go has no DeleteRecords",
        "test_records_beyond_the_end_cannot_be_deleted": "kafka-go has no DeleteRecords",
    }
    EMPTY_HEADER = None

    @pytest.mark.feature("restart of the broker")
    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """As for the other clients, but a record whose acknowledgement the restart took may be there twice."""
        client.call("create_topic", topic=name, partitions=2)
        client.call("start_producing", topic=name)
        client.call("wait_acknowledged", timeout_s=100, more=200)
        target.restart_abruptly()
        client.call("wait_acknowledged", timeout_s=100, more=200)
        acknowledged = client.call("finish_producing", timeout_s=100)
        read = same_in_order(client.call("read_all", topic=name), "partition", "offset", "value")
        assert {tuple(record) for record in acknowledged} <= set(read)
        assert len({value for _, _, value in read}) == len(acknowledged)
