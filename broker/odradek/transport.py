"""Bytes out of a non-blocking socket, with as few calls as can be.

What goes without waiting goes at once, in the caller's task or outside of any; only what is left then is for a task to
await. trio's own streams pass a checkpoint at each call, which costs more than the call.

Frames leave in parts: neighbouring bytes in one `send`, and slices of a log straight from its file by `sendfile`.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

import trio

from odradek.log.segment import LogSlice
from odradek_protocol.codec import Part

__all__ = ["Outgoing"]

COPY_BELOW = 32 * 1024
"""Slices smaller than this are read and sent with their neighbours: one call less than sendfile between two sends."""

Piece = bytes | LogSlice
_joined: Callable[[list[Any]], bytes] = b"".join


class Outgoing:
    """Bytes and log slices on their way to one socket."""

    __slots__ = ("_pieces", "_sent", "_sock", "is_cold")

    def __init__(self, sock: socket.socket, parts: list[Part]) -> None:
        """The list of `parts` is the sender's from now on. Raises OSError when a small slice cannot be read."""
        self._sock = sock
        self._pieces = _gathered(parts)
        self._sent = 0
        """Bytes of the first piece that are gone."""
        self.is_cold = False
        """Whether `send_now` stopped because a file has to be read from the disk, and not at a full socket."""

    def send_now(self) -> bool:
        """Send what goes without waiting; whether that was all.

        Raises OSError when the peer is gone or a file cannot be read.
        """
        sock, pieces, sent = self._sock, self._pieces, self._sent
        try:
            while pieces:
                piece = pieces[0]
                if type(piece) is LogSlice:
                    if not (piece.in_memory or piece.is_in_memory(sent)):
                        self.is_cold = True
                        return False
                    size = piece.size
                    gone = os.sendfile(sock.fileno(), piece.file.fd, piece.position + sent, size - sent)
                    if gone == 0:
                        raise OSError(f"{piece!r} ends before its {size} bytes")
                else:
                    size = len(piece)
                    rest = memoryview(piece)[sent:] if sent else piece
                    gone = sock.send(rest, socket.MSG_MORE if len(pieces) > 1 else 0)
                sent += gone
                if sent == size:
                    del pieces[0]
                    sent = 0
        except BlockingIOError:
            return False
        finally:
            self._sent = sent
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
        assert type(piece) is LogSlice
        file, start = piece.file.fd, piece.position + self._sent
        size = piece.size - self._sent
        await trio.to_thread.run_sync(os.posix_fadvise, file, start, size, os.POSIX_FADV_WILLNEED)
        await trio.to_thread.run_sync(os.pread, file, 1, start + size - 1)
        self.is_cold, piece.in_memory = False, True


def _gathered(parts: list[Part]) -> list[Piece]:
    """The parts with neighbouring bytes and small slices joined."""
    pieces: list[Piece] = []
    kinds = list(map(type, parts))
    start = unjoined = 0
    for _ in range(kinds.count(LogSlice)):
        at = kinds.index(LogSlice, start)
        part: Any = parts[at]
        start = at + 1
        if part.size < COPY_BELOW:
            parts[at] = part.read_bytes()
        else:
            if unjoined < at:
                pieces.append(_joined(parts[unjoined:at]))
            pieces.append(part)
            unjoined = start
    if unjoined < len(parts):
        pieces.append(_joined(parts[unjoined:]))
    return pieces
