"""Transactions that are done once each, though nobody hears what became of them."""

from __future__ import annotations

import itertools
import select
import socket
import socketserver
import struct
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from pipeline.admin import create_topics, ends
from pipeline.broker import Broker
from pipeline.generator import Fate, Plan, Record, generate
from pipeline.topics import AD_CLICKS
from pipeline.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)

END_TXN = 26
STALL_S = 5.0
READ_S = 60.0


class Between(socketserver.ThreadingTCPServer):
    """Between clients and a broker. A connection with the next EndTxn goes dead without being closed:
    before the request is through, or before its answer is."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.broker_port = 0
        self.swallows: str | None = None
        self.closing = threading.Event()

    def serve(self, broker: Broker) -> None:
        self.broker_port = int(broker.bootstrap_servers.rpartition(":")[2])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take_swallows(self) -> str | None:
        swallows, self.swallows = self.swallows, None
        return swallows


class _Connection(socketserver.BaseRequestHandler):
    server: Between

    def handle(self) -> None:
        client: socket.socket = self.request
        with socket.create_connection(("127.0.0.1", self.server.broker_port)) as broker:
            while True:
                ready, _, _ = select.select([client, broker], [], [])
                if broker in ready:
                    answer = broker.recv(65536)
                    if not answer:
                        return
                    client.sendall(answer)
                if client in ready and not self._pass(client, broker):
                    return

    def _pass(self, client: socket.socket, broker: socket.socket) -> bool:
        """Let one request through; tell whether the connection lives on."""
        size = client.recv(4, socket.MSG_WAITALL)
        if len(size) < 4:
            return False
        request = client.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)
        swallows = None
        if struct.unpack_from(">h", request)[0] == END_TXN:
            swallows = self.server.take_swallows()
        if swallows != "request":
            broker.sendall(size + request)
        if swallows == "answer":
            broker.recv(65536)
        if swallows is not None:
            self.server.closing.wait()
        return swallows is None


@pytest.fixture
def between() -> Iterator[Between]:
    with Between() as server:
        yield server
        server.closing.set()
        server.shutdown()


@pytest.fixture
def bootstrap_servers(between: Between, tmp_path: Path) -> Iterator[str]:
    """A broker that clients reach through `between` only."""
    with Broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{between.address}"}) as broker:
        between.serve(broker)
        create_topics(between.address)
        yield between.address


def clicks(transactions: int, *, aborted: float) -> list[Record]:
    """All records of this many transactions."""
    found = (record for record in generate(Plan(seed=3, start_ms=0, rate=100, aborted=aborted)) if record.transaction)
    return list(itertools.takewhile(lambda record: (record.transaction or 0) <= transactions, found))


def read(bootstrap_servers: str) -> Counter[bytes]:
    """The values that are committed."""
    found: Counter[bytes] = Counter()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    end = {
        TopicPartition(AD_CLICKS, n): offset for n, offset in ends(bootstrap_servers, [AD_CLICKS])[AD_CLICKS].items()
    }
    consumer.assign(list(end))
    deadline = time.monotonic() + READ_S
    while any(consumer.position(place) < offset for place, offset in end.items()):
        assert time.monotonic() < deadline
        for records in consumer.poll(1000).values():
            found.update(record.value for record in records)
    consumer.close()
    return found


@pytest.mark.parametrize("fate", [Fate.LANDED, Fate.ABORTED])
@pytest.mark.parametrize("swallows", ["request", "answer"])
def test_the_end_of_a_transaction_that_nobody_hears_of(
    between: Between, bootstrap_servers: str, swallows: str, fate: Fate
) -> None:
    records = clicks(3, aborted=float(fate is Fate.ABORTED))
    transactions = Transactions(bootstrap_servers, "clicks", "progress", STALL_S)
    for record in records:
        if record.transaction == 2:
            between.swallows = swallows
        transactions.send(record)
    transactions.end()
    transactions.close()
    assert between.swallows is None
    expected = [] if fate is Fate.ABORTED else [record.value for record in records]
    assert read(bootstrap_servers) == Counter(expected)


def test_a_transaction_whose_producer_is_fenced(bootstrap_servers: str) -> None:
    records = clicks(2, aborted=0.0)
    transactions = Transactions(bootstrap_servers, "clicks", "progress", STALL_S)
    for record in records[:5]:
        transactions.send(record)
    other = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id="clicks")
    other.init_transactions()
    other.close()
    for record in records[5:]:
        transactions.send(record)
    transactions.end()
    transactions.close()
    assert read(bootstrap_servers) == Counter(record.value for record in records)
