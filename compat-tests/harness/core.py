"""What every client library must be able to do with a broker; each client's test file inherits these tests.

What a library cannot do its test class says in `MISSING` (`features.py`). How the operations are called and what they
answer stands in `clients/serving/serving.py` and the drivers beside it. Members of a group are opened one after the
other has settled: some libraries hang when two join in one moment and a single thread polls both.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from harness.agent import ClientError

if TYPE_CHECKING:
    from harness.agent import Agent
    from harness.target import Target

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
TOPIC_ALREADY_EXISTS = 36
INVALID_CONFIG = 40
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69


def same_in_order(records: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    """Return the named fields of each record, to compare lists by what matters to a test."""
    return [tuple(record[field] for field in fields) for record in records]


class CoreScenarios:
    """Inherited by a test class whose module has a `client` fixture."""

    MISSING: ClassVar[dict[str, str]] = {}
    CODECS: ClassVar[list[str | None]] = [None, "gzip", "snappy", "lz4", "zstd"]
    EMPTY_HEADER: ClassVar[str | None] = ""  # how the library reads the empty value of a header

    def headers(self, number: int) -> list[list[str]]:
        """Return the headers of a record: names may be there more than once, and keep their order."""
        return [["trace", f"{number}"], ["trace", ""], ["bytes", "\x00\xfe"]]

    @pytest.mark.feature("codec: {codec}")
    @pytest.mark.parametrize("codec", CODECS)
    def test_records_come_back_as_they_were_sent(self, client: Agent, name: str, codec: str | None) -> None:
        client.call("create_topic", topic=name, partitions=2)
        now_ms = int(time.time() * 1000)
        sent: list[dict[str, Any]] = [
            {
                "topic": name,
                "partition": number % 2,
                "offset": number // 2,
                "timestamp": now_ms + number,
                "key": f"key {number}",
                "value": f"value {number} " + "that compresses well " * 20 + "\x00\xff",
                "headers": self.headers(number),
            }
            for number in range(200)
        ]
        acknowledged = client.call("produce", topic=name, records=sent, compression=codec)
        assert acknowledged == [[record["partition"], record["offset"]] for record in sent]
        expected = [
            {**record, "headers": [[name, value or self.EMPTY_HEADER] for name, value in record["headers"]]}
            for record in sent[0::2] + sent[1::2]
        ]
        assert client.call("read_all", topic=name) == expected

    @pytest.mark.feature("records: null and empty")
    def test_null_and_empty_are_different(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        shapes = [("k", "v"), (None, "v"), ("k", None), ("", ""), ("k", "")]
        records = [{"key": key, "value": value, "partition": 0} for key, value in shapes]
        client.call("produce", topic=name, records=records)
        assert same_in_order(client.call("read_all", topic=name), "key", "value") == shapes

    @pytest.mark.feature("records: null and empty")
    def test_null_header_value(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        headers = [["none", None], ["empty", ""], ["none", "again"]]
        client.call("produce", topic=name, records=[{"value": "v", "headers": headers}])
        [record] = client.call("read_all", topic=name)
        assert record["headers"] == headers

    @pytest.mark.feature("records: keys and partitions")
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

    @pytest.mark.feature("records: large")
    def test_large_record(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        value = "".join(chr(number % 251) for number in range(900_000))
        client.call("produce", topic=name, records=[{"value": value}])
        [record] = client.call("read_all", topic=name)
        assert record["value"] == value

    @pytest.mark.feature("records: too large refused")
    def test_record_above_the_topics_limit_is_refused(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"max.message.bytes": "10000"})
        client.call("produce", topic=name, records=[{"value": "x" * 9_000}])
        with pytest.raises(ClientError) as refusal:
            client.call("produce", topic=name, records=[{"value": "x" * 11_000}])
        assert refusal.value.code == MESSAGE_TOO_LARGE
        assert client.call("offset_range", topic=name) == [[0, 1]]

    @pytest.mark.feature("timestamps: LogAppendTime")
    def test_the_broker_stamps_records_where_the_topic_says_so(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, configs={"message.timestamp.type": "LogAppendTime"})
        before_ms = int(time.time() * 1000)
        records = [{"value": f"{number}", "timestamp": 1_000 + number} for number in range(10)]
        client.call("produce", topic=name, records=records)
        read = client.call("read_all", topic=name)
        after_ms = int(time.time() * 1000)
        assert [record["value"] for record in read] == [f"{number}" for number in range(10)]
        assert all(before_ms <= record["timestamp"] <= after_ms for record in read)
        first_ms = read[0]["timestamp"]
        found = client.call("find_offsets", topic=name, partition=0, timestamps=[1_005, first_ms, after_ms + 1])
        assert found == [[0, first_ms], [0, first_ms], None]

    @pytest.mark.feature("many partitions")
    def test_a_hundred_partitions(self, client: Agent, name: str) -> None:
        partitions = 100
        client.call("create_topic", topic=name, partitions=partitions)
        assert client.call("count_partitions", topic=name) == partitions
        client.call("open_consumer", name="one", topics=[name], group=name)
        client.call("settle", timeout_s=40, names=["one"], partitions=partitions)
        client.call("open_consumer", name="other", topics=[name], group=name)
        held = client.call("settle", timeout_s=40, names=["one", "other"], partitions=partitions)
        assert [len(assigned) for assigned in held.values()] == [partitions // 2] * 2
        records = [{"partition": number % partitions, "value": f"{number}"} for number in range(10 * partitions)]
        client.call("produce", timeout_s=60, topic=name, records=records)
        assert client.call("offset_range", timeout_s=60, topic=name) == [[0, 10]] * partitions
        values: list[int] = []
        for _ in range(4):
            read = client.call("poll", names=["one", "other"], count=10 * partitions // 4)
            values += [int(record["value"]) for records in read.values() for record in records]
        assert sorted(values) == list(range(10 * partitions))

    @pytest.mark.feature("idempotent producer")
    def test_idempotent_producer(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=3)
        records = [{"partition": number % 3, "value": f"{number}"} for number in range(600)]
        acknowledged = client.call("produce", topic=name, records=records, idempotent=True)
        assert acknowledged == [[number % 3, number // 3] for number in range(600)]
        read = client.call("read_all", topic=name)
        assert same_in_order(read, "partition", "offset", "value") == [
            (partition, offset, f"{offset * 3 + partition}") for partition in range(3) for offset in range(200)
        ]

    @pytest.mark.feature("groups: rebalance (eager)")
    def test_group_shares_partitions_and_takes_them_over(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=4)
        everything = [[name, partition] for partition in range(4)]

        client.call("open_consumer", name="first", topics=[name], group=name)
        assert client.call("settle", timeout_s=40, names=["first"], partitions=4) == {"first": everything}

        client.call("open_consumer", name="second", topics=[name], group=name)
        held = client.call("settle", timeout_s=40, names=["first", "second"], partitions=4)
        assert [len(partitions) for partitions in held.values()] == [2, 2]
        assert sorted(held["first"] + held["second"]) == everything
        self.check_group(client, name, "Stable", members=2)

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

    @pytest.mark.feature("groups: rebalance (cooperative)")
    def test_cooperative_rebalance_moves_only_what_must_move(self, client: Agent, name: str) -> None:
        """KIP-429: a member keeps what it holds while another comes, but for the partitions that the other gets."""
        client.call("create_topic", topic=name, partitions=6)
        cooperative = {"topics": [name], "group": name, "assignor": "cooperative-sticky"}
        everything = [[name, partition] for partition in range(6)]
        client.call("open_consumer", name="first", **cooperative)
        client.call("settle", timeout_s=40, names=["first"], partitions=6)

        client.call("open_consumer", name="second", **cooperative)
        held = client.call("settle", timeout_s=40, names=["first", "second"], partitions=6)
        assert [len(partitions) for partitions in held.values()] == [3, 3]
        assert client.call("describe_group", group=name)["protocol"] == "cooperative-sticky"
        assert client.call("rebalances", name="first") == [["assigned", everything], ["revoked", held["second"]]]
        assert client.call("rebalances", name="second") == [["assigned", held["second"]]]

        records = [{"partition": number % 6, "value": f"{number}"} for number in range(60)]
        client.call("produce", topic=name, records=records)
        read = client.call("poll", names=["first", "second"], count=60)
        assert {member: len(records) for member, records in read.items()} == {"first": 30, "second": 30}
        client.call("close_consumer", name="second")
        assert client.call("settle", timeout_s=40, names=["first"], partitions=6) == {"first": everything}
        assert client.call("rebalances", name="first")[2:] == [["assigned", held["second"]]]

    @pytest.mark.feature("groups: static members")
    def test_static_member_returns_to_its_partitions(self, client: Agent, name: str) -> None:
        """KIP-345: closed and opened again within the session timeout it has them back, and nobody rebalances."""
        client.call("create_topic", topic=name, partitions=4)
        client.call("open_consumer", name="one", topics=[name], group=name, instance="instance-one")
        client.call("settle", timeout_s=40, names=["one"], partitions=4)
        client.call("open_consumer", name="two", topics=[name], group=name, instance="instance-two")
        held = client.call("settle", timeout_s=40, names=["one", "two"], partitions=4)
        before = client.call("rebalances", name="two")

        client.call("close_consumer", name="one")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Stable", 2)
        client.call("open_consumer", name="one", topics=[name], group=name, instance="instance-one")
        assert client.call("settle", timeout_s=40, names=["one", "two"], partitions=4) == held
        assert client.call("rebalances", name="two") == before

        client.call("produce", topic=name, records=[{"partition": n % 4, "value": f"{n}"} for n in range(40)])
        read = client.call("poll", names=["one", "two"], count=40)
        for consumer, records in read.items():
            assert {record["partition"] for record in records} == {partition for _, partition in held[consumer]}

    @pytest.mark.feature("groups: commit and resume")
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

    @pytest.mark.feature("offsets: seek, by time")
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

    @pytest.mark.feature("admin: topics and configs")
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

    @pytest.mark.feature("admin: groups")
    def test_group_administration(self, client: Agent, name: str) -> None:
        self.leave_a_group(client, name)
        assert name in client.call("list_groups")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Empty", 0)
        client.call("delete_group", group=name)
        assert name not in client.call("list_groups")
        assert client.call("committed", group=name, topic=name, partition=0) is None

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
        assert set(client.call("topic_config", topic=name, key="cleanup.policy").split(",")) == {"compact", "delete"}
        assert client.call("topic_config", topic=name, key="segment.bytes") == "2000000"
        assert client.call("topic_config", topic=name, key="retention.ms") == "7200000"

        client.call(
            "change_topic_config",
            topic=name,
            changes=[["subtract", "cleanup.policy", "delete"], ["delete", "retention.ms", None]],
        )
        assert client.call("topic_config", topic=name, key="cleanup.policy") == "compact"
        assert client.call("topic_config", topic=name, key="retention.ms") == "604800000"

        with pytest.raises(ClientError) as refusal:
            client.call("change_topic_config", topic=name, changes=[["set", "retention.ms", "soon"]])
        assert refusal.value.code == INVALID_CONFIG
        assert client.call("topic_config", topic=name, key="retention.ms") == "604800000"

    @pytest.mark.feature("admin: group offsets")
    def test_offsets_of_a_group_are_set(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(10)])
        client.call("alter_offset", group=name, topic=name, partition=0, offset=7)
        assert client.call("committed", group=name, topic=name, partition=0) == 7
        client.call("open_consumer", name="reader", topics=[name], group=name)
        read = client.call("poll", names=["reader"], count=3)["reader"]
        assert same_in_order(read, "offset", "value") == [(7, "7"), (8, "8"), (9, "9")]

    @pytest.mark.feature("admin: groups")
    def test_groups_that_cannot_be_deleted(self, client: Agent, name: str) -> None:
        with pytest.raises(ClientError) as refusal:
            client.call("delete_group", group=name)
        assert refusal.value.code == GROUP_ID_NOT_FOUND
        client.call("create_topic", topic=name)
        client.call("open_consumer", name="member", topics=[name], group=name)
        client.call("settle", timeout_s=40, names=["member"], partitions=1)
        with pytest.raises(ClientError) as refusal:
            client.call("delete_group", group=name)
        assert refusal.value.code == NON_EMPTY_GROUP

    @pytest.mark.feature("restart of the broker")
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

    def check_group(self, client: Agent, group: str, state: str, members: int) -> None:
        """Check how the broker describes a group."""
        described = client.call("describe_group", group=group)
        assert (described["state"], described["members"]) == (state, members)

    @staticmethod
    def leave_a_group(client: Agent, name: str) -> None:
        """Make a topic and a group, both `name`, that committed an offset and has no members any more."""
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": "only"}])
        client.call("open_consumer", name="leaving", topics=[name], group=name)
        client.call("poll", names=["leaving"], count=1)
        client.call("commit", name="leaving")
        client.call("close_consumer", name="leaving")
