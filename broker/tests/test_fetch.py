"""Fetch over the wire: what is read, how much, how long it waits, and what sessions leave out."""

import itertools
import os
from functools import partial
from typing import Any

import pytest
import trio
from support.batches import batch
from support.logs import marker
from support.wire import WireClient, fetch_request, produce_request

from odradek.log.files import Files
from odradek.log.log import Origin
from odradek.testing import Broker
from odradek_protocol.errors import Error
from odradek_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek_protocol.messages.delete_topics import DeleteTopicsRequest
from odradek_protocol.messages.fetch import FetchRequest, ForgottenTopic
from odradek_protocol.records.batch import TRANSACTIONAL, iter_batches
from odradek_protocol.records.control import ControlType

OUT_OF_RANGE = (Error.OFFSET_OUT_OF_RANGE, -1, -1, -1)


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """A topic of two partitions; the first has batches of 3, 2, 1 and 1 records, the second one of 1."""
    client.create_topic(topic, partitions=2)
    for count in (3, 2, 1, 1):
        client.produce(topic, batch(*[b"v"] * count))
    client.produce(topic, batch(b"w"), index=1)
    return topic


def offsets(records: bytes | memoryview) -> list[tuple[int, int]]:
    """First offset and number of records of each batch."""
    return [(one.base_offset, one.record_count) for _, one in iter_batches(records)]


def head(data: Any) -> tuple[int, int, int, int]:
    return data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_reads(client: WireClient, filled: str, version: int) -> None:
    data = client.fetch(filled, 0, version=version)
    assert offsets(data.records) == [(0, 3), (3, 2), (5, 1), (6, 1)]
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 7, 7)


@pytest.mark.parametrize("version", range(13, 19))
def test_later_versions_read_by_topic_id(client: WireClient, topic: str, version: int) -> None:
    topic_id = client.create_topic(topic)
    client.produce(topic, batch(b"a"))
    data = client.fetch("", 0, version=version, topic_id=topic_id)
    assert offsets(data.records) == [(0, 1)]
    data = client.fetch("", 0, index=1, version=version, topic_id=topic_id)
    assert (*head(data), data.aborted_transactions) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1, [])
    for unknown in (b"\7" * 16, bytes(16)):
        data = client.fetch("", 0, version=version, topic_id=unknown)
        assert (*head(data), data.aborted_transactions, data.records) == (Error.UNKNOWN_TOPIC_ID, -1, -1, -1, [], b"")


@pytest.mark.parametrize(("version", "tail"), [(12, "ffffffff010000" + "00"), (11, "ffffffffffffffff00000000")])
def test_t13_records_are_empty_and_not_null(client: WireClient, filled: str, version: int, tail: str) -> None:
    client.send(fetch_request(filled, [(0, 7)]), version)
    assert client.receive_frame().hex().endswith(tail)


def test_t13_records_are_not_null_in_errors_either(client: WireClient, filled: str) -> None:
    client.send(fetch_request(filled, [(0, 8)]), 12)
    assert client.receive_frame().hex().endswith("0001" + "ff" * 24 + "00" + "ffffffff" + "01" + "000000")


def test_t46_unknown_topics_and_partitions_below_zero_too(client: WireClient, filled: str) -> None:
    for name, index in [("nowhere", 0), (filled, 77), (filled, -1)]:
        data = client.fetch(name, 0, index=index)
        assert (*head(data), data.aborted_transactions) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1, [])


def test_t36_the_first_batch_comes_whole_whatever_the_limits(client: WireClient, filled: str) -> None:
    wanted = fetch_request(filled, [(0, 0), (1, 0)], max_bytes=1)
    first, second = client.call(wanted, 12).responses[0].partitions
    assert (offsets(first.records), offsets(second.records)) == ([(0, 3)], [])
    wanted = fetch_request(filled, [(0, 0), (1, 0)], partition_max_bytes=1)
    first, second = client.call(wanted, 12).responses[0].partitions
    assert (offsets(first.records), offsets(second.records)) == ([(0, 3)], [])


def test_t36_the_rest_is_cut_at_the_edge_of_a_batch(client: WireClient, filled: str) -> None:
    sizes = [one.size for _, one in iter_batches(client.fetch(filled, 0).records)]
    for whole in range(1, 4):
        limit = sum(sizes[:whole])
        for size in (limit, limit + 1, limit + sizes[whole] - 1):
            assert len(client.fetch(filled, 0, partition_max_bytes=size).records) == limit
            assert len(client.fetch(filled, 0, max_bytes=size).records) == limit


def test_t37_an_offset_inside_a_batch_gives_the_whole_batch(client: WireClient, filled: str) -> None:
    for offset, first in [(0, 0), (1, 0), (2, 0), (3, 3), (4, 3), (5, 5), (6, 6)]:
        assert offsets(client.fetch(filled, offset).records)[0][0] == first


def test_t38_out_of_range(client: WireClient, filled: str) -> None:
    assert head(client.fetch(filled, 8)) == OUT_OF_RANGE
    assert head(client.fetch(filled, -1)) == OUT_OF_RANGE
    assert head(client.fetch(filled, 7)) == (0, 7, 7, 0)
    partition = DeleteRecordsPartition(partition_index=0, offset=4)
    deletion = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=filled, partitions=[partition])], timeout_ms=1000)
    client.call(deletion, 2)
    assert head(client.fetch(filled, 3)) == OUT_OF_RANGE
    data = client.fetch(filled, 4)
    assert (head(data), offsets(data.records)) == ((0, 7, 7, 4), [(3, 2), (5, 1), (6, 1)])


def test_what_is_not_in_memory_is_read_ahead_of_its_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_in_memory(*_: object) -> None:
        return None

    ahead: list[int] = []
    advise = os.posix_fadvise

    def note(fd: int, start: int, size: int, advice: int) -> None:
        ahead.append(size)
        advise(fd, start, size, advice)

    monkeypatch.setattr(Files, "peek", staticmethod(nothing_is_in_memory))
    monkeypatch.setattr(os, "posix_fadvise", note)
    batches = [batch(bytes([number]) * 40_000) for number in range(4)]
    with Broker() as broker, WireClient(broker.port) as client:
        client.create_topic("cold")
        for one in batches:
            client.produce("cold", one)
        size = len(batches[0])
        for limit, number in ((2 * size, 2), (1 << 20, 4)):
            records = client.fetch("cold", 0, partition_max_bytes=limit).records
            assert offsets(records) == [(offset, 1) for offset in range(number)]
            assert records[-30_000:] == batches[number - 1][-30_000:]
    assert ahead == [2 * size, 4 * size]


class TestLongPoll:
    """T39: a fetch waits for bytes, not longer than it has to, and is woken by what concerns it."""

    def test_t39_an_append_wakes_it(self, broker: Broker, client: WireClient, filled: str) -> None:
        client.send(fetch_request(filled, [(0, 7), (1, 1)], max_wait_ms=60_000), 12)
        with WireClient(broker.port) as other:
            other.produce(filled, batch(b"x"), index=1)
        first, second = client.receive().responses[0].partitions
        assert (offsets(first.records), offsets(second.records)) == ([], [(1, 1)])

    def test_t39_it_waits_for_min_bytes(self, broker: Broker, client: WireClient, filled: str) -> None:
        size = len(batch(b"x"))
        client.send(fetch_request(filled, [(0, 7)], max_wait_ms=60_000, min_bytes=2 * size), 12)
        with WireClient(broker.port) as other:
            other.produce(filled, batch(b"x"))
            other.produce(filled, batch(b"x"))
        assert offsets(client.receive().responses[0].partitions[0].records) == [(7, 1), (8, 1)]

    def test_t39_records_that_the_limit_cuts_off_are_there_too(self, client: WireClient, filled: str) -> None:
        """Kafka cuts a batch in two; here it is left out, but the reply is as full as it can be all the same."""
        first, second, *_ = (one.size for _, one in iter_batches(client.fetch(filled, 0).records))
        limit = first + second - 1
        waits: dict[str, Any] = {"max_wait_ms": 60_000, "min_bytes": limit}
        assert offsets(client.fetch(filled, 0, partition_max_bytes=limit, **waits).records) == [(0, 3)]
        assert offsets(client.fetch(filled, 0, max_bytes=limit, **waits).records) == [(0, 3)]
        waits["min_bytes"] = first + 10
        wanted = fetch_request(filled, [(0, 0), (1, 0)], partition_max_bytes=10, **waits)
        whole, none = client.call(wanted, 12).responses[0].partitions
        assert (offsets(whole.records), offsets(none.records)) == ([(0, 3)], [])

    def test_t39_a_hole_before_an_open_transaction_is_nothing_to_read(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        """Nobody who waits behind the last batch that compaction left is told again and again that nothing is there."""
        client.create_topic(topic)
        client.produce(topic, batch(b"a"))
        assert broker.node is not None
        partition = broker.node.partitions.get(topic, 0)
        assert partition is not None
        opened = batch(b"b", base_offset=5, attributes=TRANSACTIONAL, producer=(77, 0, 0))
        trio.from_thread.run_sync(partition.log.append_as_follower, memoryview(opened), trio_token=broker._token)
        client.produce(topic, batch(b"c"))
        client.send(fetch_request(topic, [(0, 1)], max_wait_ms=60_000, isolation_level=1), 12)
        ended = partial(partition.append, marker(ControlType.COMMIT, 77, 0), origin=Origin.COORDINATOR)
        trio.from_thread.run_sync(ended, trio_token=broker._token)
        assert offsets(client.receive().responses[0].partitions[0].records) == [(5, 1), (6, 1), (7, 1)]

    def test_t39_max_wait_ends_it(self, client: WireClient, filled: str) -> None:
        data = client.fetch(filled, 7, max_wait_ms=50)
        assert (head(data), data.records) == ((0, 7, 7, 0), b"")

    def test_t39_an_error_is_answered_at_once(self, client: WireClient, filled: str) -> None:
        wanted = fetch_request(filled, [(0, 7), (9, 0)], max_wait_ms=60_000)
        first, second = client.call(wanted, 12).responses[0].partitions
        assert (first.error_code, second.error_code) == (0, Error.UNKNOWN_TOPIC_OR_PARTITION)

    def test_t39_the_end_of_a_topic_wakes_it(self, broker: Broker, client: WireClient, filled: str) -> None:
        client.send(fetch_request(filled, [(0, 7)], max_wait_ms=60_000), 12)
        with WireClient(broker.port) as other:
            other.call(DeleteTopicsRequest(topic_names=[filled], timeout_ms=10_000), 5)
        code = client.receive().responses[0].partitions[0].error_code
        assert code in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER)

    def test_t39_more_than_1000_partitions(self, broker: Broker, client: WireClient, topic: str) -> None:
        client.create_topic(topic, partitions=1100)
        client.send(fetch_request(topic, [(index, 0) for index in range(1100)], max_wait_ms=60_000), 12)
        with WireClient(broker.port) as other:
            other.produce(topic, batch(b"x"), index=1099)
        partitions = client.receive().responses[0].partitions
        assert len(partitions) == 1100
        assert [one.partition_index for one in partitions if one.records] == [1099]


class TestSessions:
    """T40: incremental fetch sessions (KIP-227)."""

    counter = itertools.count()

    def call(self, client: WireClient, request: FetchRequest, version: int = 12) -> tuple[int, int, dict[int, int]]:
        """Error, session id, and the records told for each partition."""
        reply = client.call(request, version)
        told = {
            one.partition_index: sum(count for _, count in offsets(one.records))
            for entry in reply.responses
            for one in entry.partitions
        }
        return reply.error_code, reply.session_id, told

    def more(self, session_id: int, epoch: int, **options: Any) -> FetchRequest:
        options.setdefault("max_wait_ms", 0)
        topics = options.pop("topics", ())
        return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics, min_bytes=1, **options)

    def told_errors(self, client: WireClient, session_id: int, epoch: int) -> list[int]:
        reply = client.call(self.more(session_id, epoch), 13)
        return [one.error_code for entry in reply.responses for one in entry.partitions]

    def test_t40_the_life_of_a_session(self, client: WireClient, filled: str) -> None:
        create = fetch_request(filled, [(0, 7), (1, 1)], session_epoch=0)
        error, session, told = self.call(client, create)
        assert (error, session != 0, told) == (0, True, {0: 0, 1: 0})
        assert self.call(client, self.more(session, 1)) == (0, session, {})
        assert self.call(client, self.more(session, 5)) == (Error.INVALID_FETCH_SESSION_EPOCH, 0, {})
        assert self.call(client, self.more(session, 2)) == (0, session, {})
        client.produce(filled, batch(b"x", b"y"), index=1)
        assert self.call(client, self.more(session, 3)) == (0, session, {1: 2})
        assert self.call(client, self.more(session + 1, 1)) == (Error.FETCH_SESSION_ID_NOT_FOUND, 0, {})
        close = fetch_request(filled, [(0, 7)], session_id=session, session_epoch=-1)
        assert self.call(client, close) == (0, 0, {0: 0})
        assert self.call(client, self.more(session, 4)) == (Error.FETCH_SESSION_ID_NOT_FOUND, 0, {})

    def test_t40_no_session_unless_asked(self, client: WireClient, filled: str) -> None:
        assert self.call(client, fetch_request(filled, [(0, 7)], session_epoch=-1)) == (0, 0, {0: 0})

    def test_t40_partitions_come_go_and_move(self, client: WireClient, filled: str) -> None:
        _, session, _ = self.call(client, fetch_request(filled, [(0, 7)], session_epoch=0))
        added = fetch_request(filled, [(1, 0)]).topics
        assert self.call(client, self.more(session, 1, topics=added)) == (0, session, {1: 1})
        moved = fetch_request(filled, [(1, 1), (0, 5)]).topics
        assert self.call(client, self.more(session, 2, topics=moved)) == (0, session, {0: 2})
        forgotten = [ForgottenTopic(topic=filled, partitions=[0])]
        request = self.more(session, 3, forgotten_topics_data=forgotten)
        assert self.call(client, request) == (0, session, {})

    def test_t40_errors_are_told_each_time(self, client: WireClient, filled: str) -> None:
        _, session, _ = self.call(client, fetch_request(filled, [(0, 99)], session_epoch=0))
        for epoch in (1, 2):
            reply = client.call(self.more(session, epoch), 12)
            assert [one.error_code for one in reply.responses[0].partitions] == [Error.OFFSET_OUT_OF_RANGE]

    def test_t40_names_and_ids_do_not_mix(self, client: WireClient, filled: str) -> None:
        _, session, _ = self.call(client, fetch_request(filled, [(0, 7)], session_epoch=0))
        assert self.call(client, self.more(session, 1), version=13)[0] == Error.FETCH_SESSION_TOPIC_ID_ERROR

    def test_t21_a_session_outlives_its_topic(self, client: WireClient, topic: str) -> None:
        topic_id = client.create_topic(topic)
        create = fetch_request("", [(0, 0)], session_epoch=0, topic_id=topic_id)
        _, session, _ = self.call(client, create, version=13)
        client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
        assert self.told_errors(client, session, 1) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
        client.create_topic(topic)
        assert self.told_errors(client, session, 2) == [Error.INCONSISTENT_TOPIC_ID]

    def test_t40_the_cache_is_bounded(self, topic: str) -> None:
        with (
            Broker({"max.incremental.fetch.session.cache.slots": "2"}) as broker,
            WireClient(broker.port) as client,
        ):
            client.create_topic(topic)
            made = [self.call(client, fetch_request(topic, [(0, 0)], session_epoch=0))[1] for _ in range(3)]
            assert [bool(session) for session in made] == [True, True, False]

    def test_a_partition_that_had_data_is_read_last_the_next_time(self, client: WireClient, filled: str) -> None:
        create = fetch_request(filled, [(0, 0), (1, 0)], session_epoch=0, max_bytes=1)
        _, session, told = self.call(client, create)
        assert told == {0: 3, 1: 0}
        assert self.call(client, self.more(session, 1, max_bytes=1))[2] == {1: 1}


def test_t41_aborted_transactions_are_null_or_a_list(client: WireClient, filled: str) -> None:
    assert client.fetch(filled, 0, isolation_level=0).aborted_transactions is None
    assert client.fetch(filled, 0, isolation_level=1).aborted_transactions == []
    assert client.fetch(filled, 7, isolation_level=1).aborted_transactions == []


def test_t42_read_committed_reads_all_where_there_are_no_transactions(client: WireClient, filled: str) -> None:
    assert offsets(client.fetch(filled, 0, isolation_level=1).records) == [(0, 3), (3, 2), (5, 1), (6, 1)]


def test_t42_an_empty_log_is_stable_from_its_start(client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    assert head(client.fetch(topic, 0)) == (0, 0, 0, 0)


def test_t44_leader_epochs(client: WireClient, filled: str) -> None:
    assert client.fetch(filled, 0, current_leader_epoch=0).error_code == 0
    for unknown in (-1, -2):
        assert client.fetch(filled, 0, current_leader_epoch=unknown).error_code == 0
    assert head(client.fetch(filled, 0, current_leader_epoch=1)) == (Error.UNKNOWN_LEADER_EPOCH, -1, -1, -1)


def test_a_fetcher_that_went_another_way_is_told_where(client: WireClient, filled: str) -> None:
    data = client.fetch(filled, 3, last_fetched_epoch=0)
    assert (data.error_code, data.diverging_epoch.epoch, len(offsets(data.records))) == (0, -1, 3)
    data = client.fetch(filled, 9, last_fetched_epoch=0)
    assert (head(data), offsets(data.records)) == ((0, 7, 7, 0), [])
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 7)


def test_t45_an_empty_rack_is_no_rack(client: WireClient, filled: str) -> None:
    data = client.fetch(filled, 0, rack_id="")
    assert (data.preferred_read_replica, len(offsets(data.records))) == (-1, 4)


def test_t47_no_leader_is_minus_one(client: WireClient, filled: str) -> None:
    data = client.fetch(filled, 0)
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (-1, -1)


def test_large_replies_leave_the_file_as_they_are(client: WireClient, topic: str) -> None:
    client.create_topic(topic, max_message_bytes="4000000")
    sent = [bytes([index]) * 900_000 for index in range(5)]
    for value in sent:
        client.produce(topic, batch(value))
    data = client.fetch(topic, 0, partition_max_bytes=1 << 24)
    assert offsets(data.records) == [(index, 1) for index in range(5)]
    for value in sent:
        assert value in bytes(data.records)


def test_a_client_that_stops_reading_stops_nobody_else(broker: Broker, client: WireClient, topic: str) -> None:
    client.create_topic(topic, max_message_bytes="4000000")
    for _ in range(8):
        client.produce(topic, batch(bytes(1_000_000)))
    for _ in range(8):
        client.send(fetch_request(topic, [(0, 0)], partition_max_bytes=1 << 24), 12)
    with WireClient(broker.port) as other:
        assert other.call(produce_request(topic, batch(b"x")), 9).responses[0].partition_responses[0].error_code == 0
    for _ in range(8):
        assert len(client.receive().responses[0].partitions[0].records) > 7_000_000
