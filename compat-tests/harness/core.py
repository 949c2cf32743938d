"""What every client library must be able to do with a broker; each client's test file inherits these tests."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from harness.agent import ClientError

if TYPE_CHECKING:
    from harness.agent import Agent
    from harness.target import Target

TOPIC_ALREADY_EXISTS = 36
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10


def same_in_order(records: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    """Return the named fields of each record, to compare lists by what matters to a test."""
    return [tuple(record[field] for field in fields) for record in records]


class CoreScenarios:
    """Inherited by a test class whose module has a `client` fixture."""

    CODECS: ClassVar[list[str | None]] = [None, "gzip", "snappy", "lz4", "zstd"]

    @pytest.mark.parametrize("codec", CODECS)
    def test_records_come_back_as_they_were_sent(self, client: Agent, name: str, codec: str | None) -> None:
        client.call("create_topic", topic=name, partitions=2)
        now_ms = int(time.time() * 1000)
        sent = [
            {
                "topic": name,
                "partition": number % 2,
                "offset": number // 2,
                "timestamp": now_ms + number,
                "key": f"key {number}",
                "value": f"value {number} " + "that compresses well " * 20 + "\x00\xff",
                "headers": [["trace", f"{number}"], ["trace", ""], ["bytes", "\x00\xfe"]],
            }
            for number in range(200)
        ]
        acknowledged = client.call("produce", topic=name, records=sent, compression=codec)
        assert acknowledged == [[record["partition"], record["offset"]] for record in sent]
        assert client.call("read_all", topic=name) == sent[0::2] + sent[1::2]

    def test_null_and_empty_are_different(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        shapes = [("k", "v"), (None, "v"), ("k", None), ("", ""), ("k", "")]
        records = [{"key": key, "value": value, "partition": 0} for key, value in shapes]
        client.call("produce", topic=name, records=records)
        assert same_in_order(client.call("read_all", topic=name), "key", "value") == shapes

    def test_a_key_stays_in_one_partition(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=4)
        records = [{"key": f"user {number % 20}", "value": f"{number}"} for number in range(200)]
        client.call("produce", topic=name, records=records)
        read = client.call("read_all", topic=name)
        homes = {(record["key"], record["partition"]) for record in read}
        assert Counter(record["key"] for record in read) == {f"user {user}": 10 for user in range(20)}
        assert len(homes) == 20
        assert len({partition for _, partition in homes}) > 1
        for user in range(20):
            in_order = [int(record["value"]) for record in read if record["key"] == f"user {user}"]
            assert in_order == list(range(user, 200, 20))

    def test_large_record(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        value = "".join(chr(number % 251) for number in range(900_000))
        client.call("produce", topic=name, records=[{"value": value}])
        [record] = client.call("read_all", topic=name)
        assert record["value"] == value

    def test_record_above_the_topics_limit_is_refused(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"max.message.bytes": "10000"})
        client.call("produce", topic=name, records=[{"value": "x" * 9_000}])
        with pytest.raises(ClientError) as refusal:
            client.call("produce", topic=name, records=[{"value": "x" * 11_000}])
        assert refusal.value.code == MESSAGE_TOO_LARGE
        assert client.call("offset_range", topic=name) == [[0, 1]]

    def test_idempotent_producer(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=3)
        records = [{"partition": number % 3, "value": f"{number}"} for number in range(600)]
        acknowledged = client.call("produce", topic=name, records=records, idempotent=True)
        assert acknowledged == [[number % 3, number // 3] for number in range(600)]
        read = client.call("read_all", topic=name)
        assert same_in_order(read, "partition", "offset", "value") == [
            (partition, offset, f"{offset * 3 + partition}") for partition in range(3) for offset in range(200)
        ]

    def test_group_shares_partitions_and_takes_them_over(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=4)
        everything = [[name, partition] for partition in range(4)]

        client.call("open_consumer", name="first", topics=[name], group=name)
        assert client.call("settle", timeout_s=40, names=["first"], partitions=4) == {"first": everything}

        client.call("open_consumer", name="second", topics=[name], group=name)
        held = client.call("settle", timeout_s=40, names=["first", "second"], partitions=4)
        assert [len(partitions) for partitions in held.values()] == [2, 2]
        assert sorted(held["first"] + held["second"]) == everything
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Stable", 2)

        records = [{"partition": number % 4, "value": f"{number}"} for number in range(40)]
        client.call("produce", topic=name, records=records)
        read = client.call("poll", names=["first", "second"], count=40)
        assert sorted(int(record["value"]) for records in read.values() for record in records) == list(range(40))
        for consumer, records in read.items():
            assert {record["partition"] for record in records} == {partition for _, partition in held[consumer]}

        client.call("commit", name="second")
        client.call("commit", name="first")
        client.call("close_consumer", name="second")
        assert client.call("settle", timeout_s=40, names=["first"], partitions=4) == {"first": everything}
        client.call("produce", topic=name, records=[{"partition": p, "value": f"late {p}"} for p in range(4)])
        late = client.call("poll", names=["first"], count=4)["first"]
        assert sorted(record["value"] for record in late) == [f"late {partition}" for partition in range(4)]

    def test_group_resumes_where_it_committed(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(20)])
        assert client.call("committed", group=name, topic=name, partition=0) is None

        client.call("open_consumer", name="before", topics=[name], group=name)
        before = client.call("poll", names=["before"], count=12)["before"]
        client.call("commit", name="before")
        client.call("close_consumer", name="before")
        assert client.call("committed", group=name, topic=name, partition=0) == 12

        client.call("open_consumer", name="after", topics=[name], group=name)
        after = client.call("poll", names=["after"], count=8)["after"]
        assert [int(record["value"]) for record in before + after] == list(range(20))

    def test_seek_and_offsets(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        start_ms = int(time.time() * 1000) - 60_000
        records = [{"value": f"{number}", "timestamp": start_ms + 10 * number} for number in range(100)]
        client.call("produce", topic=name, records=records)
        assert client.call("offset_range", topic=name) == [[0, 100]]
        asked = [0, start_ms, start_ms + 505, start_ms + 990, start_ms + 991]
        assert client.call("find_offsets", topic=name, partition=0, timestamps=asked) == [
            [0, start_ms],
            [0, start_ms],
            [51, start_ms + 510],
            [99, start_ms + 990],
            None,
        ]
        client.call("open_consumer", name="seeking", partitions=[[name, 0]])
        for offset in (42, 99, 0):
            client.call("seek", name="seeking", topic=name, partition=0, offset=offset)
            [record] = client.call("poll", names=["seeking"], count=1)["seeking"]
            assert (record["offset"], record["value"]) == (offset, f"{offset}")

    def test_topic_administration(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=3, configs={"retention.ms": "7200000"})
        assert name in client.call("list_topics")
        assert client.call("count_partitions", topic=name) == 3
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"
        with pytest.raises(ClientError) as refusal:
            client.call("create_topic", topic=name)
        assert refusal.value.code == TOPIC_ALREADY_EXISTS

        client.call("alter_topic_config", topic=name, configs={"retention.ms": "3600000"})
        assert client.call("topic_config", topic=name, key="retention.ms") == "3600000"
        assert client.call("topic_config", topic=name, key="cleanup.policy") == "delete"

        client.call("create_partitions", topic=name, total=5)
        assert client.call("count_partitions", topic=name) == 5

        client.call("delete_topic", topic=name)
        assert name not in client.call("list_topics")
        with pytest.raises(ClientError) as refusal:
            client.call("delete_topic", topic=name)
        assert refusal.value.code == UNKNOWN_TOPIC_OR_PARTITION

    def test_group_administration(self, client: Agent, name: str) -> None:
        self.leave_a_group(client, name)
        assert name in client.call("list_groups")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Empty", 0)
        client.call("delete_group", group=name)
        assert name not in client.call("list_groups")
        assert client.call("committed", group=name, topic=name, partition=0) is None

    def test_delete_records(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(50)])
        assert client.call("delete_records", topic=name, partition=0, before=20) == 20
        assert client.call("offset_range", topic=name) == [[20, 50]]
        read = client.call("read_all", topic=name)
        assert same_in_order(read, "offset", "value") == [(offset, f"{offset}") for offset in range(20, 50)]

    def test_restart_of_the_broker_loses_nothing_acknowledged(self, client: Agent, target: Target, name: str) -> None:
        """Neither records, of which an idempotent producer also makes no duplicates, nor commits, nor topics."""
        group = f"{name}-group"
        self.leave_a_group(client, group)
        client.call("create_topic", topic=name, partitions=2, configs={"retention.ms": "7200000"})
        client.call("start_producing", topic=name)
        client.call("wait_acknowledged", timeout_s=100, more=200)
        target.restart_abruptly()
        client.call("wait_acknowledged", timeout_s=100, more=200)
        acknowledged = client.call("finish_producing", timeout_s=100)
        read = same_in_order(client.call("read_all", topic=name), "partition", "offset", "value")
        assert read == sorted(tuple(record) for record in acknowledged)
        assert client.call("committed", group=group, topic=group, partition=0) == 1
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"

    @staticmethod
    def leave_a_group(client: Agent, name: str) -> None:
        """Make a topic and a group, both `name`, that committed an offset and has no members any more."""
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": "only"}])
        client.call("open_consumer", name="leaving", topics=[name], group=name)
        client.call("poll", names=["leaving"], count=1)
        client.call("commit", name="leaving")
        client.call("close_consumer", name="leaving")
