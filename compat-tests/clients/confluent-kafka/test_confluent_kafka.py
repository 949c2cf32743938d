"""confluent-kafka, which is librdkafka: the core, its assignors and what only its admin client tells.

The newest release, and the oldest whose wheel fits Python 3.11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.clients import python_driver
from harness.core import CoreScenarios

if TYPE_CHECKING:
    from harness.agent import Agent, Driver


@pytest.fixture(scope="module", params=["confluent-kafka", "confluent-kafka-2.0"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return python_driver(request.param, "confluent-kafka")


class TestConfluentKafka(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        f"{test}[confluent-kafka-2.0]": f"confluent-kafka 2.0.2 {reason}"
        for test, reason in {
            "test_delete_records": "has no DeleteRecords",
            "test_records_beyond_the_end_cannot_be_deleted": "has no DeleteRecords",
            "test_incremental_config_changes": "replaces all settings of a topic (AlterConfigs)",
            "test_list_offsets_of_the_latest_timestamp": "has no ListOffsets in its admin client",
            "test_sources_of_configs": "replaces all settings of a topic (AlterConfigs)",
        }.items()
    }

    @pytest.mark.feature("groups: three members, each assignor")
    @pytest.mark.parametrize("assignor", ["cooperative-sticky", "roundrobin", "range"])
    def test_three_members_come_and_go(self, client: Agent, name: str, assignor: str) -> None:
        client.call("create_topic", topic=name, partitions=6)
        members: list[str] = []
        for member in ("a", "b", "c"):
            client.call("open_consumer", name=member, topics=[name], group=name, assignor=assignor)
            members.append(member)
            held = client.call("settle", names=members, partitions=6)
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
        held = client.call("settle", names=["b", "c"], partitions=6)
        assert {len(partitions) for partitions in held.values()} == {3}
        client.call("produce", topic=name, records=[{"partition": n, "value": f"late {n}"} for n in range(6)])
        late = client.call("poll", names=["b", "c"], count=6)
        values = sorted(record["value"] for records in late.values() for record in records)
        assert values == [f"late {partition}" for partition in range(6)]

    def test_list_offsets_of_the_latest_timestamp(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        assert client.call("list_offset", topic=name, partition=0, spec="max_timestamp") == -1
        stamps = [1_000, 9_000, 5_000]
        client.call("alter_topic_config", topic=name, configs={"retention.ms": "-1"})
        client.call("produce", topic=name, records=[{"value": "v", "timestamp": stamp} for stamp in stamps])
        assert client.call("list_offset", topic=name, partition=0, spec="max_timestamp") == 1

    def test_sources_of_configs(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"retention.ms": "7200000"})
        source, synonyms = client.call("topic_config_source", topic=name, key="retention.ms")
        assert source == "DYNAMIC_TOPIC_CONFIG"
        assert synonyms[0] == ["retention.ms", "7200000", "DYNAMIC_TOPIC_CONFIG"]
        client.call("change_topic_config", topic=name, changes=[["delete", "retention.ms", None]])
        source, _ = client.call("topic_config_source", topic=name, key="retention.ms")
        assert source == "DEFAULT_CONFIG"

    def test_static_member_has_a_new_id_after_its_return(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=2)
        static = {"topics": [name], "group": name, "instance": "instance-one"}
        client.call("open_consumer", name="one", **static)
        client.call("settle", names=["one"], partitions=2)
        first_id = client.call("member_id", name="one")
        assert client.call("describe_group", group=name)["instances"] == ["instance-one"]
        client.call("close_consumer", name="one")
        client.call("open_consumer", name="one", **static)
        client.call("settle", names=["one"], partitions=2)
        assert client.call("member_id", name="one") != first_id
