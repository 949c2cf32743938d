"""What OffsetCommit and TxnOffsetCommit have in common: which offsets of a request the coordinator gets to see.

Order of the checks: for each topic UNKNOWN_TOPIC_ID or, where topics are named, UNKNOWN_TOPIC_OR_PARTITION; for each
partition UNKNOWN_TOPIC_OR_PARTITION. What is left is the coordinator's to refuse; if it does not, what has too much
metadata is OFFSET_METADATA_TOO_LARGE. Null metadata is stored as "".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.groups.commits import NOW, NewOffsets
from odradek_protocol.columns import Columns, Fields
from odradek_protocol.errors import Error

if TYPE_CHECKING:
    from odradek.cluster.view import ClusterView

__all__ = ["COMMIT", "COMMIT_WITH_TIME", "CommitReplies"]

_NUMBERS = ("partition_index", "committed_offset", "committed_leader_epoch")

COMMIT = Fields(*_NUMBERS, "committed_metadata")
COMMIT_WITH_TIME = Fields(*_NUMBERS, "commit_timestamp", "committed_metadata")
"""In the order of `NewOffsets`."""

_NONE = Error.NONE
"""Bound here, as every commit asks for it."""


class Topic(Protocol):
    """A topic of a request."""

    name: str
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[Any]: ...


R = TypeVar("R")


class CommitReplies(Generic[R]):
    """The replies for the partitions of one request, and in `offsets` what the coordinator is to store."""

    def __init__(self, fields: Fields, reply: type[R], view: "ClusterView", max_metadata: int) -> None:
        """`fields` is what the request has for each partition, `COMMIT` or `COMMIT_WITH_TIME`; `reply` is what the
        reply has: the index and the error.
        """
        self.offsets: list[NewOffsets] = []
        self.admitted: list[tuple[list[Error], Sequence[int]]] = []
        """The errors of each topic, and which of them the coordinator answers for; without any it is not asked."""
        self._fields = fields
        self._reply = reply
        self._view = view
        self._max_metadata = max_metadata

    def of_topic(self, topic: Topic, *, by_id: bool) -> Sequence[R]:
        """The replies for the partitions of a topic."""
        asked = topic.partitions
        count = len(asked)
        if not count:
            return ()
        columns = self._fields.columns(asked)
        known = self._view.topics_by_id.get(topic.topic_id) if by_id else self._view.topics.get(topic.name)
        if known is None:
            errors = [Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION] * count
        else:
            errors = [_NONE] * count
            self._admit(known.name, len(known.partitions), columns, errors)
        return Columns(self._reply, count, {"partition_index": columns[0], "error_code": errors})

    def _admit(self, topic: str, partitions: int, columns: Sequence[Sequence[Any]], errors: list[Error]) -> None:
        if self._fields is COMMIT:
            *numbers, metadata = columns
            columns = (*numbers, (NOW,) * len(metadata), metadata)
        new = tuple.__new__(NewOffsets, (topic, *columns))  # a frame of Python less than NewOffsets(...)
        indexes, metadata = new.partitions, new.metadata
        admitted: Sequence[int] = range(len(indexes))
        if min(indexes) < 0 or max(indexes) >= partitions:
            admitted = [row for row, index in enumerate(indexes) if 0 <= index < partitions]
            for row in set(range(len(indexes))).difference(admitted):
                errors[row] = Error.UNKNOWN_TOPIC_OR_PARTITION
        if admitted:
            self.admitted.append((errors, admitted))
        stored = admitted
        if metadata.count("") < len(metadata):
            texts = [each or "" for each in metadata]
            new = new._replace(metadata=texts)
            if max(map(len, texts)) > self._max_metadata:
                stored = [row for row in admitted if len(texts[row]) <= self._max_metadata]
                for row in set(admitted).difference(stored):
                    errors[row] = Error.OFFSET_METADATA_TOO_LARGE
        if stored:
            self.offsets.append(new if len(stored) == len(indexes) else new.some(stored))

    def refuse(self, error: Error) -> None:
        """The coordinator takes none of them."""
        for errors, admitted in self.admitted:
            for row in admitted:
                errors[row] = error
