"""Committed offsets of one group: what a commit left for each partition, and when that is forgotten.

`record_offset` is where the commit stands in __consumer_offsets. Of two commits the later record wins, in whatever
order they become visible, so that memory agrees with what a reader of the log would find.

Forgetting follows KIP-211: an offset outlives its group's last member by the retention time. A consumer group that is
stable forgets topics that nobody subscribes to any more, and an offset that nobody manages (no protocol type) ages
from its commit. Offsets that were committed with a retention time of their own (OffsetCommit 2-4) expire by it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["CommittedOffset", "GroupOffsets"]


class CommittedOffset(NamedTuple):
    """One committed offset. `leader_epoch` is -1 when the client sent none, `expire_timestamp_ms` likewise.

    A tuple is made in a third of the time that a frozen dataclass takes, for each partition of each commit.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    record_offset: int


class GroupOffsets:
    """The committed offsets of a group, by topic and partition."""

    __slots__ = ("_newest", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, dict[int, CommittedOffset]] = {}
        self._newest = -1
        """The last `record_offset` of all that was put: what comes behind it needs no comparing."""

    def __bool__(self) -> bool:
        return bool(self.topics)

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """What was committed for a partition; None when nothing was."""
        partitions = self.topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Remember a commit unless a later one is there already."""
        self.put_topic(topic, {partition: committed})

    def put_topic(self, topic: str, commits: Mapping[int, CommittedOffset]) -> None:
        """Remember what one request commits of a topic, except where a later commit is there already."""
        partitions = self.topics.setdefault(topic, {})
        record_offsets = [committed.record_offset for committed in commits.values()]
        if min(record_offsets) > self._newest:
            partitions.update(commits)
        else:
            for partition, committed in commits.items():
                earlier = partitions.get(partition)
                if earlier is None or earlier.record_offset <= committed.record_offset:
                    partitions[partition] = committed
        self._newest = max(self._newest, *record_offsets)

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
            for partition, committed in partitions.items():
                if committed.expire_timestamp_ms >= 0:
                    due_ms = committed.expire_timestamp_ms
                else:
                    since_ms = committed.commit_timestamp_ms if unused_since_ms is None else unused_since_ms
                    due_ms = since_ms + retention_ms
                if now_ms >= due_ms:
                    yield topic, partition
