"""Bytes in and out of a non-blocking socket, with as few calls as can be.

trio's own streams pass a checkpoint at each call, which costs more than the call; here a task only gives way when the
socket would block. The reader of a busy connection therefore has to give way now and then by itself (`server`).

Replies leave in parts: neighbouring bytes in one `send`, and slices of a log straight from its file by `sendfile`.
"""

import os
import socket
from collections.abc import Sequence

import trio

from odradek.log.segment import LogSlice
from odradek_protocol.codec import Part

__all__ = ["send_all", "send_parts"]

COPY_BELOW = 32 * 1024
"""Slices smaller than this are read and sent with their neighbours: one call less than sendfile between two sends."""

COLD_PROBE = bytearray(1)


async def send_all(sock: socket.socket, data: bytes | memoryview, flags: int = 0) -> None:
    """Send all of `data`.

    Raises OSError when the peer is gone.
    """
    sent = 0
    view = memoryview(data)
    while True:
        try:
            sent += sock.send(view[sent:] if sent else view, flags)
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
            continue
        if sent == len(view):
            return


async def send_parts(sock: socket.socket, parts: Sequence[Part]) -> None:
    """Send the parts of a frame in order; log slices go by sendfile.

    Raises OSError when the peer is gone or a file cannot be read.
    """
    waiting: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if not isinstance(part, LogSlice):
            waiting.append(part)  # type: ignore[arg-type]  # the only Records there are is LogSlice
        elif part.size < COPY_BELOW:
            waiting.append(part.read_bytes())
        else:
            await send_all(sock, b"".join(waiting), socket.MSG_MORE)
            waiting.clear()
            await _send_slice(sock, part)
    if waiting:
        await send_all(sock, b"".join(waiting))


async def _send_slice(sock: socket.socket, part: LogSlice) -> None:
    position, end = part.position, part.position + part.size
    out, file = sock.fileno(), part.file.fd
    warm = _is_warm(file, position)
    while position < end:
        try:
            if warm:
                sent = os.sendfile(out, file, position, end - position)
            else:
                await trio.to_thread.run_sync(os.posix_fadvise, file, position, end - position, os.POSIX_FADV_WILLNEED)
                await trio.to_thread.run_sync(os.pread, file, 1, end - 1)
                warm = True
                continue
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
            continue
        if sent == 0:
            raise OSError(f"{part!r} ends before its {part.size} bytes")
        position += sent


def _is_warm(file: int, position: int) -> bool:
    """Whether the page cache holds the byte at `position`, so that reading from there does not wait for the disk."""
    try:
        os.preadv(file, [COLD_PROBE], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    return True
