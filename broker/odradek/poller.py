"""Which connections have something to read.

An epoll of its own holds all connections, and is itself what one task of trio waits for. Waiting for each socket by
itself would cost each request a system call to say so and a switch to another task; a round of requests shares both.
"""

import select
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from odradek.channel import Channel

__all__ = ["Poller"]

ROUNDS_IN_A_ROW = 4
"""How often everybody who is ready is served before the other tasks get a turn."""

READY_AT_ONCE = 16
"""Connections that are served in one round: with what each may do in its turn, some milliseconds at most."""


class Poller:
    """Serves the connections that are parked with it, as bytes come for them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._channels: dict[int, Channel] = {}

    def add(self, channel: "Channel") -> None:
        """Look after a connection from now on, until `remove`."""
        fd = channel.sock.fileno()
        self._channels[fd] = channel
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, channel: "Channel") -> None:
        """Look away: the connection is busy, or is about to be closed."""
        fd = channel.sock.fileno()
        del self._channels[fd]
        self._epoll.unregister(fd)

    async def run(self) -> None:
        """Serve until cancelled."""
        epoll, channels = self._epoll, self._channels
        unfinished: list[Channel] = []
        try:
            while True:
                for _ in range(ROUNDS_IN_A_ROW):
                    ready = [channels[fd] for fd, _ in epoll.poll(0, READY_AT_ONCE)]
                    if unfinished:
                        ready += [channel for channel in unfinished if channel.is_parked and channel not in ready]
                    if not ready:
                        await trio.lowlevel.wait_readable(epoll.fileno())
                        break
                    unfinished = [channel for channel in ready if channel.serve_now()]
                else:
                    await trio.lowlevel.checkpoint()
        finally:
            epoll.close()
