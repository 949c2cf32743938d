"""What a broker allows: connections, memory, idle time, open files; each limit on both of its sides."""

import random
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.batches import batch
from support.process import broker_process
from support.records import read_values
from support.wire import WireClient

from odradek.testing import Broker
from odradek_protocol.messages.api_versions import ApiVersionsRequest

ASKED = ApiVersionsRequest(client_software_name="probe", client_software_version="1.0")

NOTHING_COMES_S = 0.3
"""How long to look for a reply that must not come; a broker that sends one does so within a few milliseconds."""


@contextmanager
def connected(broker: Broker, count: int) -> Iterator[list[WireClient]]:
    """Connections that the broker has answered once, so they count."""
    with ExitStack() as stack:
        clients = [stack.enter_context(WireClient(broker.port)) for _ in range(count)]
        for client in clients:
            assert client.call(ASKED, 3).error_code == 0
        yield clients


def lent_bytes(broker: Broker) -> int:
    """The memory that connections hold for requests."""
    assert broker.node is not None
    return broker.node.server.buffers.lent_bytes


def is_answered(client: WireClient) -> bool:
    """Whether a request is answered, rather than the connection closed."""
    try:
        client.send(ASKED, 3)
        return bool(client.receive().error_code == 0)
    except (EOFError, ConnectionError):
        return False


@pytest.mark.parametrize(
    "limit",
    [{"max.connections": "3"}, {"max.connections.per.ip": "3"}, {"max.connections.per.ip.overrides": "127.0.0.1:3"}],
)
def test_the_number_of_connections(limit: dict[str, str]) -> None:
    with Broker(limit) as broker:
        with connected(broker, 3), WireClient(broker.port) as one_more:
            assert not is_answered(one_more)
        answered = False
        while not answered:
            with WireClient(broker.port) as after:
                answered = is_answered(after)


def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    with Broker({"connections.max.idle.ms": "400"}) as broker, connected(broker, 2) as (idle, busy):
        idle.set_timeout(0.02)
        while True:
            assert busy.call(ASKED, 3).error_code == 0
            try:
                assert idle.is_closed_by_broker()
                break
            except TimeoutError:
                continue
        assert busy.call(ASKED, 3).error_code == 0


def test_a_frame_that_never_ends_is_idle_too() -> None:
    with Broker({"connections.max.idle.ms": "200"}) as broker, WireClient(broker.port) as slow:
        slow.send_raw(bytes.fromhex("00000100"))
        assert slow.is_closed_by_broker()


def test_requests_wait_while_others_fill_the_memory() -> None:
    """Two connections hold a buffer of 64 KiB each, as much as is allowed; the third one is served when one ends."""
    limits = {"socket.request.max.bytes": "100000", "queued.max.request.bytes": "131072"}
    with Broker(limits) as broker, connected(broker, 3) as (first, second, third):
        for client in (first, second):
            client.send_raw(bytes.fromhex("00008000") + bytes(100))
        while lent_bytes(broker) < 131072:
            pass
        third.send(ASKED, 3)
        third.set_timeout(NOTHING_COMES_S)
        with pytest.raises(TimeoutError):
            third.receive()
        first.close()
        third.set_timeout(20)
        assert third.receive().error_code == 0


def test_below_the_limit_nobody_waits() -> None:
    limits = {"socket.request.max.bytes": "100000", "queued.max.request.bytes": "131073"}
    with Broker(limits) as broker, connected(broker, 3) as (first, second, third):
        for client in (first, second):
            client.send_raw(bytes.fromhex("00008000") + bytes(100))
        while lent_bytes(broker) < 131072:
            pass
        assert third.call(ASKED, 3).error_code == 0


def test_socket_request_max_bytes() -> None:
    with Broker({"socket.request.max.bytes": "1000"}) as broker, connected(broker, 1) as (client,):
        client.send_frame(bytes.fromhex("00030000000000010000") + b"\0\0\0\0" + bytes(1000 - 14))
        assert len(client.receive_frame()) > 0
        client.send_raw(bytes.fromhex("000003e9"))
        assert client.is_closed_by_broker()


def test_running_out_of_file_descriptors_passes(tmp_path: Path) -> None:
    """More connections than the process may have files: the broker goes on, and serves again when some have ended."""
    with broker_process(tmp_path) as broker:
        _, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (64, hard))
        crowd = [socket.create_connection(("127.0.0.1", broker.port), 20) for _ in range(100)]
        while "cannot accept a connection" not in broker.errors():
            assert broker.running
        for one in crowd:
            one.close()
        with WireClient(broker.port) as client:
            assert client.call(ASKED, 3).error_code == 0
        assert broker.stop() == 0
        assert "Traceback" not in broker.errors()


def test_buffers_smaller_than_what_goes_through_them() -> None:
    """A request comes, and a reply leaves, in as many pieces as the sockets take."""
    small = {"socket.send.buffer.bytes": "16384", "socket.receive.buffer.bytes": "65536"}
    value = random.Random(1).randbytes(900_000)
    with Broker(small) as broker, WireClient(broker.port) as client:
        client.create_topic("t")
        assert client.produce("t", batch(value)).error_code == 0
        assert read_values(client, "t") == [value]
