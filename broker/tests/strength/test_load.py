"""Many consumers, many partitions, and clients that take more than their share. Compared are counts of work done."""

import itertools
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.batches import batch
from support.consumers import Member
from support.meters import MIB, memory_bytes
from support.process import BrokerProcess, broker_process
from support.records import read_values
from support.wire import WireClient, fetch_request, produce_request

from odradek_protocol.errors import Error
from odradek_protocol.messages.api_versions import ApiVersionsRequest
from odradek_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek_protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek_protocol.messages.metadata import MetadataRequest

GROUPS = 100
MEMBERS = 10
FLOOD = 5000
POLITE = 100


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path, {"group.initial.rebalance.delay.ms": "1000"}) as broker:
        yield broker
        assert "Traceback" not in broker.errors()


def connect(stack: ExitStack, process: BrokerProcess) -> WireClient:
    """A connection that the broker has taken: more than its backlog of such that it has not would be held up."""
    client = stack.enter_context(WireClient(process.port))
    assert client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3).error_code == 0
    return client


def test_an_idle_connection_holds_little(process: BrokerProcess) -> None:
    """Once its request is answered there is no task and no buffer for it."""
    count = 2000
    with ExitStack() as stack:
        for _ in range(100):
            connect(stack, process)
        before = memory_bytes(process.pid)
        for _ in range(count):
            connect(stack, process)
        assert memory_bytes(process.pid) - before < count * 2048


def rebalance(members: Sequence[Member]) -> None:
    """All of them join and sync at the same time."""
    for member in members:
        member.ask_to_join()
    for member in members:
        member.take_join()
    for member in members:
        member.ask_to_sync()
    for member in members:
        member.take_sync()


def heartbeats(members: Sequence[Member]) -> set[int]:
    """The error codes that the heartbeats of all of them bring."""
    for member in members:
        member.ask_heartbeat()
    return {member.client.receive().error_code for member in members}


def test_a_thousand_consumers_in_a_hundred_groups(process: BrokerProcess) -> None:
    """They join, commit, lose a member each group and rebalance; each group has one leader and its own members."""
    before = memory_bytes(process.pid)
    with ExitStack() as stack:
        with WireClient(process.port) as client:
            client.create_topic("t")
        groups = [f"group-{number // MEMBERS}" for number in range(GROUPS * MEMBERS)]
        members = [Member(connect(stack, process), group) for group in groups]
        for member in members:
            member.find_coordinator()
            member.take_id()
        rebalance(members)
        assert [member.generation for member in members] == [1] * len(members)
        check_groups(members, MEMBERS)
        assert memory_bytes(process.pid) - before < len(members) * 24 * 1024

        assert heartbeats(members) == {Error.NONE}
        for number, member in enumerate(members):
            member.ask_to_commit("t", number)
        for member in members:
            assert member.client.receive().topics[0].partitions[0].error_code == 0

        leaving, staying = members[::MEMBERS], [one for index, one in enumerate(members) if index % MEMBERS]
        for member in leaving:
            member.leave()
        assert heartbeats(staying) == {Error.REBALANCE_IN_PROGRESS}
        rebalance(staying)
        assert [member.generation for member in staying] == [2] * len(staying)
        check_groups(staying, MEMBERS - 1)
        assert heartbeats(staying) == {Error.NONE}
        assert heartbeats(leaving) == {Error.UNKNOWN_MEMBER_ID}


def check_groups(members: Sequence[Member], size: int) -> None:
    for _, same in itertools.groupby(members, key=lambda member: member.group):
        group = list(same)
        assert len(group) == size
        (leader,) = [member for member in group if member.is_leader]
        assert leader.joined is not None
        assert {one.member_id for one in leader.joined.members} == {member.member_id for member in group}


def test_thousands_of_partitions(tmp_path: Path) -> None:
    """Made, written to here and there, stopped and started again."""
    topics, partitions = 25, 100
    names = [f"t-{number}" for number in range(topics)]
    with broker_process(tmp_path) as process, WireClient(process.port) as client:
        empty = memory_bytes(process.pid)
        client.set_timeout(60)
        for name in names:
            topic = CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
            )
            reply = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
            assert reply.topics[0].error_code == 0
        for index, name in enumerate(names):
            assert client.produce(name, batch(b"x"), index=index).error_code == 0
        assert (memory_bytes(process.pid) - empty) / (topics * partitions) < 10 * 1024
        assert process.stop() == 0
    with broker_process(tmp_path) as process, WireClient(process.port) as client:
        client.set_timeout(60)
        assert memory_bytes(process.pid) - empty < topics * partitions * 10 * 1024
        told = client.call(MetadataRequest(topics=None), 9).topics
        assert {topic.name: len(topic.partitions) for topic in told} == dict.fromkeys(names, partitions)
        for index, name in enumerate(names):
            assert end_offsets(client, name, partitions) == [int(each == index) for each in range(partitions)]


def end_offsets(client: WireClient, topic: str, partitions: int) -> list[int]:
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
    return [one.offset for one in client.call(request, 6).topics[0].partitions]


class Draining:
    """Sends requests that are prepared and takes their replies, in threads, so that neither waits for the other."""

    def __init__(self, client: WireClient, request: Any, version: int, count: int) -> None:
        self.client = client
        self.count = count
        self._sending = threading.Thread(target=self._send, args=(request, version))
        self._receiving = threading.Thread(target=self._receive)
        self.replies = 0

    def start(self) -> None:
        self._sending.start()
        self._receiving.start()

    def join(self) -> None:
        self._sending.join()
        self._receiving.join()

    def _send(self, request: Any, version: int) -> None:
        for _ in range(self.count):
            self.client.send(request, version)

    def _receive(self) -> None:
        for _ in range(self.count):
            self.client.receive_frame()
            self.replies += 1


def test_a_flood_of_requests_does_not_starve_others(process: BrokerProcess) -> None:
    """The log tells the order in which requests were served: the polite client's are among the first of the flood's.

    The broker is stopped while both send, so that all of it is there when it goes on.
    """
    with WireClient(process.port) as flooding, WireClient(process.port) as polite:
        polite.create_topic("t")
        assert flooding.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
        flood = Draining(flooding, produce_request("t", batch(b"flood")), 9, FLOOD)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            flood.start()
            for _ in range(POLITE):
                polite.send(produce_request("t", batch(b"polite")), 9)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        for _ in range(POLITE):
            assert polite.receive().responses[0].partition_responses[0].error_code == 0
        flood.join()
        values = read_values(polite, "t")
    assert (values.count(b"flood"), values.count(b"polite")) == (FLOOD, POLITE)
    last = max(index for index, value in enumerate(values) if value == b"polite")
    assert last < 10 * POLITE


def test_single_requests_pass_between_the_requests_of_a_flood(process: BrokerProcess) -> None:
    """A connection that has more to do gets as many requests in a row at first, then one for each round of the others.

    The log tells the order, as above; a round serves sixteen connections.
    """
    rounds, first_turn = 4, 6
    with ExitStack() as stack:
        flooding = connect(stack, process)
        flooding.create_topic("t")
        single = [connect(stack, process) for _ in range(16 * rounds)]
        flood = Draining(flooding, produce_request("t", batch(b"flood")), 9, FLOOD)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            flood.start()
            for client in single:
                client.send(produce_request("t", batch(b"single")), 9)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        for client in single:
            assert client.receive().responses[0].partition_responses[0].error_code == 0
        flood.join()
        values = read_values(single[0], "t")
    last = max(index for index, value in enumerate(values) if value == b"single")
    assert last < len(single) + first_turn + 2 * rounds


def test_slow_consumers_do_not_hold_back_fast_ones(process: BrokerProcess) -> None:
    """Twenty consumers ask for everything again and again and read nothing; a fast one reads all of it meanwhile."""
    values = [b"%d" % number + bytes(10_000) for number in range(500)]
    with ExitStack() as stack:
        fast = stack.enter_context(WireClient(process.port))
        fast.create_topic("t")
        for start in range(0, len(values), 50):
            assert fast.produce("t", batch(*values[start : start + 50])).error_code == 0
        slow = [connect(stack, process) for _ in range(20)]
        before = memory_bytes(process.pid)
        for client in slow:
            for _ in range(20):
                client.send(fetch_request("t", [(0, 0)], partition_max_bytes=8 * MIB, max_bytes=8 * MIB), 12)
        assert read_values(fast, "t") == values
        assert memory_bytes(process.pid) - before < 8 * MIB
        for client in slow:
            reply = client.receive().responses[0].partitions[0]
            assert (reply.error_code, reply.high_watermark) == (0, len(values))
            assert len(reply.records) > len(values) * 10_000


def test_long_polls_of_many_consumers_end_with_one_record(process: BrokerProcess) -> None:
    """Five hundred consumers wait at the end of a partition; one record answers them all, and they hold no buffer."""
    with ExitStack() as stack:
        producer = stack.enter_context(WireClient(process.port))
        producer.create_topic("t")
        waiting = [connect(stack, process) for _ in range(500)]
        for client in waiting:
            client.send(fetch_request("t", [(0, 0)], max_wait_ms=60_000), 12)
        assert producer.produce("t", batch(b"awaited")).error_code == 0
        for client in waiting:
            assert client.receive().responses[0].partitions[0].high_watermark == 1
