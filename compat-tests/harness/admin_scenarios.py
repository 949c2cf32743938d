"""What an admin client does with topics, their settings and records, and what it tells of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.agent import ClientError
from harness.records import same_in_order
from harness.waiting import eventually

if TYPE_CHECKING:
    from harness.agent import Agent
    from harness.target import Target

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
TOPIC_ALREADY_EXISTS = 36
INVALID_CONFIG = 40


class AdminScenarios:
    """Part of `CoreScenarios`."""

    @pytest.mark.feature("admin: topics and configs")
    def test_topic_administration(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=3)
        assert name in eventually(lambda: client.call("list_topics"), lambda topics: name in topics)
        assert client.call("count_partitions", topic=name) == 3
        with pytest.raises(ClientError) as refusal:
            client.call("create_topic", topic=name)
        assert refusal.value.code == TOPIC_ALREADY_EXISTS

        client.call("delete_topic", topic=name)
        assert name not in eventually(lambda: client.call("list_topics"), lambda topics: name not in topics)
        with pytest.raises(ClientError) as refusal:
            client.call("delete_topic", topic=name)
        assert refusal.value.code == UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.feature("admin: topics and configs")
    def test_further_partitions(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=3)
        client.call("create_partitions", topic=name, total=5)
        assert eventually(lambda: client.call("count_partitions", topic=name), lambda count: count == 5) == 5

    @pytest.mark.feature("admin: topics and configs")
    def test_settings_of_a_topic(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"retention.ms": "7200000"})
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"
        client.call("alter_topic_config", topic=name, configs={"retention.ms": "3600000"})
        self.await_config(client, name, "retention.ms", "3600000")
        assert client.call("topic_config", topic=name, key="cleanup.policy") == "delete"

    @pytest.mark.feature("admin: delete records")
    def test_delete_records(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(50)])
        assert client.call("delete_records", topic=name, partition=0, before=20) == 20
        assert client.call("offset_range", topic=name) == [[20, 50]]
        read = client.call("read_all", topic=name)
        assert same_in_order(read, "offset", "value") == [(offset, f"{offset}") for offset in range(20, 50)]

    @pytest.mark.feature("admin: delete records")
    def test_records_beyond_the_end_cannot_be_deleted(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": "only"}])
        with pytest.raises(ClientError) as refusal:
            client.call("delete_records", topic=name, partition=0, before=2)
        assert refusal.value.code == OFFSET_OUT_OF_RANGE
        assert client.call("offset_range", topic=name) == [[0, 1]]

    @pytest.mark.feature("admin: cluster")
    def test_description_of_the_cluster(self, client: Agent, target: Target) -> None:
        described = client.call("describe_cluster")
        host, port = target.bootstrap.split(":")
        assert [host, int(port)] in [node[1:] for node in described["nodes"]]
        assert described["controller"] in [node[0] for node in described["nodes"]]
        assert described["cluster_id"]

    @pytest.mark.feature("admin: incremental configs")
    def test_incremental_config_changes(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"retention.ms": "7200000"})
        client.call(
            "change_topic_config",
            topic=name,
            changes=[["append", "cleanup.policy", "compact"], ["set", "segment.bytes", "2000000"]],
        )
        self.await_config(client, name, "segment.bytes", "2000000")
        assert set(client.call("topic_config", topic=name, key="cleanup.policy").split(",")) == {"compact", "delete"}
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"

        client.call(
            "change_topic_config",
            topic=name,
            changes=[["subtract", "cleanup.policy", "delete"], ["delete", "retention.ms", None]],
        )
        self.await_config(client, name, "cleanup.policy", "compact")
        assert client.call("topic_config", topic=name, key="retention.ms") == "604800000"

        with pytest.raises(ClientError) as refusal:
            client.call("change_topic_config", topic=name, changes=[["set", "retention.ms", "soon"]])
        assert refusal.value.code == INVALID_CONFIG
        assert client.call("topic_config", topic=name, key="retention.ms") == "604800000"

    @staticmethod
    def await_config(client: Agent, topic: str, key: str, value: str) -> None:
        """Wait until a changed setting is in force."""
        asked = eventually(lambda: client.call("topic_config", topic=topic, key=key), lambda found: found == value)
        assert asked == value
