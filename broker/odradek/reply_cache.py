"""Replies that depend on nothing but the cluster's metadata and who asks, kept as bytes until the metadata changes.

Clients ask for metadata again and again (an idle Spark query 65 times a second), and it nearly never changes: what
costs hundreds of microseconds to describe and encode for a hundred partitions is then a look-up. Nothing that went
wrong is kept, so an error is judged anew each time.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from odradek_protocol.connection import EncodedReply, Request, encode_reply

if TYPE_CHECKING:
    from odradek.cluster.view import ClusterView
    from odradek.server import Connection

__all__ = ["ReplyCache"]

MAX_REPLIES = 256
"""Different questions that are remembered; a broker hears a handful."""

MAX_BYTES = 8 * 1024 * 1024
"""What the replies may take in all."""


class ReplyCache:
    """The replies for one state of `view`."""

    def __init__(self, view: "ClusterView") -> None:
        self._view = view
        self._revision = view.revision
        self._replies: dict[Hashable, EncodedReply] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._replies)

    def find(self, connection: "Connection", request: Request[Any], asked: Hashable) -> EncodedReply | None:
        """What was answered to this question, if the metadata is still the same. `asked` is the request's content."""
        if self._revision != self._view.revision:
            self._revision = self._view.revision
            self._replies.clear()
            self._bytes = 0
            return None
        return self._replies.get(_key(connection, request, asked))

    def keep(
        self, connection: "Connection", request: Request[Any], asked: Hashable, revision: int, response: Any
    ) -> EncodedReply:
        """Encode a reply, and keep it if the metadata is still at the `revision` from which it was made."""
        reply = encode_reply(request, response)
        if revision == self._revision == self._view.revision:
            if len(self._replies) >= MAX_REPLIES or self._bytes + len(reply.data) > MAX_BYTES:
                self._replies.clear()
                self._bytes = 0
            self._replies[_key(connection, request, asked)] = reply
            self._bytes += len(reply.data)
        return reply


def _key(connection: "Connection", request: Request[Any], asked: Hashable) -> Hashable:
    """A client is told addresses as it dialled them, so the listener and its own address are part of the question."""
    return (
        request.api.key,
        request.version,
        connection.listener,
        connection.local_host,
        connection.local_port,
        asked,
    )
