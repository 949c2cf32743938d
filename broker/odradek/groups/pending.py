"""Offsets that open transactions have committed: in the log, and of no effect until the marker of their producer.

The log decides: a marker makes visible, or drops, all that its producer has committed in the partition before it.
"""

from collections.abc import Collection, Iterator, Sequence

from odradek.groups.offsets import Commit, Row

__all__ = ["PendingOffsets"]

NONE: Collection[tuple[str, int]] = frozenset()


class PendingOffsets:
    """The offsets of open transactions in one partition of __consumer_offsets."""

    __slots__ = ("_by_producer", "_partitions")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[tuple[str, int], Row]]] = {}
        self._partitions: dict[str, dict[tuple[str, int], set[int]]] = {}
        """By group and partition, the producers that have a commit there."""

    def put(self, producer_id: int, group_id: str, commits: Sequence[Commit]) -> None:
        """Remember what a transaction commits, the last one for each partition."""
        offsets = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        partitions = self._partitions.setdefault(group_id, {})
        for topic, indexes, rows in commits:
            for index, row in zip(indexes, rows, strict=True):
                offsets[topic, index] = row
                partitions.setdefault((topic, index), set()).add(producer_id)

    def end(self, producer_id: int) -> Iterator[tuple[str, list[Commit]]]:
        """Forget a producer's offsets; give them by group."""
        for group_id, offsets in self._by_producer.pop(producer_id, {}).items():
            partitions = self._partitions[group_id]
            for key in offsets:
                partitions[key].discard(producer_id)
                if not partitions[key]:
                    del partitions[key]
            if not partitions:
                del self._partitions[group_id]
            yield group_id, [(topic, (index,), (row,)) for (topic, index), row in offsets.items()]

    def of_group(self, group_id: str) -> Collection[tuple[str, int]]:
        """The (topic, partition)s of a group whose offset may change at any moment."""
        return self._partitions.get(group_id, NONE)
