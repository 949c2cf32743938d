"""Committed offsets of one group: what a commit left for each partition, and when that is forgotten.

`record_offset` is where the commit stands in __consumer_offsets. Of two commits the later record wins, in whatever
order they become visible, so that memory agrees with what a reader of the log would find.

Forgetting follows KIP-211: an offset outlives its group's last member by the retention time. A consumer group that is
stable forgets topics that nobody subscribes to any more, and an offset that nobody manages (no protocol type) ages
from its commit. Offsets that were committed with a retention time of their own (OffsetCommit 2-4) expire by it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
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

RECORD_OFFSET: Final = 5
"""Where a row has the last field."""

BY_RECORD = attrgetter("record_offset")

LAST_KEPT = 64
"""So many commits of one group wait to become rows; more do at once."""


class Commit(NamedTuple):
    """What one request commits of a topic: in each column a value for each partition, in the order of their records."""

    topic: str
    partitions: Sequence[int]
    offsets: Sequence[int]
    leader_epochs: Sequence[int]
    metadata: Sequence[str]
    timestamps_ms: Sequence[int]
    expire_timestamp_ms: int
    record_offset: int
    """That of the first record."""

    def part(self, start: int, stop: int) -> "Commit":
        """What is committed of some of the partitions."""
        rows = [column[start:stop] for column in self[1:6]]
        return Commit._make((self.topic, *rows, self.expire_timestamp_ms, self.record_offset + start))

    def by_partition(self) -> Iterable[tuple[int, Row]]:
        """Each partition, and what is kept of it."""
        return zip(self.partitions, self.rows(), strict=True)

    def rows(self) -> list[Row]:
        """What is kept of each partition."""
        _, _, offsets, leader_epochs, metadata, timestamps_ms, expire_ms, first = self
        record_offsets = range(first, first + len(offsets))
        return list(zip(offsets, leader_epochs, metadata, timestamps_ms, repeat(expire_ms), record_offsets))


class GroupOffsets:
    """The committed offsets of a group, by topic and partition.

    Of what is committed most is never asked for: the next commit of the same partitions comes before. So the last ones
    are kept as they came, and become rows when somebody asks (`_settled`).
    """

    __slots__ = ("_last", "_newest", "_rows")

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, Row]] = {}
        self._last: dict[tuple[str, int], Commit] = {}
        """By topic and first partition; their records are later than those of all rows."""
        self._newest = -1
        """The last `record_offset` of all that was put: what comes behind it needs no comparing."""

    def __bool__(self) -> bool:
        return bool(self._last or self._rows)

    @property
    def topics(self) -> Mapping[str, Mapping[int, Row]]:
        """What is committed, by topic and partition."""
        return self._settled()

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """What was committed for a partition; None when nothing was."""
        partitions = self.topics.get(topic)
        row = None if partitions is None else partitions.get(partition)
        return None if row is None else CommittedOffset._make(row)

    def put(self, topic: str, partition: int, row: Row) -> None:
        """Remember a commit unless a later one is there already."""
        partitions = self._settled().setdefault(topic, {})
        earlier = partitions.get(partition)
        record_offset = row[RECORD_OFFSET]
        if earlier is None or earlier[RECORD_OFFSET] <= record_offset:
            partitions[partition] = row
        self._newest = max(self._newest, record_offset)

    def put_commit(self, commit: Commit) -> None:
        """Remember what one request commits of a topic, except where a later commit is there already."""
        topic, partitions, record_offset = commit.topic, commit.partitions, commit.record_offset
        if record_offset <= self._newest:
            for partition, row in commit.by_partition():
                self.put(topic, partition, row)
            return
        self._newest = record_offset + len(partitions) - 1
        last, key = self._last, (topic, partitions[0])
        earlier = last.get(key)
        if earlier is None:
            if len(last) >= LAST_KEPT:
                self._settled()
        elif earlier.partitions != partitions:
            self._settled()
        last[key] = commit

    def _settled(self) -> dict[str, dict[int, Row]]:
        """The rows, when the last commits have become some, in the order of their records."""
        if self._last:
            for commit in sorted(self._last.values(), key=BY_RECORD):
                self._rows.setdefault(commit.topic, {}).update(commit.by_partition())
            self._last.clear()
        return self._rows

    def remove(self, topic: str, partition: int) -> None:
        """Forget a partition; nothing happens when it is not known."""
        topics = self._settled()
        partitions = topics.get(topic)
        if partitions is not None and partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]

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
