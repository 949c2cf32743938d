"""The sockets that listen."""

import socket

import pytest

from odradek.config.listeners import Listener
from odradek.server import WITHIN_A_HOST, open_listener


def listener(host: str) -> Listener:
    return Listener("PLAINTEXT", host, 0, "PLAINTEXT")


def congestion_control(sock: socket.socket) -> bytes:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connections_within_the_host_are_not_paced(host: str) -> None:
    with open_listener(listener(host), 1) as sock, socket.create_connection(sock.getsockname()[:2]):
        accepted, _ = sock.accept()
        with accepted:
            assert congestion_control(accepted) == WITHIN_A_HOST


def test_others_have_what_the_system_is_set_to() -> None:
    with socket.socket() as plain, open_listener(listener(""), 1) as sock:
        assert congestion_control(sock) == congestion_control(plain)


def test_an_address_that_is_taken_is_named() -> None:
    with open_listener(listener("127.0.0.1"), 1) as sock:
        taken = Listener("PLAINTEXT", "127.0.0.1", sock.getsockname()[1], "PLAINTEXT")
        with pytest.raises(OSError, match=f"PLAINTEXT://127.0.0.1:{taken.port} cannot be opened: Address already"):
            open_listener(taken, 1)
