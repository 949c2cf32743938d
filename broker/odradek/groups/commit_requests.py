"""What OffsetCommit and TxnOffsetCommit have in common: which offsets of a request the coordinator gets to see.

Order of the checks: for each topic UNKNOWN_TOPIC_ID or, where topics are named, UNKNOWN_TOPIC_OR_PARTITION; for each
partition UNKNOWN_TOPIC_OR_PARTITION. What is left is the coordinator's to refuse; if it does not, what has too much
metadata is OFFSET_METADATA_TOO_LARGE. Null metadata is stored as "".
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.groups.shard import NewOffset
from odradek_protocol.errors import Error

if TYPE_CHECKING:
    from odradek.cluster.view import ClusterView

__all__ = ["CommitReplies"]

NOW = -1
"""The timestamp of a commit that tells none, as all do but those of version 1 of OffsetCommit."""


class Topic(Protocol):
    """A topic of a request."""

    name: str
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[Any]: ...


class Reply(Protocol):
    """What is said of a partition."""

    error_code: int


R = TypeVar("R", bound=Reply)


class CommitReplies(Generic[R]):
    """The replies for the partitions of one request.

    `admitted` are those that the coordinator answers for, `offsets` what it is to store.
    """

    def __init__(self, make: Callable[..., R], view: "ClusterView", max_metadata: int) -> None:
        """`make` makes the reply for a partition of its index and error code."""
        self.admitted: list[R] = []
        self.offsets: list[NewOffset] = []
        self._make = make
        self._view = view
        self._max_metadata = max_metadata

    def of_topic(self, topic: Topic, *, by_id: bool) -> list[R]:
        """The replies for the partitions of a topic."""
        known = self._view.topics_by_id.get(topic.topic_id) if by_id else self._view.topics.get(topic.name)
        if known is None:
            error = Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
            return [self._make(partition_index=each.partition_index, error_code=error) for each in topic.partitions]
        replies = []
        count = len(known.partitions)
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            reply = self._make(partition_index=index, error_code=Error.NONE)
            replies.append(reply)
            if not 0 <= index < count:
                reply.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
                continue
            self.admitted.append(reply)
            if len(metadata) > self._max_metadata:
                reply.error_code = Error.OFFSET_METADATA_TOO_LARGE
                continue
            offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
            timestamp_ms = getattr(partition, "commit_timestamp", NOW)
            self.offsets.append((known.name, index, offset, leader_epoch, timestamp_ms, metadata))
        return replies

    def refuse(self, error: Error) -> None:
        """The coordinator takes none of them."""
        for reply in self.admitted:
            reply.error_code = error
