"""The sockets that listen."""

import socket

import pytest

from odradek.config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.server import WITHIN_A_HOST, open_listener

CONFIG = BrokerConfig()


def listener(host: str) -> Listener:
    return Listener("PLAINTEXT", host, 0, "PLAINTEXT")


def congestion_control(sock: socket.socket) -> bytes:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connections_within_the_host_are_not_paced(host: str) -> None:
    with open_listener(listener(host), CONFIG) as sock, socket.create_connection(sock.getsockname()[:2]):
        accepted, _ = sock.accept()
        with accepted:
            assert congestion_control(accepted) == WITHIN_A_HOST


def test_others_have_what_the_system_is_set_to() -> None:
    with socket.socket() as plain, open_listener(listener(""), CONFIG) as sock:
        assert congestion_control(sock) == congestion_control(plain)


@pytest.mark.parametrize(
    ("key", "option"),
    [("socket.send.buffer.bytes", socket.SO_SNDBUF), ("socket.receive.buffer.bytes", socket.SO_RCVBUF)],
)
def test_connections_have_the_buffers_that_are_named(key: str, option: int) -> None:
    """Linux doubles what it is given (socket(7)); -1, and no word, leave the choice to the system."""
    sizes = []
    for config in (BrokerConfig({key: "16384"}), BrokerConfig({key: "-1"}), CONFIG):
        with open_listener(listener("127.0.0.1"), config) as sock, socket.create_connection(sock.getsockname()):
            accepted, _ = sock.accept()
            with accepted:
                sizes.append(accepted.getsockopt(socket.SOL_SOCKET, option))
    assert sizes[0] == 2 * 16384
    assert sizes[1] == sizes[2] != sizes[0]


def test_an_address_that_is_taken_is_named() -> None:
    with open_listener(listener("127.0.0.1"), CONFIG) as sock:
        taken = Listener("PLAINTEXT", "127.0.0.1", sock.getsockname()[1], "PLAINTEXT")
        with pytest.raises(OSError, match=f"PLAINTEXT://127.0.0.1:{taken.port} cannot be opened: Address already"):
            open_listener(taken, CONFIG)
