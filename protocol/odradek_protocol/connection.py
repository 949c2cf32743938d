"""One connection, without I/O: bytes in, requests out, replies as bytes; and the same for a client.

A frame is an int32 size and that many bytes. The server side receives into one buffer, and decodes a request where it
lies:

    buffer = connection.receive_buffer()      # a memoryview to receive into
    connection.received(sock.recv_into(buffer))
    while (request := connection.next_request()) is not None:
        ...
        sock.sendall(connection.reply(request, response))

Rules:

- The memoryviews in a request (`records`) point into the buffer: they hold until the next `receive_buffer`.
- A frame that does not fit the buffer gets a larger one, once, from `buffers`, and the connection's next buffer is as
  large as its last frame, so that a stream of large frames is received in place too. Nothing is allocated for a frame
  above the limit, and no count inside it is believed beyond the bytes there are.
- After a ProtocolError nothing more can be read: where the next frame starts is not known any more.
- Replies go out in the order of their requests; Kafka's clients rely on it. The caller sees to it by answering one
  request before it takes the next.
"""

import mmap
import struct
from collections import defaultdict
from typing import Any, Generic, TypeVar

from odradek_protocol.codec import Decoder, Encoder, Part, decoder, encoder
from odradek_protocol.errors import Error, ProtocolError
from odradek_protocol.header import (
    API_VERSIONS,
    MIN_REQUEST_SIZE,
    read_client_id,
    request_header,
    request_header_v0,
    skip_tags,
)
from odradek_protocol.schema import Api, apis

__all__ = ["Buffers", "ClientConnection", "EncodedReply", "Request", "ServerConnection", "encode_reply"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SMALL_BUFFER = 64 * 1024
"""What a connection receives into until a larger frame comes: four produce batches of the usual 16 KiB."""

LARGEST_KEPT = 16 * 1024 * 1024
"""Buffers above this are given back to the system after use; smaller ones wait for the next connection."""

DEFAULT_MAX_REQUEST_BYTES = 100 * 1024 * 1024
"""Kafka's `socket.request.max.bytes`."""

_read_size = struct.Struct(">i").unpack_from
_read_start = struct.Struct(">iii").unpack_from
"""The size of a frame, and of the request in it key and version, as one number, and the correlation id."""
_join = struct.Struct(">i").pack
_split = struct.Struct(">hh").unpack
_SMALLEST_FRAME = 4 + MIN_REQUEST_SIZE
_reply_v0 = struct.Struct(">ii").pack
_reply_v1 = struct.Struct(">iix").pack


class Buffers:
    """Receive buffers that connections borrow while bytes are on their way; an idle connection holds none.

    Sizes are powers of two from `SMALL_BUFFER`, so that a returned buffer serves other frames. `max_kept_bytes`
    bounds what waits here, `kept_bytes`; `lent_bytes` is what connections hold now.

    A buffer is a mapping of its own, which the system fills with memory page by page as bytes arrive: a client that
    declares 100 MiB and sends none takes none.
    """

    def __init__(self, max_kept_bytes: int = 32 * 1024 * 1024) -> None:
        self.max_kept_bytes = max_kept_bytes
        self._bytes = 0
        """In all buffers that there are, wherever."""
        self._at_hand: memoryview | None = None
        """A small one, which the next connection is most likely to want: connections are served one by one."""
        self._others: defaultdict[int, list[memoryview]] = defaultdict(list)
        """All else that waits, by size."""
        self._others_bytes = 0

    @property
    def kept_bytes(self) -> int:
        return self._others_bytes if self._at_hand is None else self._others_bytes + SMALL_BUFFER

    @property
    def lent_bytes(self) -> int:
        return self._bytes - self.kept_bytes

    def borrow(self, size: int) -> memoryview:
        """A buffer of at least `size` bytes."""
        if size <= SMALL_BUFFER:
            buffer = self._at_hand
            if buffer is not None:
                self._at_hand = None
                return buffer
            capacity = SMALL_BUFFER
        else:
            capacity = 1 << (size - 1).bit_length() if size <= LARGEST_KEPT else size
        others = self._others.get(capacity)
        if others:
            self._others_bytes -= capacity
            return others.pop()
        self._bytes += capacity
        memory = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        return memoryview(memory)

    def give_back(self, buffer: memoryview) -> None:
        """Take a buffer back; nobody may look at it any more."""
        capacity = len(buffer)
        others_bytes = self._others_bytes + capacity
        if self._at_hand is None and capacity == SMALL_BUFFER and others_bytes <= self.max_kept_bytes:
            self._at_hand = buffer
        elif capacity <= LARGEST_KEPT and self.kept_bytes + capacity <= self.max_kept_bytes:
            self._others_bytes = others_bytes
            self._others[capacity].append(buffer)
        else:
            self._bytes -= capacity


class Request(Generic[T_co]):
    """One request: what its header says, and its message.

    `supported` is false for an ApiVersions request in a version that is not served: it carries an empty body of
    version 0, and is to be answered with UNSUPPORTED_VERSION in that version (KIP-511). `size` is in bytes, without the
    four of the frame's size.
    """

    __slots__ = ("api", "body", "client_id", "correlation_id", "size", "supported", "version")

    def __init__(
        self,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str | None,
        body: T_co,
        size: int = 0,
        *,
        supported: bool = True,
    ) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body
        self.size = size
        self.supported = supported

    def __repr__(self) -> str:
        return (
            f"{self.api.name} v{self.version} (correlation id {self.correlation_id}, client id {self.client_id!r}, "
            f"{self.size} bytes)"
        )


class EncodedReply:
    """The body of a reply as bytes: made once by `encode_reply`, sent any number of times."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


_readers: dict[int, tuple[Api, int, bool, Decoder]] = {}
"""By key and version, as one number."""
_writers: dict[tuple[int, int], tuple[bool, Encoder]] = {}


def _reader(key_and_version: int) -> tuple[Api, int, bool, Decoder] | None:
    """How to read a request: its API and version, whether it is flexible, its decoder.

    None for ApiVersions in a version that is not served; ProtocolError for any other such request.
    """
    key, version = _split(_join(key_and_version))
    api = apis.get(key)
    if api is None:
        raise ProtocolError(f"API key {key} (version {version}) is not known")
    if not api.first <= version <= api.last:
        if key == API_VERSIONS:
            return None
        raise ProtocolError(f"{api.name} version {version} is not served, only {api.first} to {api.last}")
    flexible = version >= api.flexible
    entry = _readers[key_and_version] = (api, version, flexible, decoder(api.request, version, flexible))
    return entry


def _writer(api: Api, version: int) -> tuple[bool, Encoder]:
    flexible = version >= api.flexible
    entry = (flexible and api.key != API_VERSIONS, encoder(api.response, version, flexible))
    _writers[api.key, version] = entry
    return entry


def encode_reply(request: Request[Any], response: Any) -> EncodedReply:
    """The body of a reply that holds no `Records`, to be sent for `request` and for others of its API and version."""
    key = request.api.key
    _, encode = _writers.get((key, request.version)) or _writer(request.api, request.version)
    parts: list[Any] = []
    encode(response, parts.append)
    return EncodedReply(b"".join(parts))


class ServerConnection:
    """The server's side of one connection."""

    __slots__ = ("_buffer", "_buffers", "_needed", "_start", "_usual", "max_request_bytes", "pending_bytes")

    def __init__(self, buffers: Buffers | None = None, max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES) -> None:
        self.max_request_bytes = max_request_bytes
        self.pending_bytes = 0
        """Bytes that were received and belong to no request yet."""
        self._buffers = buffers or Buffers()
        self._buffer: memoryview | None = None
        self._start = 0
        """Where the pending bytes lie."""
        self._needed = 0
        self._usual = 0

    @property
    def holds_buffer(self) -> bool:
        """Whether a buffer is borrowed."""
        return self._buffer is not None

    def receive_buffer(self) -> memoryview:
        """Where to put the next bytes: never empty. Ends the life of the last request's memoryviews."""
        buffer = self._buffer
        if buffer is None:
            self._start = 0
            buffer = self._buffer = self._buffers.borrow(self._usual)
            return buffer
        pending = self.pending_bytes
        start = self._start = self._start if pending else 0
        needed = max(self._needed, pending + 1)
        if start + needed > len(buffer):
            old = buffer
            if needed > len(buffer):
                buffer = self._buffer = self._buffers.borrow(needed)
            buffer[:pending] = old[start : start + pending]
            if buffer is not old:
                self._buffers.give_back(old)
            start = self._start = 0
        return buffer[start + pending :]

    def received(self, size: int) -> None:
        """Say that `size` bytes were put into the buffer that `receive_buffer` gave."""
        self.pending_bytes += size

    def receive_data(self, data: bytes | memoryview) -> None:
        """Take bytes that are somewhere else; for callers that do not receive in place."""
        view = memoryview(data)
        while view:
            buffer = self.receive_buffer()
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            self.received(size)
            view = view[size:]
            self._expect()

    def _expect(self) -> None:
        """Note what the frame needs that is coming in.

        Raises ProtocolError when its size is negative, too small for a header or above the limit.
        """
        buffer = self._buffer
        if buffer is None or self.pending_bytes < 4:
            self._needed = 4
            return
        size: int = _read_size(buffer, self._start)[0]
        if not MIN_REQUEST_SIZE <= size <= self.max_request_bytes:
            raise ProtocolError(f"a request of {size} bytes; {MIN_REQUEST_SIZE} to {self.max_request_bytes} may come")
        self._needed = size + 4

    def release(self) -> None:
        """Give the buffer back if no bytes are pending: to be called before a wait of unknown length."""
        buffer = self._buffer
        if buffer is not None and not self.pending_bytes:
            self._buffer = None
            self._buffers.give_back(buffer)

    def close(self) -> None:
        """Give the buffer back, whatever is in it."""
        self.pending_bytes = self._needed = 0
        self.release()

    def next_request(self) -> Request[Any] | None:
        """The next whole request, or None when more bytes are needed for it.

        Raises ProtocolError when the bytes are no request that is served: an impossible size, an unknown API key, a
        version that is not served (but for ApiVersions), or a body that does not decode.
        """
        received, buffer = self.pending_bytes, self._buffer
        if buffer is None or received < _SMALLEST_FRAME:
            if received:
                self._expect()
            return None
        start = self._start
        size, key_and_version, correlation_id = _read_start(buffer, start)
        whole = size + 4
        if received < whole or not MIN_REQUEST_SIZE <= size <= self.max_request_bytes:
            self._expect()
            return None
        frame = buffer[start + 4 : start + whole]
        self._start = start + whole
        self.pending_bytes = received - whole
        self._needed = 0
        self._usual = whole
        reader = _readers.get(key_and_version) or _reader(key_and_version)
        if reader is None:
            api = apis[API_VERSIONS]
            body, _ = decoder(api.request, 0, False)(memoryview(b""), 0)
            return Request(api, 0, correlation_id, None, body, size, supported=False)
        api, version, flexible, decode = reader
        client_id, position = read_client_id(frame, 8) if version >= api.client_id_since else (None, 8)
        if flexible:
            position = skip_tags(frame, position)
        body, _ = decode(frame, position)
        return Request(api, version, correlation_id, client_id, body, size)

    def reply(self, request: Request[Any], response: Any) -> bytes:
        """The frame of a reply that has no `Records` in it."""
        tagged, encode = _writers.get((request.api.key, request.version)) or _writer(request.api, request.version)
        if type(response) is EncodedReply:
            body = response.data
        else:
            parts: list[Any] = []
            encode(response, parts.append)
            body = b"".join(parts)
        if tagged:
            return _reply_v1(len(body) + 5, request.correlation_id) + body
        return _reply_v0(len(body) + 4, request.correlation_id) + body

    def reply_parts(self, request: Request[Any], response: Any) -> list[Part]:
        """The frame of a reply, in parts; `Records` among them are for the sender to send."""
        tagged, encode = _writers.get((request.api.key, request.version)) or _writer(request.api, request.version)
        parts: list[Part] = [b""]
        encode(response, parts.append)
        size = sum(map(len, parts))
        if tagged:
            parts[0] = _reply_v1(size + 5, request.correlation_id)
        else:
            parts[0] = _reply_v0(size + 4, request.correlation_id)
        return parts


class ClientConnection:
    """The client's side of one connection: requests to bytes, bytes to replies, in order."""

    def __init__(self, client_id: str | None = None, max_reply_bytes: int = DEFAULT_MAX_REQUEST_BYTES) -> None:
        self.client_id = client_id
        self.max_reply_bytes = max_reply_bytes
        self._correlation_id = 0
        self._sent: list[tuple[int, Api, int]] = []
        self._data = bytearray()

    def send(self, body: Any, version: int, *, expect_reply: bool = True) -> bytes:
        """The frame of a request; `expect_reply` is false for a Produce with acks=0.

        Raises ProtocolError when `body` does not fit the version.
        """
        api: Api = type(body).API
        flexible = version >= api.flexible
        self._correlation_id += 1
        if version >= api.client_id_since:
            header = request_header(api.key, version, self._correlation_id, self.client_id, flexible=flexible)
        else:
            header = request_header_v0(api.key, version, self._correlation_id)
        parts: list[Any] = [header]
        encoder(api.request, version, flexible)(body, parts.append)
        if expect_reply:
            self._sent.append((self._correlation_id, api, version))
        frame = b"".join(parts)
        return len(frame).to_bytes(4, "big") + frame

    def receive_data(self, data: bytes) -> None:
        """Take bytes that came from the broker."""
        self._data += data

    def next_reply(self) -> Any | None:
        """The next whole reply, or None when more bytes are needed for it.

        Raises ProtocolError when the bytes are not the reply to the oldest request without one.
        """
        if len(self._data) < 4:
            return None
        size = _read_size(self._data, 0)[0]
        if not 4 <= size <= self.max_reply_bytes:
            raise ProtocolError(f"a reply of {size} bytes; 4 to {self.max_reply_bytes} may come")
        if len(self._data) < size + 4:
            return None
        frame = memoryview(bytes(self._data[4 : size + 4]))
        del self._data[: size + 4]
        if not self._sent:
            raise ProtocolError("a reply to no request")
        expected, api, version = self._sent.pop(0)
        (correlation_id,) = _read_size(frame, 0)
        if correlation_id != expected:
            raise ProtocolError(f"the reply's correlation id is {correlation_id}, not {expected}")
        flexible = version >= api.flexible
        position = skip_tags(frame, 4) if flexible and api.key != API_VERSIONS else 4
        if api.key == API_VERSIONS and int.from_bytes(frame[4:6], "big", signed=True) == Error.UNSUPPORTED_VERSION:
            version, flexible = 0, False
        body, end = decoder(api.response, version, flexible)(frame, position)
        if end != len(frame):
            raise ProtocolError(f"{len(frame) - end} bytes behind the reply to {api.name} v{version}")
        return body
