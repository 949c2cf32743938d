"""confluent-kafka, which is librdkafka: the core, its assignors, static membership and its wider admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.agent import ClientError
from harness.clients import client_of
from harness.core import CoreScenarios, same_in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.agent import Agent
    from harness.target import Target

INVALID_CONFIG = 40
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
OFFSET_OUT_OF_RANGE = 1


@pytest.fixture(scope="module")
def agent(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("confluent-kafka")
    with client_of("confluent-kafka", "confluent_driver", target, folder) as agent:
        yield agent


@pytest.fixture
def client(agent: Agent) -> Iterator[Agent]:
    yield agent
    agent.call("reset")


class TestConfluentKafka(CoreScenarios):
    @pytest.mark.parametrize("assignor", ["cooperative-sticky", "roundrobin", "range"])
    def test_three_members_come_and_go(self, client: Agent, name: str, assignor: str) -> None:
        client.call("create_topic", topic=name, partitions=6)
        members: list[str] = []
        for member in ("a", "b", "c"):
            client.call("open_consumer", name=member, topics=[name], group=name, assignor=assignor)
            members.append(member)
            held = client.call("settle", timeout_s=40, names=members, partitions=6)
            assert {len(partitions) for partitions in held.values()} == {6 // len(members)}
        described = client.call("describe_group", group=name)
        assert (described["protocol"], described["state"], described["members"]) == (assignor, "Stable", 3)

        client.call("produce", topic=name, records=[{"partition": n % 6, "value": f"{n}"} for n in range(60)])
        read = client.call("poll", names=members, count=60)
        assert sorted(int(record["value"]) for records in read.values() for record in records) == list(range(60))
        assert {member: len(records) for member, records in read.items()} == {"a": 20, "b": 20, "c": 20}

        for member in members:
            client.call("commit", name=member)
        client.call("close_consumer", name="a")
        held = client.call("settle", timeout_s=40, names=["b", "c"], partitions=6)
        assert {len(partitions) for partitions in held.values()} == {3}
        client.call("produce", topic=name, records=[{"partition": n, "value": f"late {n}"} for n in range(6)])
        late = client.call("poll", names=["b", "c"], count=6)
        values = sorted(record["value"] for records in late.values() for record in records)
        assert values == [f"late {partition}" for partition in range(6)]

    def test_static_member_returns_to_its_partitions(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=4)
        for member in ("one", "two"):
            client.call("open_consumer", name=member, topics=[name], group=name, instance=f"instance {member}")
        held = client.call("settle", timeout_s=40, names=["one", "two"], partitions=4)
        first_id = client.call("member_id", name="one")
        other_id = client.call("member_id", name="two")
        assert client.call("describe_group", group=name)["instances"] == ["instance one", "instance two"]

        client.call("close_consumer", name="one")
        assert client.call("describe_group", group=name)["members"] == 2
        client.call("open_consumer", name="one", topics=[name], group=name, instance="instance one")
        again = client.call("settle", timeout_s=40, names=["one", "two"], partitions=4)
        assert again == held
        assert client.call("member_id", name="one") != first_id
        assert client.call("member_id", name="two") == other_id

    def test_null_header_value(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        headers = [["none", None], ["empty", ""], ["none", "again"]]
        client.call("produce", topic=name, records=[{"value": "v", "headers": headers}])
        [record] = client.call("read_all", topic=name)
        assert record["headers"] == headers

    def test_describe_cluster(self, client: Agent, target: Target) -> None:
        described = client.call("describe_cluster")
        host, port = target.bootstrap.split(":")
        assert described["nodes"] == [[described["controller"], host, int(port)]]
        assert described["cluster_id"]

    def test_list_offsets_of_the_latest_timestamp(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        assert client.call("list_offset", topic=name, partition=0, spec="max_timestamp") == -1
        stamps = [1_000, 9_000, 5_000]
        client.call("alter_topic_config", topic=name, configs={"retention.ms": "-1"})
        client.call("produce", topic=name, records=[{"value": "v", "timestamp": stamp} for stamp in stamps])
        assert client.call("list_offset", topic=name, partition=0, spec="max_timestamp") == 1

    def test_incremental_config_changes(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"retention.ms": "7200000"})
        client.call(
            "change_topic_config",
            topic=name,
            changes=[["append", "cleanup.policy", "compact"], ["set", "segment.bytes", "2000000"]],
        )
        assert set(client.call("topic_config", topic=name, key="cleanup.policy").split(",")) == {"compact", "delete"}
        assert client.call("topic_config", topic=name, key="segment.bytes") == "2000000"
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"
        source, synonyms = client.call("topic_config_source", topic=name, key="retention.ms")
        assert source == "DYNAMIC_TOPIC_CONFIG"
        assert synonyms[0] == ["retention.ms", "7200000", "DYNAMIC_TOPIC_CONFIG"]

        client.call(
            "change_topic_config",
            topic=name,
            changes=[["subtract", "cleanup.policy", "delete"], ["delete", "retention.ms", None]],
        )
        assert client.call("topic_config", topic=name, key="cleanup.policy") == "compact"
        assert client.call("topic_config", topic=name, key="retention.ms") == "604800000"
        source, _ = client.call("topic_config_source", topic=name, key="retention.ms")
        assert source == "DEFAULT_CONFIG"

        with pytest.raises(ClientError) as refusal:
            client.call("change_topic_config", topic=name, changes=[["set", "retention.ms", "soon"]])
        assert refusal.value.code == INVALID_CONFIG

    def test_alter_the_offsets_of_a_group(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(10)])
        client.call("alter_offset", group=name, topic=name, partition=0, offset=7)
        assert client.call("committed", group=name, topic=name, partition=0) == 7
        client.call("open_consumer", name="reader", topics=[name], group=name)
        read = client.call("poll", names=["reader"], count=3)["reader"]
        assert same_in_order(read, "offset", "value") == [(7, "7"), (8, "8"), (9, "9")]

    def test_group_errors(self, client: Agent, name: str) -> None:
        with pytest.raises(ClientError) as refusal:
            client.call("delete_group", group=name)
        assert refusal.value.code == GROUP_ID_NOT_FOUND
        client.call("create_topic", topic=name)
        client.call("open_consumer", name="member", topics=[name], group=name)
        client.call("settle", timeout_s=40, names=["member"], partitions=1)
        with pytest.raises(ClientError) as refusal:
            client.call("delete_group", group=name)
        assert refusal.value.code == NON_EMPTY_GROUP

    def test_records_beyond_the_end_cannot_be_deleted(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": "only"}])
        with pytest.raises(ClientError) as refusal:
            client.call("delete_records", topic=name, partition=0, before=2)
        assert refusal.value.code == OFFSET_OUT_OF_RANGE
        assert client.call("offset_range", topic=name) == [[0, 1]]
