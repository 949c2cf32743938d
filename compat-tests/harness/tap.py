"""A proxy on the loopback interface that keeps a copy of every request frame on its way to a broker."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_CHUNK_BYTES = 1 << 16


class Tap:
    """Forwards connections to `upstream`; `frames` are the requests so far, without their sizes.

    A broker behind it has to advertise `address`, so that clients stay on this side.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.upstream = ""
        self.frames: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)  # type: ignore[arg-type]  # a method of this class
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            host, _, port = self.upstream.rpartition(":")
            broker = socket.create_connection((host, int(port)))
            self._sockets += [client, broker]
            self._start(self._forward, client, broker, True)
            self._start(self._forward, broker, client, False)

    def _forward(self, source: socket.socket, target: socket.socket, keep: bool) -> None:
        pending = bytearray()
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                target.sendall(data)
                if keep:
                    pending += data
                    self._take_frames(pending)
            target.shutdown(socket.SHUT_WR)

    def _take_frames(self, pending: bytearray) -> None:
        while len(pending) >= 4 and len(pending) >= 4 + (size := struct.unpack_from(">i", pending)[0]):
            self.frames.append(bytes(pending[4 : 4 + size]))
            del pending[: 4 + size]
