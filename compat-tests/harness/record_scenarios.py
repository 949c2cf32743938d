"""Producing and reading: what was sent comes back, in its place and with its time."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from harness.agent import ClientError
from harness.records import same_in_order

if TYPE_CHECKING:
    from harness.agent import Agent

MESSAGE_TOO_LARGE = 10


class RecordScenarios:
    """Part of `CoreScenarios`."""

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
