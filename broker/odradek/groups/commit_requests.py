"""What OffsetCommit and TxnOffsetCommit have in common: which offsets of a request the coordinator gets to see.

Order of the checks: for each topic UNKNOWN_TOPIC_ID or, where topics are named, UNKNOWN_TOPIC_OR_PARTITION; for each
partition UNKNOWN_TOPIC_OR_PARTITION. What is left is the coordinator's to refuse; if it does not, what has too much
metadata is OFFSET_METADATA_TOO_LARGE. Null metadata is stored as "".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.groups.commits import NOW, NewOffsets
from odradek_protocol.columns import Columns, column
from odradek_protocol.errors import Error

if TYPE_CHECKING:
    from odradek.cluster.view import ClusterView

__all__ = ["CommitReplies"]


class Topic(Protocol):
    """A topic of a request."""

    name: str
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[Any]: ...


R = TypeVar("R")


class CommitReplies(Generic[R]):
    """The replies for the partitions of one request, and in `offsets` what the coordinator is to store."""

    def __init__(self, reply: type[R], view: "ClusterView", max_metadata: int) -> None:
        """`reply` is what a reply has for each partition: the index and the error."""
        self.offsets: list[NewOffsets] = []
        self._reply = reply
        self._view = view
        self._max_metadata = max_metadata
        self._admitted: list[tuple[list[Error], Sequence[int]]] = []
        """The errors of each topic, and which of them the coordinator answers for."""

    @property
    def any_admitted(self) -> bool:
        """Whether the coordinator is to be asked."""
        return bool(self._admitted)

    def of_topic(self, topic: Topic, *, by_id: bool) -> Sequence[R]:
        """The replies for the partitions of a topic."""
        asked = topic.partitions
        count, indexes = len(asked), column(asked, "partition_index")
        known = self._view.topics_by_id.get(topic.topic_id) if by_id else self._view.topics.get(topic.name)
        if known is None:
            errors = [Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION] * count
        else:
            errors = [Error.NONE] * count
            if count:
                self._admit(known.name, len(known.partitions), asked, indexes, errors)
        return Columns(self._reply, count, {"partition_index": indexes, "error_code": errors})

    def _admit(
        self, topic: str, partitions: int, asked: Sequence[Any], indexes: Sequence[int], errors: list[Error]
    ) -> None:
        metadata = column(asked, "committed_metadata")
        alike = metadata.count(metadata[0]) == len(metadata)
        if metadata[0] is None or not alike:
            metadata = [each or "" for each in metadata]
        longest = len(metadata[0]) if alike else max(map(len, metadata))
        admitted: Sequence[int] = range(len(indexes))
        if min(indexes) < 0 or max(indexes) >= partitions:
            admitted = [row for row, index in enumerate(indexes) if 0 <= index < partitions]
            for row in set(range(len(indexes))).difference(admitted):
                errors[row] = Error.UNKNOWN_TOPIC_OR_PARTITION
        if admitted:
            self._admitted.append((errors, admitted))
        stored = admitted
        if longest > self._max_metadata:
            stored = [row for row in admitted if len(metadata[row]) <= self._max_metadata]
            for row in set(admitted).difference(stored):
                errors[row] = Error.OFFSET_METADATA_TOO_LARGE
        columns: list[Sequence[Any]] = [
            indexes,
            column(asked, "committed_offset"),
            column(asked, "committed_leader_epoch"),
            column(asked, "commit_timestamp", NOW),
            metadata,
        ]
        if len(stored) < len(indexes):
            columns = [[values[row] for row in stored] for values in columns]
        if stored:
            self.offsets.append(NewOffsets(topic, *columns))

    def refuse(self, error: Error) -> None:
        """The coordinator takes none of them."""
        for errors, admitted in self._admitted:
            for row in admitted:
                errors[row] = error
