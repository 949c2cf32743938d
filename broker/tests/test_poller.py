"""Requests of one connection are answered in order, whoever serves them: the poller, a task, or a look later on."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio
from support.batches import batch
from support.wire import WireClient, fetch_request

from odradek import poller
from odradek.testing import Broker
from odradek_protocol.messages.api_versions import ApiVersionsRequest
from odradek_protocol.messages.heartbeat import HeartbeatRequest
from odradek_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

LONG_MS = 60_000


@pytest.fixture(scope="module", params=["where trio sleeps", "in a task"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "in a task":
            patch.setattr(poller, "_trio_epoll_fd", lambda: None)
        with Broker() as running:
            yield running


def test_the_installed_trio_lets_its_epoll_be_found() -> None:
    async def find() -> int | None:
        return poller._trio_epoll_fd()

    assert trio.run(find) is not None


def test_a_long_poll_ends_with_the_record_that_it_waits_for(broker: Broker, client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    with WireClient(broker.port) as consumer:
        for number in range(20):
            consumer.send(fetch_request(topic, [(0, number)], max_wait_ms=LONG_MS), 12)
            assert client.produce(topic, batch(b"awaited")).base_offset == number
            assert consumer.receive().responses[0].partitions[0].high_watermark == number + 1


def test_a_long_poll_ends_when_its_time_is_over(client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    for _ in range(3):
        reply = client.call(fetch_request(topic, [(0, 0)], max_wait_ms=20), 12)
        assert reply.responses[0].partitions[0].high_watermark == 0


def test_what_is_sent_behind_a_long_poll_waits_for_its_answer(broker: Broker, client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    with WireClient(broker.port) as consumer:
        consumer.send(fetch_request(topic, [(0, 0)], max_wait_ms=LONG_MS), 12)
        consumer.send(ApiVersionsRequest(), 0)
        consumer.send(fetch_request(topic, [(0, 1)], max_wait_ms=LONG_MS), 12)
        consumer.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0)
        for number in range(2):
            client.produce(topic, batch(b"awaited"))
            assert consumer.receive().responses[0].partitions[0].high_watermark == number + 1
            consumer.receive()


def test_requests_of_every_kind_sent_together_are_answered_in_order(client: WireClient, topic: str) -> None:
    """Answered from memory, by a task, and by a task that waits; the client compares correlation ids."""
    client.create_topic(topic)
    for _ in range(30):
        client.send(ApiVersionsRequest(), 0)
        client.send(MetadataRequest(topics=[MetadataRequestTopic(name=f"{topic}-absent")]), 1)
        client.send(fetch_request(topic, [(0, 0)], max_wait_ms=1), 12)
        client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0)
    for _ in range(120):
        client.receive()


def test_a_client_that_leaves_a_long_poll_leaves_nothing_behind(broker: Broker, client: WireClient, topic: str) -> None:
    client.create_topic(topic)
    with WireClient(broker.port) as consumer:
        consumer.send(fetch_request(topic, [(0, 0)], max_wait_ms=LONG_MS), 12)
        assert client.call(fetch_request(topic, [(0, 0)]), 12).responses
    client.produce(topic, batch(b"for nobody"))
    assert broker.node is not None
    partition = broker.node.partitions.get(topic, 0)
    assert partition is not None
    client.call(ApiVersionsRequest(), 0)
    assert not partition.waiters


def test_connections_that_are_reset_before_their_reply_hold_up_no_other(broker: Broker) -> None:
    """Replies of several connections are sent in a row: some of these connections are gone by then."""
    with ExitStack() as stack:
        staying = [stack.enter_context(WireClient(broker.port)) for _ in range(20)]
        for _ in range(10):
            leaving = [stack.enter_context(WireClient(broker.port)) for _ in range(5)]
            for one in [*leaving, *staying]:
                one.send(ApiVersionsRequest(), 0)
            for one in leaving:
                one.reset_when_closed()
                one.close()
            for one in staying:
                one.receive()


def test_a_stop_answers_who_waits(topic: str) -> None:
    with Broker() as broker, WireClient(broker.port) as consumer, WireClient(broker.port) as other:
        consumer.create_topic(topic)
        consumer.send(fetch_request(topic, [(0, 0)], max_wait_ms=LONG_MS), 12)
        assert broker.node is not None
        partition = broker.node.partitions.get(topic, 0)
        assert partition is not None
        while not partition.waiters:
            other.call(ApiVersionsRequest(), 0)
        broker.stop()
        assert consumer.receive().responses[0].partitions[0].high_watermark == 0
