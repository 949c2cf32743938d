"""Bytes out of a non-blocking socket, with as few calls as can be.

What goes without waiting goes at once, in the caller's task or outside of any; only what is left then is for a task to
await. trio's own streams pass a checkpoint at each call, which costs more than the call.

Frames leave in parts: neighbouring bytes in one `send`, and slices of a log straight from its file by `sendfile`.
"""

import os
import socket
from collections.abc import Sequence
from typing import Any

import trio

from odradek.log.segment import LogSlice
from odradek_protocol.codec import Part

__all__ = ["Outgoing"]

COPY_BELOW = 32 * 1024
"""Slices smaller than this are read and sent with their neighbours: one call less than sendfile between two sends."""

Piece = bytes | LogSlice


class Outgoing:
    """Bytes and log slices on their way to one socket."""

    __slots__ = ("_pieces", "_sent", "_sock", "_warm", "is_cold")

    def __init__(self, sock: socket.socket, parts: Sequence[Part]) -> None:
        """Raises OSError when a small slice cannot be read from its file."""
        self._sock = sock
        self._pieces = _gathered(parts)
        self._sent = 0
        """Bytes of the first piece that are gone."""
        self._warm = False
        """Whether the first piece is a slice that the page cache holds."""
        self.is_cold = False
        """Whether `send_now` stopped because a file has to be read from the disk, and not at a full socket."""

    def send_now(self) -> bool:
        """Send what goes without waiting; whether that was all.

        Raises OSError when the peer is gone or a file cannot be read.
        """
        pieces = self._pieces
        try:
            while pieces:
                piece = pieces[0]
                if isinstance(piece, LogSlice):
                    if not self._send_slice(piece):
                        return False
                else:
                    sent = self._sent
                    more = socket.MSG_MORE if len(pieces) > 1 else 0
                    self._sent = sent = sent + self._sock.send(memoryview(piece)[sent:] if sent else piece, more)
                    if sent < len(piece):
                        continue
                del pieces[0]
                self._sent = 0
                self._warm = False
        except BlockingIOError:
            return False
        return True

    def _send_slice(self, piece: LogSlice) -> bool:
        """Send all of a slice; False when the file is not in memory, BlockingIOError when the socket is full."""
        sent, size = self._sent, piece.size
        if not self._warm:
            self._warm = piece.is_in_memory(sent)
            if not self._warm:
                self.is_cold = True
                return False
        file, sock, position = piece.file.fd, self._sock.fileno(), piece.position
        while sent < size:
            gone = os.sendfile(sock, file, position + sent, size - sent)
            if gone == 0:
                raise OSError(f"{piece!r} ends before its {size} bytes")
            self._sent = sent = sent + gone
        return True

    async def send_rest(self) -> None:
        """Send what is left, waiting for socket and disk. Raises as `send_now` does."""
        while True:
            if self.is_cold:
                await self._warm_up()
            else:
                await trio.lowlevel.wait_writable(self._sock)
            if self.send_now():
                return

    async def _warm_up(self) -> None:
        """Let the system read the first slice ahead, and wait for its end."""
        piece = self._pieces[0]
        assert isinstance(piece, LogSlice)
        file, start = piece.file.fd, piece.position + self._sent
        size = piece.size - self._sent
        await trio.to_thread.run_sync(os.posix_fadvise, file, start, size, os.POSIX_FADV_WILLNEED)
        await trio.to_thread.run_sync(os.pread, file, 1, start + size - 1)
        self.is_cold, self._warm = False, True


def _gathered(parts: Sequence[Part]) -> list[Piece]:
    """The parts with neighbouring bytes and small slices joined."""
    pieces: list[Piece] = []
    small: list[Any] = []
    start = 0
    kinds = list(map(type, parts))
    for _ in range(kinds.count(LogSlice)):
        number = kinds.index(LogSlice, start)
        part: Any = parts[number]
        small += parts[start:number]
        start = number + 1
        if part.size < COPY_BELOW:
            small.append(part.read_bytes())
        else:
            if small:
                pieces.append(b"".join(small))
                small = []
            pieces.append(part)
    small += parts[start:]
    if small:
        pieces.append(b"".join(small))
    return pieces
