"""What OffsetCommit and TxnOffsetCommit have in common: which offsets of a request the coordinator gets to see.

Order of the checks: for each topic UNKNOWN_TOPIC_ID or, where topics are named, UNKNOWN_TOPIC_OR_PARTITION; for each
partition UNKNOWN_TOPIC_OR_PARTITION. What is left is the coordinator's to refuse; if it does not, what has too much
metadata is OFFSET_METADATA_TOO_LARGE. Null metadata is stored as "".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.groups.commits import NOW, NewOffsets
from odradek_protocol.columns import Columns
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


Q = TypeVar("Q")
R = TypeVar("R")


class CommitReplies(Generic[Q, R]):
    """The replies for the partitions of one request, and in `offsets` what the coordinator is to store."""

    def __init__(self, asked: type[Q], reply: type[R], view: "ClusterView", max_metadata: int) -> None:
        """`asked` is what a request has for each partition, `reply` what its reply has: the index and the error."""
        self.offsets: list[NewOffsets] = []
        self._asked = asked
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
        asked = Columns.of(self._asked, topic.partitions)
        count, indexes = len(asked), asked.column("partition_index")
        known = self._view.topics_by_id.get(topic.topic_id) if by_id else self._view.topics.get(topic.name)
        if known is None:
            errors = [Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION] * count
        else:
            errors = [Error.NONE] * count
            if count:
                self._admit(known.name, len(known.partitions), asked, errors)
        return Columns(self._reply, count, {"partition_index": indexes, "error_code": errors})

    def _admit(self, topic: str, partitions: int, asked: Columns[Q], errors: list[Error]) -> None:
        indexes = asked.column("partition_index")
        metadata = asked.column("committed_metadata")
        distinct = metadata[:1] if metadata.count(metadata[0]) == len(metadata) else metadata
        if None in distinct:
            metadata = [each or "" for each in metadata]
        admitted: Sequence[int] = range(len(indexes))
        if min(indexes) < 0 or max(indexes) >= partitions:
            admitted = [row for row, index in enumerate(indexes) if 0 <= index < partitions]
            for row in set(range(len(indexes))).difference(admitted):
                errors[row] = Error.UNKNOWN_TOPIC_OR_PARTITION
        if admitted:
            self._admitted.append((errors, admitted))
        stored = admitted
        if max(len(each or "") for each in distinct) > self._max_metadata:
            stored = [row for row in admitted if len(metadata[row]) <= self._max_metadata]
            for row in set(admitted).difference(stored):
                errors[row] = Error.OFFSET_METADATA_TOO_LARGE
        columns: list[Sequence[Any]] = [
            indexes,
            asked.column("committed_offset"),
            asked.column("committed_leader_epoch"),
            asked.find("commit_timestamp") or [NOW] * len(indexes),
            metadata,
        ]
        if len(stored) < len(indexes):
            columns = [[column[row] for row in stored] for column in columns]
        if stored:
            self.offsets.append(NewOffsets(topic, *columns))

    def refuse(self, error: Error) -> None:
        """The coordinator takes none of them."""
        for errors, admitted in self._admitted:
            for row in admitted:
                errors[row] = error
