"""rskafka, a client of producers and readers without groups, in Rust."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.core import CoreScenarios
from harness.rust import rust_driver

if TYPE_CHECKING:
    from harness.agent import Agent, Driver
    from harness.target import Target

_NO_GROUPS = "rskafka has no groups"
_NO_SETTINGS = "rskafka creates topics without settings and cannot ask for them"


@pytest.fixture(scope="module")
def driver() -> Driver:
    return rust_driver("rskafka")


class TestRskafka(CoreScenarios):
    IDEMPOTENT = False
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
        "test_further_partitions": "rskafka has no CreatePartitions",
        "test_settings_of_a_topic": _NO_SETTINGS,
        "test_description_of_the_cluster": "rskafka does not tell the brokers",
        "test_incremental_config_changes": _NO_SETTINGS,
        "test_offsets_of_a_group_are_set": _NO_GROUPS,
        "test_groups_that_cannot_be_deleted": _NO_GROUPS,
    }

    def headers(self, number: int) -> list[list[str]]:
        """As for the other clients, but one of each name, in the order of the names: rskafka has them in a map."""
        return [["bytes", "\x00\xfe"], ["empty", ""], ["trace", f"{number}"]]

    @pytest.mark.feature("restart of the broker")
    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """As for the other clients, but without groups and settings."""
        client.call("create_topic", topic=name)
        self.check_restart_while_producing(client, target, name)
