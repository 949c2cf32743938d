"""Clients that send too much, too little or nonsense.

The broker answers or closes, its memory is bounded, and it goes on serving the others.
"""

import random
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.batches import batch
from support.meters import MIB, memory_bytes, socket_count, wait_until
from support.process import BrokerProcess, broker_process
from support.wire import WireClient, produce_request

from odradek.handlers.registry import load_all, served
from odradek_protocol.codec import encode
from odradek_protocol.header import request_header
from odradek_protocol.messages.api_versions import ApiVersionsRequest
from odradek_protocol.messages.metadata import MetadataRequest
from odradek_protocol.messages.produce import ProduceRequest
from odradek_protocol.schema import Api, Field, Struct

load_all()

ASKED = ApiVersionsRequest(client_software_name="probe", client_software_version="1.0")
WAITING = (1, 11)
"""Fetch and JoinGroup, which may wait for as long as the request says."""

EMPTY: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "array": ()}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all of this module: what one test does to it must not show in the next."""
    with broker_process(tmp_path_factory.mktemp("broker")) as broker:
        yield broker
        assert broker.stop() == 0
        assert "Traceback" not in broker.errors()


@pytest.fixture(autouse=True)
def goes_on_serving(process: BrokerProcess) -> Iterator[None]:
    """After each test another client is answered, and the connections of the test are gone."""
    before = socket_count(process.pid)
    yield
    with WireClient(process.port) as other:
        assert other.call(ASKED, 3).error_code == 0
    wait_until(lambda: socket_count(process.pid) <= before, "connections are left")


def frame_of(body: Any, version: int) -> bytes:
    flexible = version >= body.API.flexible
    header = request_header(body.API.key, version, 1, "probe", flexible=flexible)
    return header + encode(body, version, flexible=flexible)


def with_elements(kind: type[Struct], version: int) -> Struct:
    """A message whose arrays have one element each, so that every count in it is sent."""
    values = {}
    for field in kind.FIELDS:
        value = _one_of(field, version) if field.in_version(version) else field.absent_value
        values[field.name] = value
    return kind(**values)


def _one_of(field: Field, version: int) -> Any:
    element = field.of
    if field.kind == "array":
        assert element is not None
        return [_one_of(element, version) if isinstance(element, Field) else with_elements(element, version)]
    if field.kind == "struct":
        assert isinstance(element, type)
        return with_elements(element, version)
    return {"string": "x", "bytes": b"x", "records": b"x", "uuid": bytes(16), "bool": False, "float64": 0.0}.get(
        field.kind, 0
    )


def test_frames_cut_at_every_byte(process: BrokerProcess) -> None:
    """A frame that says it ends early is refused at every length; one whose sender goes away leaves nothing behind."""
    produce = frame_of(produce_request("cut", batch(b"x")), 9)
    for end in range(8, len(produce)):
        with WireClient(process.port) as client:
            client.send_frame(produce[:end])
            assert client.is_closed_by_broker(), end
    whole = struct.pack(">i", len(produce)) + produce
    for end in range(len(whole)):
        with WireClient(process.port) as client:
            client.send_raw(whole[:end])
    with WireClient(process.port) as client:
        names = [topic.name for topic in client.call(MetadataRequest(topics=None), 9).topics]
    assert "cut" not in names, "a request of which a byte lacks does nothing"


def with_one_empty(message: Struct, version: int) -> Iterator[Struct]:
    """The message once for each string, byte string and array in it, with that one empty."""
    values = {field.name: getattr(message, field.name) for field in message.FIELDS}
    for field in message.FIELDS:
        if not field.in_version(version):
            continue
        value = values[field.name]
        if field.kind in EMPTY:
            yield type(message)(**values | {field.name: EMPTY[field.kind]})
        if isinstance(field.of, type):
            inner = value[0] if field.kind == "array" else value
            for emptied in with_one_empty(inner, version):
                yield type(message)(**values | {field.name: [emptied] if field.kind == "array" else emptied})


def with_huge_count(frame: bytes, emptied: bytes, *, flexible: bool) -> bytes:
    """The frame with the largest length or count where the two frames begin to differ: at the last byte of a count."""
    position = next(index for index, (one, other) in enumerate(zip(frame, emptied, strict=False)) if one != other)
    if flexible:
        return frame[:position] + b"\xff\xff\xff\xff\x07" + frame[position + 1 :]
    return frame[: position - 1] + b"\x7f\xff" + frame[position + 1 :]


@pytest.mark.parametrize("api", served(), ids=lambda api: api.name)
def test_counts_larger_than_the_frame(process: BrokerProcess, api: Api) -> None:
    """The largest count for each string and array of the request in turn: the broker closes, and takes no memory."""
    before = memory_bytes(process.pid)
    for version in {api.first, api.last}:
        body = with_elements(api.request, version)
        frame = frame_of(body, version)
        for emptied in with_one_empty(body, version):
            with WireClient(process.port) as client:
                client.send_frame(with_huge_count(frame, frame_of(emptied, version), flexible=version >= api.flexible))
                assert client.is_closed_by_broker(), emptied
    assert memory_bytes(process.pid) - before < 4 * MIB


def test_a_slow_sender_holds_up_nobody(process: BrokerProcess) -> None:
    """Each byte of one client's request lies between two whole requests of another."""
    frame = frame_of(ASKED, 3)
    with WireClient(process.port) as slow, WireClient(process.port) as fast:
        for byte in struct.pack(">i", len(frame)) + frame:
            slow.send_raw(bytes([byte]))
            assert fast.call(ASKED, 3).error_code == 0
        assert slow.receive_frame()[:4] == bytes.fromhex("00000001")


def test_two_thousand_idle_connections(process: BrokerProcess) -> None:
    """Each takes its bookkeeping and no buffer; half of them stopped in the middle of a frame, which takes a page."""
    count = 2000
    before = memory_bytes(process.pid)
    with ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = stack.enter_context(WireClient(process.port))
            assert client.call(ASKED, 3).error_code == 0
            clients.append(client)
        answered = memory_bytes(process.pid)
        for client in clients[::2]:
            client.send_raw(b"\0\0\0")
        for client in clients[1::2]:
            assert client.call(ASKED, 3).error_code == 0
        stopped = memory_bytes(process.pid)
    assert (answered - before) / count < 10 * 1024
    assert (stopped - answered) / (count // 2) < 8 * 1024


def test_frames_that_are_declared_and_never_come(process: BrokerProcess) -> None:
    before = memory_bytes(process.pid)
    with ExitStack() as stack:
        hostile = [stack.enter_context(WireClient(process.port)) for _ in range(50)]
        for client in hostile:
            client.send_raw(struct.pack(">i", 100 * MIB) + bytes(100))
        with WireClient(process.port) as polite:
            for _ in range(100):
                assert polite.call(ASKED, 3).error_code == 0
        assert memory_bytes(process.pid) - before < 4 * MIB


def test_large_frames_give_their_memory_back(process: BrokerProcess) -> None:
    """Frames of 64 MiB that did come: what is kept for the next ones is bounded."""
    frame = frame_of(ASKED, 3)
    before = memory_bytes(process.pid)
    for _ in range(3):
        with WireClient(process.port) as client:
            client.send_frame(frame + bytes(64 * MIB))
            assert client.receive_frame()
    # A reply leaves before the system has taken back what its request was received into.
    wait_until(lambda: memory_bytes(process.pid) - before < 4 * MIB, "the memory of large frames is kept")


def send_forever(client: WireClient, data: bytes) -> None:
    """Send until the broker takes no more. TimeoutError then."""
    while True:
        client.send_raw(data)


def test_tens_of_thousands_of_requests_whose_replies_nobody_reads(process: BrokerProcess) -> None:
    """The broker reads no further when its replies are not taken; its memory stays, and others are served."""
    frame = frame_of(MetadataRequest(topics=None), 9)
    pipelined = (struct.pack(">i", len(frame)) + frame) * 10_000
    with WireClient(process.port) as client:
        for number in range(100):
            client.create_topic(f"wide-{number}")
    before = memory_bytes(process.pid)
    with WireClient(process.port) as flooder:
        flooder.set_timeout(0.2)
        with pytest.raises(TimeoutError):
            send_forever(flooder, pipelined)
        with WireClient(process.port) as polite:
            for _ in range(100):
                assert polite.call(ASKED, 3).error_code == 0
        assert memory_bytes(process.pid) - before < 4 * MIB


def test_a_stream_of_large_frames_leaves_turns_to_others(process: BrokerProcess) -> None:
    """While one client sends 16 MiB frames as fast as it can, each request of another is answered between them."""
    chunk = struct.pack(">i", 16 * MIB) + frame_of(ASKED, 3)
    chunk += bytes(16 * MIB + 4 - len(chunk))
    sent = 0
    done = threading.Event()

    def flood() -> None:
        nonlocal sent
        with WireClient(process.port) as flooder:
            while not done.is_set():
                flooder.send_raw(chunk)
                sent += 1
            for _ in range(sent):
                flooder.receive_frame()

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        wait_until(lambda: sent > 0, "the flood begins")
        before = sent
        with WireClient(process.port) as polite:
            for _ in range(100):
                assert polite.call(ASKED, 3).error_code == 0
        assert sent - before < 100
    finally:
        done.set()
        thread.join()


def test_noise_of_every_kind(process: BrokerProcess) -> None:
    """Right headers with random bodies, and random bytes, from a fixed seed: each is answered or closed."""
    noise = random.Random(4)
    apis = [api for api in served() if api.key not in WAITING]
    for _ in range(300):
        api = noise.choice(apis)
        version = noise.randint(api.first, api.last)
        header = request_header(api.key, version, 1, "probe", flexible=version >= api.flexible)
        body = noise.randbytes(noise.randrange(200))
        with WireClient(process.port) as client:
            client.send_frame(header + body if noise.random() < 0.7 else body)
            client.is_closed_by_broker()


def test_connections_reset_in_the_middle(process: BrokerProcess) -> None:
    """Clients that vanish with a reset, at any moment of a request and its reply."""
    frame = frame_of(produce_request("reset", batch(b"x")), 9)
    whole = struct.pack(">i", len(frame)) + frame
    for end in range(0, len(whole) + 1, 7):
        with WireClient(process.port) as client:
            client.send_raw(whole[:end])
            client.reset_when_closed()


def test_produce_with_a_batch_of_noise(process: BrokerProcess) -> None:
    """Records that are no batch are refused with an error, and the connection goes on."""
    noise = random.Random(5)
    with WireClient(process.port) as client:
        client.create_topic("noise")
        for _ in range(200):
            data = bytearray(batch(b"value"))
            data[noise.randrange(len(data))] ^= 1 << noise.randrange(8)
            reply = client.produce("noise", data)
            assert reply.error_code in (0, 2, 10, 32, 42, 43, 45, 47, 48, 76, 87), reply
        assert client.produce("noise", batch(b"sound")).error_code == 0


def test_no_reply_for_acks_0_is_no_way_to_fill_memory(process: BrokerProcess) -> None:
    """acks=0 asks for no reply, so nothing holds the client up but the broker's pace."""
    request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=produce_request("free", batch(b"x" * 100)).topic_data)
    with WireClient(process.port) as client:
        client.create_topic("free")
        before = memory_bytes(process.pid)
        for _ in range(10_000):
            client.send(request, 9, expect_reply=False)
        assert client.fetch("free", 0).high_watermark == 10_000
        assert memory_bytes(process.pid) - before < 4 * MIB
