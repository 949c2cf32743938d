"""rskafka, a client of producers and readers without groups, in Rust."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.agent import ClientError
from harness.clients import client_of
from harness.core import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION, CoreScenarios, same_in_order
from harness.rust import rust_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

pytestmark = pytest.mark.timeout(900)  # the first run on a machine compiles the client

_NO_GROUPS = "rskafka has no groups"
_NO_SETTINGS = "rskafka creates topics without settings and cannot ask for them"


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with client_of(rust_driver("rskafka"), target, tmp_path_factory.mktemp("rskafka")) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestRskafka(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_header_value": "rskafka takes only bytes as a header's value",
        "test_a_key_stays_in_one_partition": "rskafka has no partitioner",
        "test_record_above_the_topics_limit_is_refused": _NO_SETTINGS,
        "test_the_broker_stamps_records_where_the_topic_says_so": _NO_SETTINGS,
        "test_a_hundred_partitions": _NO_GROUPS,
        "test_idempotent_producer": "rskafka has no idempotent producer",
        "test_group_shares_partitions_and_takes_them_over": _NO_GROUPS,
        "test_cooperative_rebalance_moves_only_what_must_move": _NO_GROUPS,
        "test_static_member_returns_to_its_partitions": _NO_GROUPS,
        "test_group_resumes_where_it_committed": _NO_GROUPS,
        "test_seek_and_offsets": "rskafka tells no timestamp with the offset that it finds by one",
        "test_group_administration": _NO_GROUPS,
        "test_description_of_the_cluster": "rskafka does not tell the brokers",
        "test_incremental_config_changes": _NO_SETTINGS,
        "test_offsets_of_a_group_are_set": _NO_GROUPS,
        "test_groups_that_cannot_be_deleted": _NO_GROUPS,
    }

    def headers(self, number: int) -> list[list[str]]:
        """As for the other clients, but one of each name, in the order of the names: rskafka has them in a map."""
        return [["bytes", "\x00\xfe"], ["empty", ""], ["trace", f"{number}"]]

    @pytest.mark.feature("admin: topics")
    def test_topic_administration(self, client: Agent, name: str) -> None:
        """As for the other clients, but without settings and without further partitions."""
        client.call("create_topic", topic=name, partitions=3)
        assert name in client.call("list_topics")
        assert client.call("count_partitions", topic=name) == 3
        with pytest.raises(ClientError) as refusal:
            client.call("create_topic", topic=name)
        assert refusal.value.code == TOPIC_ALREADY_EXISTS
        client.call("delete_topic", topic=name)
        assert name not in client.call("list_topics")
        with pytest.raises(ClientError) as refusal:
            client.call("delete_topic", topic=name)
        assert refusal.value.code == UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.feature("restart of the broker")
    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """As for the other clients, but without groups; a producer that is not idempotent may send a record twice."""
        client.call("create_topic", topic=name)
        client.call("start_producing", topic=name)
        client.call("wait_acknowledged", timeout_s=100, more=200)
        target.restart_abruptly()
        client.call("wait_acknowledged", timeout_s=100, more=200)
        acknowledged = client.call("finish_producing", timeout_s=100)
        read = same_in_order(client.call("read_all", topic=name), "partition", "offset", "value")
        assert {tuple(record) for record in acknowledged} <= set(read)
