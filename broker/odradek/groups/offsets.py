"""Committed offsets of one group: what a commit left for each partition, and when that is forgotten.

`record_offset` is where the commit stands in __consumer_offsets. Of two commits the later record wins, in whatever
order they become visible, so that memory agrees with what a reader of the log would find.

Forgetting follows KIP-211: an offset outlives its group's last member by the retention time. A consumer group that is
stable forgets topics that nobody subscribes to any more, and an offset that nobody manages (no protocol type) ages
from its commit. Offsets that were committed with a retention time of their own (OffsetCommit 2-4) expire by it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["Commit", "CommittedOffset", "GroupOffsets", "Row"]


class CommittedOffset(NamedTuple):
    """One committed offset. `leader_epoch` is -1 when the client sent none, `expire_timestamp_ms` likewise."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    record_offset: int


Row = tuple[int, int, str, int, int, int]
"""The fields of a `CommittedOffset`, as it is kept: `zip` makes a hundred of them in one call."""

Commit = tuple[str, Sequence[int], Sequence[Row]]
"""What is committed of a topic: partitions, and a row for each, in the order of their records."""

RECORD_OFFSET: Final = 5
"""Where a row has the last field."""


class GroupOffsets:
    """The committed offsets of a group, by topic and partition."""

    __slots__ = ("_newest", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, dict[int, Row]] = {}
        self._newest = -1
        """The last `record_offset` of all that was put: what comes behind it needs no comparing."""

    def __bool__(self) -> bool:
        return bool(self.topics)

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """What was committed for a partition; None when nothing was."""
        partitions = self.topics.get(topic)
        row = None if partitions is None else partitions.get(partition)
        return None if row is None else CommittedOffset._make(row)

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Remember a commit unless a later one is there already."""
        self.put_topic((topic, (partition,), (committed,)))

    def put_topic(self, commit: Commit) -> None:
        """Remember what one request commits of a topic, except where a later commit is there already."""
        topic, indexes, rows = commit
        partitions = self.topics.setdefault(topic, {})
        if rows[0][RECORD_OFFSET] > self._newest:
            partitions.update(zip(indexes, rows, strict=True))
            self._newest = rows[-1][RECORD_OFFSET]
            return
        for partition, row in zip(indexes, rows, strict=True):
            earlier = partitions.get(partition)
            if earlier is None or earlier[RECORD_OFFSET] <= row[RECORD_OFFSET]:
                partitions[partition] = row
        self._newest = max(self._newest, rows[-1][RECORD_OFFSET])

    def remove(self, topic: str, partition: int) -> None:
        """Forget a partition; nothing happens when it is not known."""
        partitions = self.topics.get(topic)
        if partitions is not None and partitions.pop(partition, None) is not None and not partitions:
            del self.topics[topic]

    def partitions(self) -> list[tuple[str, int]]:
        """Every (topic, partition) with an offset."""
        return [(topic, partition) for topic, partitions in self.topics.items() for partition in partitions]

    def expired(
        self, now_ms: int, retention_ms: int, *, unused_since_ms: int | None, in_use: frozenset[str]
    ) -> Iterator[tuple[str, int]]:
        """The partitions whose offsets have outlived the retention time.

        `unused_since_ms` is when the group lost its last member; None where each offset ages from its own commit.
        Topics `in_use` are left out.
        """
        for topic, partitions in self.topics.items():
            if topic in in_use:
                continue
            for partition, row in partitions.items():
                committed = CommittedOffset._make(row)
                if committed.expire_timestamp_ms >= 0:
                    due_ms = committed.expire_timestamp_ms
                else:
                    since_ms = committed.commit_timestamp_ms if unused_since_ms is None else unused_since_ms
                    due_ms = since_ms + retention_ms
                if now_ms >= due_ms:
                    yield topic, partition
